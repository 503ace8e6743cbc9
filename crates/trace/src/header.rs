//! What a trace says of itself: the header before the records, the trailer behind them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::knowledge::Knowledge;

/// A header is refused beyond this, before anything is allocated for it. It holds the command
/// line, which the kernel limits to a quarter of the stack (2 MiB, 6 MiB with an unlimited one).
pub(crate) const HEADER_BYTES_MAX: usize = 16 << 20;

/// Where and how a recording was made. Strings that are bytes in truth (arguments, paths) are
/// escaped by `proctrace_wire::escape`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Layout of the records.
    pub wire_version: u32,
    /// Version of the recorder.
    pub recorder: String,
    /// What the records come from: "ebpf".
    pub backend: String,
    /// The command and its arguments, as it was launched; empty where none was.
    pub command: Vec<String>,
    /// Whom it was told to record: "command", "pids" or "system".
    pub scope: String,
    /// Whether only processes were recorded that the recording user could trace. False in older traces,
    /// whose recorders did not ask.
    #[serde(default)]
    pub restricted: bool,
    /// The cgroup whose members were recorded as well.
    pub cgroup: Option<String>,
    /// The directory it was launched in.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine: "x86_64".
    pub machine: String,
    /// CPUs the payload may use.
    pub cpus: u32,
    /// Size of a page.
    pub page_bytes: u32,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Real-time clock at the start, since 1970.
    pub started_unix_ns: u64,
    /// CLOCK_BOOTTIME at the same moment: the records' clock.
    pub started_ns: u64,
    /// The shortest pause between passes of samples.
    pub interval_ns: u64,
    /// Pause between looks at the memory of processes; None: there were none.
    pub memory_interval_ns: Option<u64>,
    /// Size of each ring buffer.
    pub ring_bytes: u64,
    /// What was done when one was nearly full: "drop" or "block".
    pub on_full: String,
    /// Families of calls whose failures are recorded: "open", "stat"...
    pub misses: Vec<String>,
    /// Environment variables that are kept.
    pub env_names: Vec<String>,
    /// Length of a scheduler tick in nanoseconds; None in traces made before it was recorded.
    #[serde(default)]
    pub tick_ns: Option<u64>,
    /// Which hook serves what.
    pub hooks: Vec<Hook>,
    /// How well each quantity is known, by its name (see [`Quantity`](crate::Quantity)); empty in
    /// traces made before it was recorded. Names of other versions are left alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub knowledge: BTreeMap<String, Knowledge>,
}

/// One event and the hook it is taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// What it captures: "fork".
    pub event: String,
    /// Where: "tp_btf/task_newtask".
    pub hook: String,
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailer {
    /// CLOCK_BOOTTIME when the last record was taken.
    pub ended_ns: u64,
    /// Why.
    pub ended: Ended,
    /// What became of the payload; None if it was still running.
    pub payload: Option<PayloadUsage>,
    /// Tasks that were followed.
    pub tasks: u64,
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// Everything that was lost; empty is good.
    pub losses: Vec<LossCount>,
    /// What the kernel counted for the recording's own cgroup, if it had one.
    pub cgroup: Option<CgroupUsage>,
    /// What the recorder itself used.
    pub recorder: RecorderUsage,
    /// Its programs in the kernel. Empty in older traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
}

/// A program in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier looked at; 0 where the kernel does not say.
    pub verified_instructions: u32,
    /// How often it ran; 0 unless the sysctl kernel.bpf_stats_enabled was 1.
    pub runs: u64,
    /// How long all of its runs took; 0 likewise.
    pub run_ns: u64,
}

/// CPU time of a cgroup, by its cpu.stat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupUsage {
    /// The cgroup.
    pub path: String,
    /// All of it.
    pub usage_ns: u64,
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Every task of the tree had exited.
    TreeExited,
    /// The command had exited; what it left behind was not waited for (any longer).
    RootExited,
    /// Someone asked the recorder to stop.
    Interrupted,
    /// The time that was asked for was over.
    TimeOver,
}

/// What the kernel said of the payload when it was waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadUsage {
    /// How it ended.
    pub outcome: Outcome,
    /// CLOCK_BOOTTIME then.
    pub exited_ns: u64,
    /// User time of it and of all it waited for (RUSAGE_CHILDREN).
    pub user_ns: u64,
    /// System time likewise.
    pub system_ns: u64,
    /// Largest peak RSS of any of them.
    pub maxrss_bytes: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// A number of lost records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LossCount {
    /// What kind of record.
    pub kind: String,
    /// Why.
    pub reason: String,
    /// On which CPU, where known.
    pub cpu: Option<u32>,
    /// How many.
    pub count: u64,
}

/// What the recorder itself used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderUsage {
    /// User time.
    pub user_ns: u64,
    /// System time.
    pub system_ns: u64,
    /// Peak RSS.
    pub maxrss_bytes: u64,
    /// CPU time it had used when the recording began: loading the programs. 0 in older traces.
    #[serde(default)]
    pub loading_ns: u64,
}
