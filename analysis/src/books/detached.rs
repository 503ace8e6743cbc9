//! Processes that outlived their parent: no process that the command waits for waits for them, and
//! `time` does not see their CPU time.

use std::cmp::Reverse;

use proctrace_findings::Detached;
use proctrace_trace::Quantity;

use crate::recording::Recording;
use crate::recording::process::Process;

/// Indices of the detached processes, by CPU time, largest first.
pub(crate) fn detached(recording: &Recording) -> Vec<usize> {
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
pub(crate) fn findings(recording: &Recording, detached: &[usize]) -> Vec<Detached> {
    detached
        .iter()
        .map(|at| &recording.processes[*at])
        .map(|process| Detached {
            pid: process.pid,
            program: recording.program_of(process).name.clone(),
            parent: process
                .parent()
                .map(|parent| &recording.processes[parent])
                .map_or_else(String::new, |parent| recording.program_of(parent).name.clone()),
            cpu_ns: recording.knows.some(&[Quantity::Cpu], process.cpu.total_ns()),
            life_ns: process.life_ns(),
        })
        .collect()
}

/// Whether its parent, a process of the recording, ended first.
pub(crate) fn is_detached(recording: &Recording, process: &Process) -> bool {
    let parent = process.parent().and_then(|parent| recording.processes[parent].ended_ns());
    match (parent, process.ended_ns()) {
        (Some(parent), Some(child)) => parent < child,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
