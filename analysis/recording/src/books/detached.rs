//! Processes that outlived their parent: no process that the command waits for waits for them, and
//! `time` does not see their CPU time.

use std::cmp::Reverse;

use proctrace_findings::{After, Detached};
use proctrace_wire::Quantity;

use crate::Recording;
use crate::process::Process;

/// Indices of the detached processes, by CPU time, largest first.
pub fn detached(recording: &Recording) -> Vec<usize> {
    if !recording.knows.all(&[Quantity::Forks, Quantity::Execs]) {
        return Vec::new();
    }
    let all = &recording.processes;
    let mut detached: Vec<usize> =
        (0..all.len()).filter(|at| is_detached(recording, &all[*at])).collect();
    detached.sort_by_key(|at| (Reverse(all[*at].cpu.total_ns()), all[*at].pid));
    detached
}

/// The same in the form of the findings.
pub fn findings(recording: &Recording, detached: &[usize]) -> Vec<Detached> {
    detached.iter().map(|at| finding(recording, *at)).collect()
}

fn finding(recording: &Recording, at: usize) -> Detached {
    let process = &recording.processes[at];
    Detached {
        pid: process.pid,
        program: recording.program_of(process).name.clone(),
        command: recording.left_lines.get(&at).cloned(),
        phase: phase(recording, process).map(str::to_owned),
        parent: process
            .parent()
            .map(|parent| &recording.processes[parent])
            .map_or_else(String::new, |parent| recording.program_of(parent).name.clone()),
        cpu_ns: recording.knows.some(&[Quantity::Cpu], process.cpu.total_ns()),
        life_ns: process.life_ns().filter(|_| recording.knows.all(&[Quantity::Times])),
    }
}

/// The name of the phase in which a process was born; `None` without marks.
pub fn phase<'a>(recording: &'a Recording, process: &Process) -> Option<&'a str> {
    let phases = &recording.phases;
    (!phases.is_empty()).then(|| recording.phase_name(phases.of_birth(process.born_ns)))
}

/// The wait after the command's own end, and for whom.
pub fn after(recording: &Recording) -> Option<After> {
    let since_ns = recording.left_since_ns?;
    let end_ns = |process: &Process| process.ended_ns().unwrap_or(u64::MAX);
    let all = recording.processes.iter();
    let left = || {
        let all = recording.processes.iter().enumerate();
        all.filter(|(_, it)| end_ns(it) > since_ns && is_detached(recording, it))
    };
    let last = left().max_by_key(|(at, process)| (end_ns(process), Reverse(*at)));
    let last_ns = all.map(|process| end_ns(process).min(recording.last_ns)).max()?;
    Some(After {
        wait_ns: last_ns.saturating_sub(since_ns),
        last: last.map(|(at, _)| finding(recording, at)),
        others: (left().count() as u64).saturating_sub(1),
    })
}

/// True if its parent, a process of the recording, ended first.
pub fn is_detached(recording: &Recording, process: &Process) -> bool {
    let parent = process.parent().and_then(|parent| recording.processes[parent].ended_ns());
    match (parent, process.ended_ns()) {
        (Some(parent), Some(child)) => parent < child,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
