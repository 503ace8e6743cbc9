//! Ends of processes other than with exit status 0.

use proctrace_wire::Outcome;
use serde::Serialize;

/// Counts of processes by how they ended. Processes whose end was not recorded, because they were
/// still running or because the record was lost, are counted only in `unknown`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// Processes that exited with status 0.
    pub succeeded: u64,
    /// Processes that exited with a non-zero status.
    pub failed: u64,
    /// Processes killed by a signal.
    pub signalled: u64,
    /// Subset of `signalled` that left a core dump.
    pub core_dumps: u64,
    /// Processes whose end is not known.
    pub unknown: u64,
    /// The failed and killed processes grouped by outcome and program, the most severe first: fault
    /// signals, SIGKILL, other signals, exit statuses; negative results of test commands (`grep`)
    /// are last.
    pub by_program: Vec<ProgramEnd>,
    /// Cause of the command's failure: the process that failed first, then those that failed
    /// because of it, and the command last. Empty if it succeeded.
    pub cause: Vec<EndStep>,
    /// Processes that a signal ended, in order of time.
    pub fatal_signals: Vec<FatalSignal>,
}

/// A failed process in the chain that leads to the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndStep {
    /// Time of its end, since the start of the recording; None if the recording has no times.
    pub time_ns: Option<u64>,
    /// Its pid.
    pub pid: i32,
    /// The last program it ran.
    pub program: String,
    /// Its outcome: "SIGSEGV", "exit 1".
    pub how: String,
    /// True if it ended like this because the one before it in the chain did; if not, that is only likely.
    pub is_certain: bool,
    /// Sender of the signal that ended it, in words; `None` if there was none or it is not known.
    pub sent_by: Option<String>,
    /// Last failed look-up shortly before the end: of the first in the chain, and of others that are only likely to have failed
    /// because of the one before, if it could be a reason of their own.
    pub last_failed: Option<LastFailed>,
}

/// A failed look-up or exec, shortly before the end of a process that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastFailed {
    /// "open", "stat", "exec" and so on.
    pub call: &'static str,
    /// Path as it was given to the call.
    pub path: String,
    /// The name of the error: "ENOENT".
    pub error: String,
    /// Time from the look-up to the end.
    pub before_ns: u64,
}

/// A process that a signal ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FatalSignal {
    /// Time of its end, since the start of the recording; None if the recording has no times.
    pub time_ns: Option<u64>,
    /// Its pid.
    pub pid: i32,
    /// The last program it ran.
    pub program: String,
    /// The name of the signal.
    pub signal: String,
    /// Sender of the signal, in words; `None` if not known.
    pub sent_by: Option<String>,
}

/// Processes that ran the same program and ended the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramEnd {
    /// The last program they ran.
    pub program: String,
    /// Outcome that they share.
    pub outcome: Outcome,
    /// The outcome as text: "SIGSEGV", "exit 1".
    pub how: String,
    /// Number of processes.
    pub processes: u64,
    /// Number of those that left a core dump.
    pub core_dumps: u64,
    /// The pid of the first process that ended this way.
    pub example_pid: i32,
    /// The program that started it; empty if its parent was not recorded.
    pub example_parent: String,
}

impl Ends {
    /// True if any process failed or was killed.
    pub fn any_abnormal(&self) -> bool {
        self.failed > 0 || self.signalled > 0
    }
}
