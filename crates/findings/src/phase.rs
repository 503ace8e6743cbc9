//! Phases of a payload: what happened between the moments that it named.

use serde::Serialize;

/// The time from a mark to the next one. The first phase begins with the recording, the last ends
/// with it, so that phases add up to the whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkedPhase {
    /// The text of the mark; " #2" and so on is added to repeated texts.
    pub name: String,
    /// The mark it begins with; None for the time before the first.
    pub mark: Option<PhaseMark>,
    /// Start, relative to the start of the recording.
    pub begin_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Processes born in it.
    pub processes: Option<u64>,
    /// Threads born in it, except the first of each process.
    pub threads: Option<u64>,
    /// Successful execs.
    pub execs: Option<u64>,
    /// Processes that ended in it.
    pub processes_ended: Option<u64>,
    /// Failed look-ups.
    pub failed_lookups: Option<u64>,
    /// CPU time of all tasks. Exact for tasks that lived in one phase; what others used between two
    /// samples is spread evenly.
    pub cpu_ns: Option<u64>,
    /// CPU time in user mode.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel.
    pub system_ns: Option<u64>,
    /// CPU time per wall time.
    pub cores_in_use: Option<f64>,
    /// The largest total PSS of all processes at a memory reading that began in it.
    pub peak_pss_bytes: Option<u64>,
}

/// The mark that named a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseMark {
    /// "command" for `proctrace mark`, "look-up" for a failed look-up.
    pub by: &'static str,
    /// Pid of the process that ran the command, or looked up.
    pub pid: i32,
    /// The program that this process ran last.
    pub program: String,
}

impl MarkedPhase {
    /// Its wall time.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}
