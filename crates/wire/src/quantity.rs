//! The quantities that records tell, each of which a source of records may lack.

use strum::{IntoStaticStr, VariantArray};

use crate::Kind;

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
    /// Sizes of files that were written, and removals of files.
    FileSizes,
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

    /// Those needed to know the failed look-ups of each program.
    pub const LOOKUPS_OF_PROGRAMS: [Self; 7] = [
        Self::Forks,
        Self::Execs,
        Self::LookupsOpen,
        Self::LookupsStat,
        Self::LookupsAccess,
        Self::LookupsReadlink,
        Self::LookupsChdir,
    ];

    /// Those needed to know the failed look-ups of each phase, which marks in arguments begin.
    pub const LOOKUPS_OF_PHASES: [Self; 7] = [
        Self::Execs,
        Self::Argv,
        Self::LookupsOpen,
        Self::LookupsStat,
        Self::LookupsAccess,
        Self::LookupsReadlink,
        Self::LookupsChdir,
    ];

    /// Those needed to know which program each process ran: its own exec, or its forker's program.
    pub const WHO: [Self; 2] = [Self::Forks, Self::Execs];

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
            Self::FileSizes => "sizes of files",
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

    /// True if losing records of a kind makes it incomplete; `None` is a kind that this version does not know.
    pub fn is_lost_with(self, kind: Option<Kind>) -> bool {
        match kind {
            // A task that is not followed is missing from every quantity.
            Some(Kind::Fork | Kind::Attach) | None => true,
            Some(Kind::Exec) => matches!(self, Self::Execs | Self::Argv),
            Some(Kind::ExecArgs) => self == Self::Argv,
            Some(Kind::ExecFailed) => self == Self::LookupsExec,
            Some(Kind::Exit) => matches!(
                self,
                Self::Cpu
                    | Self::Split
                    | Self::Switches
                    | Self::RunDelay
                    | Self::Faults
                    | Self::PeakRss
                    | Self::Io
            ),
            Some(Kind::LookupFailed | Kind::LookupNamed | Kind::LookupAgain) => {
                Self::LOOKUPS.contains(&self)
            }
            Some(Kind::Sample | Kind::Tick) => self == Self::Samples,
            Some(Kind::Env) => self == Self::Environment,
            Some(Kind::Memory) => self == Self::Memory,
            Some(Kind::LookupTime) => self == Self::LookupTimes,
            Some(Kind::OpenedNamed | Kind::OpenedAgain) => self == Self::OpenedFiles,
            Some(Kind::Moved) => matches!(self, Self::OpenedFiles | Self::FileSizes),
            Some(Kind::Written) => self == Self::FileSizes,
            Some(Kind::Place | Kind::Mounts) => self == Self::Mounts,
            Some(Kind::Wait) => self == Self::Waits,
            Some(Kind::Signal) => self == Self::Signals,
            Some(Kind::Rename | Kind::Loss | Kind::Blind | Kind::Workdir) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_names_and_descriptions() {
        assert_eq!(
            (Quantity::RunDelay.name(), Quantity::PeakRss.says()),
            ("run_delay", "peak memory")
        );
        let families = Quantity::LOOKUPS.map(|quantity| quantity.family().unwrap());
        assert_eq!(families, ["open", "stat", "access", "readlink", "chdir"]);
        assert_eq!((Quantity::LookupsExec.family(), Quantity::Cpu.family()), (Some("exec"), None));
        for quantity in Quantity::ALL {
            assert!(!quantity.says().is_empty() && !quantity.says().contains('_'), "{quantity:?}");
        }
    }

    /// What becomes incomplete where records of a kind were lost, by name.
    #[test]
    fn what_is_lost_with_records_is_known() {
        let lookups = "lookups_open lookups_stat lookups_access lookups_readlink lookups_chdir";
        for (kinds, quantities) in [
            ("exec", "execs argv"),
            ("exec_args", "argv"),
            ("exec_failed", "lookups_exec"),
            ("exit", "cpu split switches run_delay faults peak_rss io"),
            ("lookup_failed lookup_named lookup_again", lookups),
            ("sample tick", "samples"),
            ("env", "environment"),
            ("memory", "memory"),
            ("lookup_time", "lookup_times"),
            ("opened_named opened_again", "opened_files"),
            ("moved", "opened_files file_sizes"),
            ("written", "file_sizes"),
            ("place mounts", "mounts"),
            ("wait", "waits"),
            ("signal", "signals"),
            ("rename loss blind workdir", ""),
        ] {
            for kind in kinds.split(' ') {
                let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).unwrap();
                let lost =
                    Quantity::ALL.iter().filter(|quantity| quantity.is_lost_with(Some(kind)));
                let lost: Vec<&str> = lost.map(|quantity| quantity.name()).collect();
                assert_eq!(lost.join(" "), quantities, "{kind}");
            }
        }
        for kind in [Some(Kind::Fork), Some(Kind::Attach), None] {
            assert!(Quantity::ALL.iter().all(|quantity| quantity.is_lost_with(kind)), "{kind:?}");
        }
    }
}
