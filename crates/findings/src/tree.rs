//! The process tree with equal siblings as one row, and the processes that were alive at some time.

use serde::Serialize;

/// The process tree, in rows: each followed by those below it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProcessTree {
    /// The time to which it is restricted, since the start of the recording.
    pub at_ns: Option<u64>,
    /// True if the rows are those of steps, and of processes outside all steps.
    pub of_steps: bool,
    /// Number of processes.
    pub processes: u64,
    /// Their CPU time.
    pub cpu_ns: Option<u64>,
    /// The rows.
    pub rows: Vec<TreeRow>,
    /// Names of what is not known, and the reason.
    pub not_known: Option<String>,
}

/// Siblings with the same command line, or the commands that have no row of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TreeRow {
    /// Number of rows above it in the tree.
    pub depth: u32,
    /// The command line with `#` for numbers; None for the sum of several.
    pub command: Option<String>,
    /// The step that it begins, or the group of the steps; None if it begins none.
    pub step: Option<String>,
    /// Number of command lines that were left out and are summed up here, with all below them.
    pub left_out: u64,
    /// Number of processes with this command line.
    pub siblings: u64,
    /// Number of processes, with all below it.
    pub processes: u64,
    /// CPU time of the processes with this command line.
    pub own_cpu_ns: Option<u64>,
    /// CPU time, with all below it.
    pub cpu_ns: Option<u64>,
    /// The first birth, with all below it, since the start of the recording.
    pub first_ns: u64,
    /// The last end, with all below it; the end of the recording if one was alive then.
    pub last_ns: u64,
    /// The pid, if it is one process.
    pub pid: Option<i32>,
    /// The serial, if it is one process.
    pub serial: Option<u32>,
}

/// The processes that were alive at a time, or during an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Alive {
    /// The time, or the beginning of the interval, since the start of the recording.
    pub from_ns: u64,
    /// The end of the interval; None for a time.
    pub to_ns: Option<u64>,
    /// The processes.
    pub processes: Vec<AliveProcess>,
    /// Shorter times off the CPU are taken for running; None if states were read at intervals.
    pub waits_min_ns: Option<u64>,
    /// Interval between readings of CPU time and RSS.
    pub interval_ns: u64,
    /// Names of what is not known, and the reason.
    pub not_known: Option<String>,
}

/// A process that was alive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AliveProcess {
    /// Its serial number in the recording.
    pub serial: u32,
    /// Its pid.
    pub pid: i32,
    /// The pid of its parent then; None if that is not known.
    pub ppid: Option<i32>,
    /// Time of its birth, or when it was first seen, since the start of the recording.
    pub born_ns: u64,
    /// Time of its end; None if it was alive at the end of the recording.
    pub ended_ns: Option<u64>,
    /// Its age at the time, or the time it lived within the interval.
    pub age_ns: u64,
    /// Its tasks that were alive.
    pub threads: u64,
    /// The state of the most active of them, as a letter of ps(1): R, S, D, T; None for an interval,
    /// or where it is not known.
    pub state: Option<char>,
    /// Object of its wait, in words: "a CPU", "a child".
    pub waits_for: Option<&'static str>,
    /// CPU time up to then, or within the interval: interpolated between readings.
    pub cpu_ns: Option<u64>,
    /// Lower bound.
    pub cpu_low_ns: Option<u64>,
    /// Upper bound.
    pub cpu_high_ns: Option<u64>,
    /// The last reading of its RSS until then.
    pub rss_bytes: Option<u64>,
    /// Time of the reading, since the start of the recording.
    pub rss_read_ns: Option<u64>,
    /// The program it ran then.
    pub program: String,
    /// Its arguments then; None if they are not known.
    pub arguments: Option<Vec<String>>,
    /// True if it had not called exec, and the arguments are those of its forker.
    pub is_fork: bool,
}
