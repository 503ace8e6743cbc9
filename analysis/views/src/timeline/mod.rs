//! The data of timelines for other viewers: items that are passed on one at a time, so that none of
//! them has to stay in memory.

mod counters;
mod processes;
mod runs;

use std::path::Path;

use proctrace_findings::{
    Timeline, TimelineItem, TimelineParts, TimelinePhase, TimelineStack, TimelineStep, TimelineWait,
};
use proctrace_wire::Quantity;

use proctrace_overview::path::CriticalPath;
use proctrace_overview::path::steps::steps;
use proctrace_overview::path::words::object;
use proctrace_overview::phases::phases as marked_phases;
use proctrace_overview::stacks::{Tree, name};
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::waits::Waker;

/// Properties that all items share.
pub fn timeline(recording: &Recording) -> Timeline {
    let header = recording.header();
    // Without any record, the header has the only time that is known.
    let is_empty = recording.first_ns() > recording.last_ns();
    let begin_ns = if is_empty { header.started_ns } else { recording.first_ns() };
    let (later_ns, earlier_ns) =
        (begin_ns.saturating_sub(header.started_ns), header.started_ns.saturating_sub(begin_ns));
    Timeline {
        command: header.command.clone(),
        cwd: header.cwd.clone(),
        host: header.host.clone(),
        kernel: header.kernel.clone(),
        machine: header.machine.clone(),
        recorder: header.recorder.clone(),
        begin_boottime_ns: begin_ns,
        begin_unix_ns: header.started_unix_ns.saturating_add(later_ns).saturating_sub(earlier_ns),
        length_ns: recording.recorded_ns(),
        span: recording.steps().around.clone().map(|of| (of.trace, of.span)),
    }
}

/// Passes the processes, their threads and the other wanted items to `take`. The trace at `path` is
/// read again for what programs were given.
///
/// # Errors
/// If the trace cannot be read, or `take` fails.
pub fn timeline_items<E: From<AnalysisError>>(
    recording: &Recording,
    path: &Path,
    parts: TimelineParts,
    mut take: impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    processes::processes(recording, &mut take)?;
    if parts.runs {
        runs::runs(recording, path, &mut take)?;
    }
    if parts.path {
        self::path(recording, &mut take)?;
    }
    if parts.phases {
        phases(recording, &mut take)?;
    }
    if parts.waits {
        waits(recording, &mut take)?;
    }
    if parts.counters {
        counters::counters(recording, &mut take)?;
    }
    if parts.stacks {
        stacks(recording, &mut take)?;
    }
    Ok(())
}

/// The critical path, divided at execs.
fn path<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(path) = CriticalPath::of(recording) else { return Ok(()) };
    for step in steps(recording, &path) {
        let process = recording.processes().get(step.process as usize);
        take(TimelineItem::Step(TimelineStep {
            process: step.process,
            pid: process.map_or(0, |process| process.pid),
            program: program(recording, step.program as usize),
            doing: &step.doing.says(),
            // The command may have exited after the last record.
            begin_ns: step.begin_ns.saturating_sub(recording.first_ns()),
            end_ns: step.end_ns.saturating_sub(recording.first_ns()),
        }))?;
    }
    Ok(())
}

fn phases<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let known = marked_phases(recording).unwrap_or_default();
    // Without marks, there is one: the whole.
    for phase in known.iter().filter(|_| known.len() > 1) {
        let (begin_ns, end_ns) = (phase.begin_ns, phase.end_ns);
        take(TimelineItem::Phase(TimelinePhase { name: &phase.name, begin_ns, end_ns }))?;
    }
    Ok(())
}

fn waits<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if !recording.knows().all(&[Quantity::Waits]) {
        return Ok(());
    }
    let pid = |task: u32| {
        let task = recording.tasks().get(task as usize)?;
        Some(recording.processes().get(task.process())?.pid)
    };
    for wait in recording.waits().unwrap_or_default() {
        let Some(task) = recording.tasks().get(wait.task as usize) else { continue };
        let waker_pid = match wait.waker() {
            Waker::Task(task) => pid(task),
            Waker::Outside(pid) => Some(pid),
            Waker::Interrupt | Waker::None | Waker::Unknown => None,
        };
        take(TimelineItem::Wait(TimelineWait {
            task: wait.task,
            process: number(task.process()),
            waits_for: object(wait.waits_for),
            begin_ns: since(recording, wait.since_ns()),
            woken_ns: since(recording, wait.woken_ns()),
            end_ns: since(recording, wait.until_ns()),
            waker_pid,
        }))?;
    }
    Ok(())
}

fn stacks<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if !recording.knows().all(&Quantity::WHO) {
        return Ok(());
    }
    for node in Tree::of(recording).nodes {
        let cpu_ns = recording.knows().some(&[Quantity::Cpu], node.used.cpu.total_ns());
        take(TimelineItem::Stack(TimelineStack {
            parent: node.parent,
            program: &name(recording, node.program),
            processes: node.processes,
            cpu_ns,
            wall_ns: node.life_ns,
        }))?;
    }
    Ok(())
}

/// The name of a program, if it is known who ran which.
fn program(recording: &Recording, program: usize) -> Option<&str> {
    let program =
        recording.programs().get(program).filter(|_| recording.knows().all(&Quantity::WHO))?;
    Some(&program.name)
}

/// Time since the first record, at most that of the last.
fn since(recording: &Recording, time_ns: u64) -> u64 {
    time_ns.saturating_sub(recording.first_ns()).min(recording.recorded_ns())
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
