//! What a recording knows: quantity by quantity, whether it is exact, an estimate, or absent.

use serde::{Deserialize, Serialize};

use crate::header::Header;

/// Something that a source of records may know or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Births of processes and threads, and with them who is whose child.
    Forks,
    /// Successful execs.
    Execs,
    /// Arguments of what was executed.
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
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Forks,
        Self::Execs,
        Self::Argv,
        Self::Cpu,
        Self::Split,
        Self::Switches,
        Self::RunDelay,
        Self::Faults,
        Self::PeakRss,
        Self::Io,
        Self::LookupsOpen,
        Self::LookupsStat,
        Self::LookupsAccess,
        Self::LookupsReadlink,
        Self::LookupsChdir,
        Self::LookupsExec,
        Self::Samples,
        Self::Memory,
        Self::Environment,
    ];

    /// The families of calls whose failures are look-ups in vain.
    pub const LOOKUPS: [Self; 5] = [
        Self::LookupsOpen,
        Self::LookupsStat,
        Self::LookupsAccess,
        Self::LookupsReadlink,
        Self::LookupsChdir,
    ];

    /// Its stable name, as in a header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forks => "forks",
            Self::Execs => "execs",
            Self::Argv => "argv",
            Self::Cpu => "cpu",
            Self::Split => "split",
            Self::Switches => "switches",
            Self::RunDelay => "run_delay",
            Self::Faults => "faults",
            Self::PeakRss => "peak_rss",
            Self::Io => "io",
            Self::LookupsOpen => "lookups_open",
            Self::LookupsStat => "lookups_stat",
            Self::LookupsAccess => "lookups_access",
            Self::LookupsReadlink => "lookups_readlink",
            Self::LookupsChdir => "lookups_chdir",
            Self::LookupsExec => "lookups_exec",
            Self::Samples => "samples",
            Self::Memory => "memory",
            Self::Environment => "environment",
        }
    }

    /// What it is, for people: "failed stats are not known".
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
        }
    }

    /// The family of calls that it is about, as `Header::misses` names it.
    pub fn family(self) -> Option<&'static str> {
        self.name().strip_prefix("lookups_")
    }
}

/// How well a source knows a quantity. What was lost while recording is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// Each value is exact.
    Exact,
    /// Values are estimated.
    Estimate {
        /// By which method.
        method: String,
    },
    /// There are none.
    Absent {
        /// Why.
        reason: String,
    },
}

impl Knowledge {
    fn absent(reason: impl Into<String>) -> Self {
        Self::Absent { reason: reason.into() }
    }
}

impl Header {
    /// How well the recording knows a quantity: what it says itself, or, of traces made before they
    /// said it, what follows from what the recorder was asked for.
    pub fn knows(&self, quantity: Quantity) -> Knowledge {
        self.knowledge.get(quantity.name()).cloned().unwrap_or_else(|| self.was_asked_for(quantity))
    }

    /// With a word on each quantity: what the source has said of it, or else as it was asked for.
    #[must_use]
    pub fn with_knowledge(mut self) -> Self {
        for quantity in Quantity::ALL {
            let knowledge = self.knows(quantity);
            self.knowledge.insert(quantity.name().to_owned(), knowledge);
        }
        self
    }

    /// Says that no quantity is known.
    pub fn knows_nothing(&mut self, reason: &str) {
        for quantity in Quantity::ALL {
            self.knowledge.insert(quantity.name().to_owned(), Knowledge::absent(reason));
        }
    }

    /// How well a recorder that takes everything from the kernel knows a quantity, by what it was
    /// asked for.
    pub fn was_asked_for(&self, quantity: Quantity) -> Knowledge {
        if let Some(family) = quantity.family() {
            return match self.misses.iter().any(|wanted| wanted == family) {
                true => Knowledge::Exact,
                false => Knowledge::absent("left out by --misses"),
            };
        }
        match quantity {
            Quantity::Split => Knowledge::Estimate {
                method: "exact CPU time divided as the scheduler's ticks are, pooled by program"
                    .into(),
            },
            Quantity::Memory if self.memory_interval_ns.is_none() => {
                Knowledge::absent("recorded without --memory")
            }
            Quantity::Environment if self.env_names.is_empty() => {
                Knowledge::absent("left out by --no-env")
            }
            _ => Knowledge::Exact,
        }
    }
}
