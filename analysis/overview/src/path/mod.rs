//! The critical path: what the wall time of a recording was spent on, from the end of the command back
//! to its start.

pub mod phases;
pub mod steps;
pub mod walk;
pub mod words;

use std::cmp::Reverse;

use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use self::phases::Phase;
use self::steps::Step;

/// Quantities of the path: without births, a task has no forker to go on with; without waits, no
/// waker.
const NEEDS: &[Quantity] = &[Quantity::Forks, Quantity::Waits];

/// Activity of the task on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doing {
    /// It ran, or was off the CPU for less than the recorded threshold.
    Running,
    /// It was ready to run, and waited for a CPU.
    WaitingForCpu,
    /// It slept, and nothing of the recording ended the sleep: a timer, a disk, a task outside.
    Waiting(proctrace_wire::WaitFor),
}

/// A part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index of the task.
    pub task: u32,
    pub doing: Doing,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A chain of parts in order of time, without gap or overlap: its durations add up to the wall time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalPath {
    pub parts: Vec<Part>,
}

impl CriticalPath {
    /// The path of the command; `None` if none was launched, or if its waits were not recorded.
    pub fn of(recording: &Recording) -> Option<Self> {
        let root = recording.root()?;
        if !recording.knows().all(NEEDS) {
            return None;
        }
        // The process ends with the last of its tasks; of several, the first one stands for it.
        let ended_ns = |task: &usize| recording.tasks()[*task].ended_ns().unwrap_or(u64::MAX);
        let last = root.tasks().min_by_key(|task| Reverse(ended_ns(task)))?;
        let end_ns = recording.first_ns().saturating_add(recording.wall_ns());
        Some(Self { parts: walk::back(recording, number(last), recording.first_ns(), end_ns) })
    }
}

/// The critical path by process, program and phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explained {
    /// Steps in order of time; their lengths add up to the wall time.
    pub steps: Vec<Step>,
    pub phases: Vec<Phase>,
}

impl Explained {
    pub fn of(recording: &Recording, path: &CriticalPath) -> Self {
        let steps = steps::steps(recording, path);
        let phases = phases::phases(recording, &steps);
        Self { steps, phases }
    }
}

fn number(task: usize) -> u32 {
    u32::try_from(task).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
