//! Program runs as items of a timeline: what each exec was given, from the trace.

use std::path::Path;

use proctrace_classify::fast::Bits;
use proctrace_findings::{TimelineItem, TimelineRun};
use proctrace_overview::details::calls::each_exec;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_replay::Exec;
use proctrace_wire::layout::{EXEC_PATH_CUT, EXEC_WITHHELD};
use proctrace_wire::{Outcome, Quantity};

use super::{number, program, since};

/// Every exec, in order of time.
pub(super) fn runs<E: From<AnalysisError>>(
    recording: &Recording,
    path: &Path,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let ends = Ends::of(recording);
    let mut seen = Bits::default();
    let mut failed = None;
    let each = |_: usize, run: Option<u32>, exec: &Exec| {
        // In a broken trace, several execs may claim to be the same run.
        let Some(run) = run.filter(|run| failed.is_none() && !seen.contains(*run as usize)) else {
            return;
        };
        seen.insert(run as usize);
        if let Some(item) = item(recording, &ends, run, exec) {
            failed = take(TimelineItem::Run(item)).err();
        }
    };
    each_exec(recording, path, each, |_, _| {})?;
    failed.map_or(Ok(()), Err)
}

/// End of each program run, and a flag: true if it is the last of its process.
struct Ends(Vec<(Option<u64>, bool)>);

impl Ends {
    fn of(recording: &Recording) -> Self {
        let mut next: Vec<Option<u64>> = vec![None; recording.processes().len()];
        let mut ends = vec![(None, false); recording.runs().len()];
        for (run, end) in recording.runs().iter().zip(&mut ends).rev() {
            let Some(next) = next.get_mut(run.process as usize) else { continue };
            let process = recording.processes().get(run.process as usize);
            let ended_ns = process.and_then(|process| process.ended_ns());
            *end = (next.or(ended_ns), next.is_none());
            *next = Some(run.time_ns);
        }
        Self(ends)
    }
}

fn item<'a>(
    recording: &'a Recording,
    ends: &Ends,
    number_of_run: u32,
    exec: &'a Exec,
) -> Option<TimelineRun<'a>> {
    let run = recording.runs().get(number_of_run as usize)?;
    let process = recording.processes().get(run.process as usize)?;
    let (end_ns, is_last) = *ends.0.get(number_of_run as usize)?;
    // Within the life of its process, whatever a broken trace says.
    let born_ns = since(recording, process.born_ns);
    let ended_ns = process.ended_ns().map_or(recording.recorded_ns(), |end| since(recording, end));
    let within = |time_ns: u64| since(recording, time_ns).min(ended_ns).max(born_ns);
    let begin_ns = if run.happened_here { within(run.time_ns) } else { born_ns };
    let bits = exec.record.bits;
    let known = bits & EXEC_WITHHELD == 0 && recording.knows().all(&[Quantity::Argv]);
    Some(TimelineRun {
        run: number_of_run,
        process: number(run.process as usize),
        program: program(recording, run.program as usize),
        begin_ns,
        end_ns: end_ns.map(|end_ns| within(end_ns).max(begin_ns)),
        happened_here: run.happened_here,
        outcome: process.status().filter(|_| is_last).map(Outcome::of_status),
        exe: whole_path(&exec.exe, bits),
        interpreter: exec.interpreter.as_deref(),
        cwd: whole_path(&exec.cwd, bits),
        arguments: known.then_some(&exec.argv),
        arguments_cut: exec.argv_truncated,
    })
}

/// The path; nothing if the front of one of the record's paths is missing.
fn whole_path(path: &[u8], bits: u32) -> &[u8] {
    if bits & EXEC_PATH_CUT == 0 { path } else { b"" }
}
