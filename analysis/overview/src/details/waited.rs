//! Sums of times off the CPU.

use proctrace_recording::Recording;
use proctrace_recording::waits::{Wait, Waker};

/// Waits of one process for the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waited {
    pub count: u64,
    pub asleep_ns: u64,
    pub for_cpu_ns: u64,
    pub longest_ns: u64,
    /// Time at which the longest began.
    pub longest_since_ns: u64,
    /// The process that ended the longest.
    pub waker: Option<usize>,
}

impl Waited {
    pub fn add(&mut self, recording: &Recording, wait: &Wait) {
        let length_ns = wait.until_ns() - wait.since_ns();
        self.count += 1;
        self.asleep_ns = self.asleep_ns.saturating_add(wait.woken_ns() - wait.since_ns());
        self.for_cpu_ns = self.for_cpu_ns.saturating_add(wait.until_ns() - wait.woken_ns());
        if length_ns >= self.longest_ns {
            self.longest_ns = length_ns;
            self.longest_since_ns = wait.since_ns();
            self.waker = waker(recording, wait.waker());
        }
    }
}

/// The process of a waker, if it is one of the recording.
pub fn waker(recording: &Recording, waker: Waker) -> Option<usize> {
    match waker {
        Waker::Task(task) => recording.tasks().get(task as usize).map(|task| task.process()),
        _ => None,
    }
}
