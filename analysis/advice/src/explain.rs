//! Explanation of a piece of advice: its processes, when they lived, and what they waited for.

use std::cmp::Reverse;

use proctrace_findings::{Advice, Advised, Explained, ExplainedProcess, WaitedFor};
use proctrace_wire::Quantity;

use proctrace_overview::details::waits::waits as waits_of;
use proctrace_overview::path::CriticalPath;
use proctrace_recording::Recording;

/// Reasons for which one process waited that are named.
const REASONS: usize = 3;

/// The advice with this number in the list that is printed, from 1, where advice about the same processes as better one has no
/// number of its own; with at most `rows` processes. None if there is none.
pub fn explain(
    recording: &Recording,
    advised: &Advised,
    number: usize,
    rows: usize,
) -> Option<Explained> {
    let at = number.checked_sub(1)?;
    let advice = advised.advice.iter().filter(|one| one.part_of.is_none()).nth(at)?;
    let path_ns = CriticalPath::of(recording).map(|path| {
        let mut path_ns = vec![0_u64; recording.processes().len()];
        for part in &path.parts {
            let process = recording.tasks()[part.task as usize].process();
            path_ns[process] = path_ns[process].saturating_add(part.end_ns - part.begin_ns);
        }
        path_ns
    });
    let mut chosen = about(recording, advice);
    let all = chosen.len();
    let on_path = |at: &usize| path_ns.as_ref().map_or(0, |path_ns| path_ns[*at]);
    chosen.sort_by_key(|at| (Reverse(on_path(at)), Reverse(life_ns(recording, *at)), *at));
    chosen.truncate(rows);
    chosen.sort_by_key(|at| (recording.processes()[*at].born_ns, *at));
    Some(Explained {
        advice: advice.clone(),
        others: (all - chosen.len()) as u64,
        rows: chosen
            .into_iter()
            .map(|at| row(recording, at, path_ns.as_ref().map(|path_ns| path_ns[at])))
            .collect(),
    })
}

/// Processes of a piece of advice, or all.
fn about(recording: &Recording, advice: &Advice) -> Vec<usize> {
    match &advice.about[..] {
        [] => (0..recording.processes().len()).collect(),
        some => some.iter().map(|at| *at as usize).collect(),
    }
}

fn life_ns(recording: &Recording, at: usize) -> u64 {
    let process = &recording.processes()[at];
    process.ended_ns().unwrap_or(recording.last_ns()).saturating_sub(process.born_ns)
}

fn row(recording: &Recording, at: usize, path_ns: Option<u64>) -> ExplainedProcess {
    let process = &recording.processes()[at];
    let parent = process.parent().and_then(|parent| recording.processes().get(parent));
    let waited = waits_of(recording, process).map(|groups| {
        let for_cpu = groups.iter().map(|group| group.for_cpu_ns).fold(0, u64::saturating_add);
        let mut waited: Vec<WaitedFor> = groups
            .iter()
            .map(|group| WaitedFor { what: group.waits_for, ns: group.asleep_ns })
            .chain([WaitedFor { what: "a CPU", ns: for_cpu }])
            .filter(|waited| waited.ns > 0)
            .collect();
        waited.sort_by_key(|waited| Reverse(waited.ns));
        waited.truncate(REASONS);
        waited
    });
    let line = recording.line_of(process);
    ExplainedProcess {
        pid: process.pid,
        parent: parent.map(|parent| parent.pid),
        begin_ns: process.born_ns.saturating_sub(recording.first_ns()),
        wall_ns: life_ns(recording, at),
        cpu_ns: recording.knows().all(&[Quantity::Cpu]).then(|| process.cpu.total_ns()),
        path_ns,
        waited,
        command: match line {
            "" => recording.program_of(process).name.clone(),
            _ if process.execs == 0 => format!("fork of {line}"),
            _ => line.to_owned(),
        },
    }
}
