//! What to request from a batch system, for a job as a whole and for the steps of each group, and what was requested.

use serde::Serialize;

use crate::number::{bytes, count, time};

/// Where a peak of memory comes from, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryFrom {
    /// The sum of PSS, read while it ran.
    Pss,
    /// The peak RSS of the largest process, which was more than any reading of all of them: there may have been more.
    Largest,
    /// The sum of the peak RSS of processes that were alive at one time: at least as much as was used.
    PeaksAtOnce,
}

impl MemoryFrom {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pss => "PSS",
            Self::Largest => "RSS",
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
    /// Mean number of CPUs that the busiest of them used; of the job, CPUs in all but the busiest moments. `None` if that is
    /// not known.
    pub cores_used: Option<f64>,
    /// Whole CPUs to request.
    pub cores: Option<u64>,
    /// Largest peak of memory; `None` if that is not known.
    pub memory_used_bytes: Option<u64>,
    /// Where that comes from.
    pub memory_from: MemoryFrom,
    /// Memory to request.
    pub memory_bytes: Option<u64>,
    /// Largest sum of the sizes of the files that it wrote below the directory of the job; `None` if that is not known.
    pub disk_used_bytes: Option<u64>,
    /// Disk space to request for these.
    pub disk_bytes: Option<u64>,
    /// The longest wall time.
    pub wall_used_ns: u64,
    /// Wall time to request, in whole minutes.
    pub wall_ns: u64,
}

/// Something that is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// CPUs.
    Cores,
    /// Memory, in bytes.
    Memory,
    /// Wall time, in nanoseconds.
    Wall,
}

/// A request that was twice what was needed or more, or half of what was used or less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mismatch {
    /// What was requested.
    pub resource: Resource,
    /// How much, in the unit of the resource.
    pub asked: u64,
    /// The variable of the batch system that says so.
    pub variable: &'static str,
    /// How much was used: of CPUs, in all but the busiest moments.
    pub used: f64,
    /// What to request instead.
    pub fits: u64,
}

impl Mismatch {
    /// What was requested, in words.
    pub fn what(&self) -> &'static str {
        match self.resource {
            Resource::Cores => "CPUs",
            Resource::Memory => "memory",
            Resource::Wall => "wall time",
        }
    }

    /// An amount of it.
    pub fn amount(&self, value: f64) -> String {
        match self.resource {
            Resource::Cores if value.fract() == 0.0 => count(value as u64),
            Resource::Cores => format!("{value:.1}"),
            Resource::Memory => bytes(value as u64),
            Resource::Wall => time(value as u64),
        }
    }

    /// One line of text.
    pub fn says(&self) -> String {
        let of = |value: f64| self.amount(value);
        let (asked, used, fits) = (of(self.asked as f64), of(self.used), of(self.fits as f64));
        format!(
            "{}: {asked} for the job ({}), {used} used; {fits} would do",
            self.what(),
            self.variable
        )
    }
}
