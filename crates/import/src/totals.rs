//! What a log adds up to: counts for the trailer and the header, and the command.

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
    /// Paths of opens as they were given, instead of those of the files.
    pub(crate) opens_as_given: u64,
}

/// The first task: the command, if strace launched it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Root {
    pub(crate) serial: u32,
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) status: Option<u32>,
    pub(crate) ended_ns: u64,
}
