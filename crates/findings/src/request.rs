//! What to request from a batch system, for a job as a whole and for the steps of each group.

/// Where a peak of memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFrom {
    /// The sum of PSS, read while it ran.
    Pss,
    /// The sum of the peak RSS of processes that were alive at one time: at least as much as was used.
    PeaksAtOnce,
}

impl MemoryFrom {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pss => "PSS",
            Self::PeaksAtOnce => "at most",
        }
    }
}

/// What was needed, and what to request for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The group of steps; `None` for the job as a whole.
    pub group: Option<String>,
    /// Steps that were looked at.
    pub steps: u64,
    /// Mean number of CPUs that the busiest of them used; `None` if that is not known.
    pub cores_used: Option<f64>,
    /// Whole CPUs to request.
    pub cores: Option<u64>,
    /// Largest peak of memory; `None` if that is not known.
    pub memory_used_bytes: Option<u64>,
    /// Where that comes from.
    pub memory_from: MemoryFrom,
    /// Memory to request.
    pub memory_bytes: Option<u64>,
    /// The longest wall time.
    pub wall_used_ns: u64,
    /// Wall time to request, in whole minutes.
    pub wall_ns: u64,
}
