//! Totals of a log: counts for the trailer and the header, and the command.

/// Counts for the trailer and the header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) processes: u64,
    pub(crate) threads: u64,
    /// Tasks whose pid was given to another although the log has no end of them.
    pub(crate) unended: u64,
    /// Execs of which arguments are missing.
    pub(crate) argv_cut: u64,
    /// Execs with and without environment variables in the log.
    pub(crate) with_environment: u64,
    pub(crate) without_environment: u64,
    pub(crate) environments_cut: u64,
    /// Execs of which nothing of the arguments is known.
    pub(crate) without_arguments: u64,
    /// Execs.
    pub(crate) execs: u64,
    /// Tasks whose birth is not in the log, except those of which the log says whose threads they are.
    pub(crate) unborn: u64,
    /// Paths of opens as they were given, instead of those of the files.
    pub(crate) opens_as_given: u64,
}

/// The first task: the command, if strace launched it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Root {
    pub(crate) serial: u32,
    pub(crate) argv: Vec<Vec<u8>>,
    /// The directory in which it was launched, if the log shows it.
    pub(crate) cwd: Option<Vec<u8>>,
    pub(crate) status: Option<u32>,
    pub(crate) ended_ns: u64,
}
