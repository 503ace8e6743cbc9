//! Knowledge of each quantity in a recording: exact, an estimate, or absent.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A quantity that a source of records may provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Quantity {
    /// Births of processes and threads, and thereby parentage.
    Forks,
    /// Successful execs.
    Execs,
    /// Arguments of execs.
    Argv,
    /// CPU time of each task.
    Cpu,
    /// Its division into user and system time.
    Split,
    /// Context switches.
    Switches,
    /// Time runnable without a CPU.
    RunDelay,
    /// Page faults.
    Faults,
    /// Peak resident memory.
    PeakRss,
    /// Bytes read and written.
    Io,
    /// Failed opens, and the number of successful ones.
    LookupsOpen,
    /// Failed calls of the stat family.
    LookupsStat,
    /// Failed calls of the access family.
    LookupsAccess,
    /// Failed readlinks.
    LookupsReadlink,
    /// Failed chdirs.
    LookupsChdir,
    /// Failed execs.
    LookupsExec,
    /// Samples of live tasks.
    Samples,
    /// Shared and private memory of processes over time.
    Memory,
    /// Variables of environments.
    Environment,
    /// Durations of failed look-ups.
    LookupTimes,
    /// The files that were opened.
    OpenedFiles,
    /// Mount tables.
    Mounts,
    /// Times off the CPU, and who ended them.
    Waits,
    /// Signals and their senders.
    Signals,
    /// Times of events: without them, records have an order and nothing more.
    Times,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all of them");

    /// The families of calls whose failures are failed look-ups.
    pub const LOOKUPS: [Self; 5] = [
        Self::LookupsOpen,
        Self::LookupsStat,
        Self::LookupsAccess,
        Self::LookupsReadlink,
        Self::LookupsChdir,
    ];

    /// Stable name, as used in headers.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Description for messages: "failed stats are not known".
    pub fn says(self) -> &'static str {
        match self {
            Self::Forks => "births of tasks",
            Self::Execs => "execs",
            Self::Argv => "arguments",
            Self::Cpu => "CPU time",
            Self::Split => "user and system time",
            Self::Switches => "context switches",
            Self::RunDelay => "time spent waiting for a CPU",
            Self::Faults => "page faults",
            Self::PeakRss => "peak memory",
            Self::Io => "bytes read and written",
            Self::LookupsOpen => "failed opens",
            Self::LookupsStat => "failed stats",
            Self::LookupsAccess => "failed access calls",
            Self::LookupsReadlink => "failed readlinks",
            Self::LookupsChdir => "failed chdirs",
            Self::LookupsExec => "failed execs",
            Self::Samples => "samples of live tasks",
            Self::Memory => "memory over time",
            Self::Environment => "environment variables",
            Self::LookupTimes => "durations of failed look-ups",
            Self::OpenedFiles => "opened files",
            Self::Mounts => "mounted file systems",
            Self::Waits => "who waited for whom",
            Self::Signals => "senders of signals",
            Self::Times => "times",
        }
    }

    /// The family of calls concerned, as named in `Header::misses`.
    pub fn family(self) -> Option<&'static str> {
        self.name().strip_prefix("lookups_")
    }
}

/// Knowledge of a quantity by a source, regardless of records lost while recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// Each value is exact.
    Exact,
    /// Values are estimated.
    Estimate {
        /// The method.
        method: String,
    },
    /// There are no values.
    Absent {
        /// The reason for it.
        reason: String,
    },
}

impl Knowledge {
    pub(crate) fn absent(reason: impl Into<String>) -> Self {
        Self::Absent { reason: reason.into() }
    }
}
