//! Processes and threads as items of a timeline.

use proctrace_findings::{Figures, TimelineForker, TimelineItem, TimelineProcess, TimelineThread};
use proctrace_overview::figures::OfProcesses;
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_wire::{Outcome, Quantity, dumped_core};

use super::{number, program, since};

/// Every process, in order of birth, each followed by its threads.
pub(super) fn processes<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let used = OfProcesses::new(recording, 0..recording.processes().len());
    for (at, process) in recording.processes().iter().enumerate() {
        take(TimelineItem::Process(item(recording, at, process, used.in_timelines(at))))?;
        threads(recording, at, process, take)?;
    }
    Ok(())
}

fn item<'a>(
    recording: &'a Recording,
    at: usize,
    process: &Process,
    used: Figures,
) -> TimelineProcess<'a> {
    let knows = recording.knows();
    let category = recording.categories().get(recording.category_of(process));
    let begin_ns = since(recording, process.born_ns);
    let step = recording.steps().of_process(number(at));
    let begins = |step: u32| {
        let run = recording.runs().get(recording.steps().all[step as usize].run as usize);
        run.is_some_and(|run| run.process as usize == at)
    };
    TimelineProcess {
        process: number(at),
        id: process.serial,
        pid: process.pid,
        parent_pid: process.parent().and_then(|at| Some(recording.processes().get(at)?.pid)),
        forker: forker(recording, process),
        step: step.map(|step| &*recording.steps().all[step as usize].named.name),
        span: step
            .filter(|step| begins(*step))
            .and_then(|step| recording.steps().span_of(step))
            .map(|of| (of.trace, of.span)),
        program: program(recording, process.program()),
        category: program(recording, process.program()).and(category).map(String::as_str),
        begin_ns,
        end_ns: process.ended_ns().map(|end_ns| since(recording, end_ns).max(begin_ns)),
        outcome: process.status().map(Outcome::of_status),
        dumped_core: process.status().is_some_and(dumped_core),
        threads: knows.some(&[Quantity::Forks], process.tasks().len() as u64),
        used: Box::new(used),
    }
}

fn forker(recording: &Recording, process: &Process) -> Option<TimelineForker> {
    let task = recording.forker_of(process.tasks().next()?)?;
    let forking = recording.tasks().get(task)?.process();
    let first = recording.processes().get(forking)?.tasks().next();
    // A process that has not called exec is in the run of an ancestor.
    let run = process.spawned_in().filter(|run| {
        let run = recording.runs().get(*run as usize);
        run.is_some_and(|run| run.process as usize == forking)
    });
    let (process, task, is_first) = (number(forking), number(task), first == Some(task));
    Some(TimelineForker { process, task, is_first, run })
}

fn threads<E>(
    recording: &Recording,
    at: usize,
    process: &Process,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for (place, index) in process.tasks().enumerate() {
        let Some(task) = recording.tasks().get(index) else { continue };
        let begin_ns = since(recording, task.born_ns);
        take(TimelineItem::Thread(TimelineThread {
            task: number(index),
            process: number(at),
            tid: task.tid(),
            is_first: place == 0,
            begin_ns,
            end_ns: task.ended_ns().map(|end_ns| since(recording, end_ns).max(begin_ns)),
            cpu_ns: recording.knows().some(&[Quantity::Cpu], task.cpu_used().0),
        }))?;
    }
    Ok(())
}
