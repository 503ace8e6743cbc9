//! `timer-in-path`: waits for a point in time that the command waited for, and that are no polling loop.

use std::collections::BTreeMap;

use proctrace_classify::fast::FastMap;
use proctrace_findings::{Advice, Class, Gain, counted, time};

use super::Found;
use super::counter::{is_generated, is_of_tool};
use super::evidence::{Evidence, less, more, name};
use super::model::Cut;
use super::names::first_word;
use super::polling::Loops;

/// Minimum part of its life for which a process with several threads that computes has a core: one in this many.
const PART_OF_LIFE: u64 = 4;

/// Minimum part of its life for which a child that computes has a core, with its descendants: one in this many.
const PART_OF_CHILD: u64 = 4;

/// Timers of a process with threads that are shorter than this are those of its runtime.
const PAUSE_NS: u64 = 20_000_000;

/// Processes from one that waits up to a script that started it, both included: conftest forks itself.
const ABOVE_MAX: usize = 4;

/// Commands that do nothing else.
const SLEEPS: [&str; 2] = ["sleep", "usleep"];

/// Per program: the time in which its timers were on the critical path, and no child of the process computed. Who looks again and
/// again whether a child has ended, loses the time from its end to the next look.
///
/// Wall: at most that time; at least what the recorded order of births and wake-ups gains if these timers
/// take no time, as something else may take as long; nothing of loops, which may wait for something outside the recording.
/// CPU: nothing.
pub(super) fn find(evidence: &Evidence<'_>, loops: &Loops) -> Vec<Found> {
    let mut groups: BTreeMap<&str, (u64, u64, Vec<u32>)> = BTreeMap::new();
    let mut computing: FastMap<u32, Vec<(u64, u64)>> = FastMap::default();
    let mut may_go: FastMap<u32, bool> = FastMap::default();
    for (process, begin_ns, end_ns) in evidence.timers() {
        let meanwhile =
            computing.entry(process).or_insert_with(|| children_compute(evidence, process));
        let timer_ns = (end_ns - begin_ns).saturating_sub(within_ns(meanwhile, begin_ns, end_ns));
        let has_threads = evidence.process(process).tasks().len() > 1;
        let is_runtime = has_threads && timer_ns < PAUSE_NS;
        let may_go = may_go.entry(process).or_insert_with(|| {
            loops.sleeps.binary_search(&process).is_err()
                && !computes_meanwhile(evidence, process)
                && !is_of_others(evidence, process)
        });
        if timer_ns == 0 || is_runtime || !*may_go {
            continue;
        }
        let (waits, sum_ns, processes) = groups.entry(name(evidence, process)).or_default();
        *waits += 1;
        *sum_ns += timer_ns;
        processes.push(process);
    }
    let advice = groups.into_values().filter_map(|(waits, sum_ns, mut processes)| {
        if !evidence.pays(sum_ns, 0) {
            return None;
        }
        processes.sort_unstable();
        processes.dedup();
        advice(evidence, (waits, sum_ns), processes, &loops.alone)
    });
    advice.collect()
}

/// Returns whether the pauses of a process do not depend on who runs it: automake waits until file times differ, configure
/// tries what a sleep does, and a system command such as rsync waits until its other half has ended.
fn is_of_others(evidence: &Evidence<'_>, process: u32) -> bool {
    let recording = evidence.recording;
    let it = evidence.process(process);
    let program = recording.program_of(it);
    let is_command = program.class == Class::Command && !SLEEPS.contains(&&*program.name);
    let above = evidence.ancestors(process).take(ABOVE_MAX);
    is_command
        || is_of_tool(recording.line_of(it))
        || it.spawned_in().is_some_and(|run| is_of_tool(recording.line_of_run(run)))
        || above
            .map(|at| recording.program_of(&recording.processes()[at]))
            .any(|it| is_generated(&it.name))
}

/// Times in which any child of a process, with its descendants, computes: begin and end, in order, without overlaps.
fn children_compute(evidence: &Evidence<'_>, process: u32) -> Vec<(u64, u64)> {
    let computes = |child: &&u32| {
        evidence.cpu_below_ns[**child as usize] > evidence.life_ns(**child) / PART_OF_CHILD
    };
    let life = |child: &u32| (evidence.process(*child).born_ns, evidence.ended_ns(*child));
    let mut lives: Vec<(u64, u64)> =
        evidence.children(process).iter().filter(computes).map(life).collect();
    lives.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(lives.len());
    for (begin_ns, end_ns) in lives {
        match merged.last_mut().filter(|last| begin_ns <= last.1) {
            Some(last) => last.1 = last.1.max(end_ns),
            None => merged.push((begin_ns, end_ns)),
        }
    }
    merged
}

/// Part of a time that lies within others, which are in order and do not overlap.
fn within_ns(others: &[(u64, u64)], begin_ns: u64, end_ns: u64) -> u64 {
    let first = others.partition_point(|(_, until_ns)| *until_ns <= begin_ns);
    others[first..]
        .iter()
        .take_while(|(from_ns, _)| *from_ns < end_ns)
        .map(|(from_ns, until_ns)| until_ns.min(&end_ns).saturating_sub(*from_ns.max(&begin_ns)))
        .fold(0, u64::saturating_add)
}

/// Returns whether other threads of a process compute while one waits for a point in time, as that of a runtime which
/// looks after the others (sysmon of Go, garbage collectors): without the pauses, nothing would be earlier.
fn computes_meanwhile(evidence: &Evidence<'_>, process: u32) -> bool {
    let it = evidence.process(process);
    it.tasks().len() > 1 && it.cpu.total_ns() > evidence.life_ns(process) / PART_OF_LIFE
}

fn advice(
    evidence: &Evidence<'_>,
    (waits, sum_ns): (u64, u64),
    processes: Vec<u32>,
    alone: &[u32],
) -> Option<Found> {
    let first = *processes.first()?;
    let template = evidence.recording.template_of(evidence.process(first)).unwrap_or("");
    let earlier = evidence.earlier(Cut::Timers(&evidence.tasks(&processes)))?;
    let earlier_ns = earlier.ns.min(sum_ns);
    let sure: Vec<u32> =
        processes.iter().copied().filter(|it| alone.binary_search(it).is_err()).collect();
    let low_ns = match sure.len() {
        0 => 0,
        all if all == processes.len() => earlier.low_ns,
        _ => evidence.earlier(Cut::Timers(&evidence.tasks(&sure)))?.low_ns,
    };
    let by = evidence.started_by(first);
    // A program that does more than wait is needed for that.
    let is_all = SLEEPS.contains(&first_word(template));
    let advice = Advice {
        kind: "timer-in-path",
        what: format!(
            "Do without {}{}, or wait for the event that {} for",
            if is_all { "" } else { "the pauses of " },
            evidence.lines(&processes),
            if is_all { "it stands" } else { "they stand" },
        ),
        evidence: format!(
            "the command waits {} of its wall time for {} of {}{by}",
            time(sum_ns),
            counted(waits, "timer", "timers"),
            evidence.lines(&processes),
        ),
        commands: vec![first_word(template).to_owned()],
        processes: processes.len() as u64,
        wall_ns: Gain::new(less(low_ns.min(earlier_ns)), earlier_ns, more(sum_ns))
            .at_most(evidence.wall_ns),
        method:
            "wall: what is earlier if everything else takes as long as before; at most the time of \
             these timers on the critical path (high)"
                .into(),
        risk: "whatever the delay is for may not be ready yet".into(),
        check: "record without it; if something fails, wait for that instead".into(),
        ..Advice::default()
    };
    Some(Found::about(processes, advice).keyed(template))
}
