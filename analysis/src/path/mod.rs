//! The critical path: what the wall time of a recording was spent on, from the end of the command back
//! to its start.

/// What the task on the path did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Doing {
    /// It ran, or was off the CPU for less than the recorded threshold.
    Running,
    /// It was ready to run, and waited for a CPU.
    WaitingForCpu,
    /// It slept, and nothing of the recording ended the sleep: a timer, a disk, a task outside.
    Waiting(proctrace_wire::WaitFor),
}

/// A part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Index of the task.
    pub(crate) task: u32,
    pub(crate) doing: Doing,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

/// A chain of parts in order of time, without gap or overlap: its durations add up to the wall time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CriticalPath {
    pub(crate) parts: Vec<Part>,
}
