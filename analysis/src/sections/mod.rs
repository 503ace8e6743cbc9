//! The sections of a report: each a function from a recording to tables and figures.

mod accounting;
mod ancestry;
mod concurrency;
pub(crate) mod correlations;
mod counts;
pub(crate) mod ends;
mod lifetimes;
pub(crate) mod pool;
mod spawners;
mod startup;
mod switches;

use crate::error::AnalysisError;
use crate::options::{Content, Options};
use crate::recording::Recording;

/// A section.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// A stable name.
    pub name: &'static str,
    /// What it answers, in a few words.
    pub help: &'static str,
    analyse: fn(&Recording, &Options) -> Result<Content, AnalysisError>,
}

impl Section {
    /// Every section, in the order of a report.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "counts",
            help: "processes and threads by category and by program",
            analyse: counts::section,
        },
        Self {
            name: "lifetimes",
            help: "how long processes live, and what samplers miss of them",
            analyse: lifetimes::section,
        },
        Self {
            name: "ends",
            help: "what failed, and what a signal killed",
            analyse: ends::section,
        },
        Self {
            name: "spawners",
            help: "who starts what, by program and command line",
            analyse: spawners::section,
        },
        Self {
            name: "ancestry",
            help: "chains of programs from the command down",
            analyse: ancestry::section,
        },
        Self {
            name: "accounting",
            help: "exact CPU time, and what time, prmon and ps would have said",
            analyse: accounting::section,
        },
        Self {
            name: "correlations",
            help: "what goes with what over time",
            analyse: correlations::section,
        },
        Self {
            name: "switches",
            help: "context switches against efficiency",
            analyse: switches::section,
        },
        Self {
            name: "concurrency",
            help: "how many tasks run, wait and sleep; the serial part",
            analyse: concurrency::section,
        },
        Self {
            name: "startup",
            help: "what programs cost until their libraries are loaded",
            analyse: startup::section,
        },
        Self {
            name: "pool",
            help: "workers side by side: phases, balance, memory that they share",
            analyse: pool::section,
        },
    ];

    /// The section of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|section| section.name == name)
    }

    /// What it says of a recording.
    ///
    /// # Errors
    /// When a table cannot be computed, which would be a fault of this crate.
    pub fn of(&self, recording: &Recording, options: &Options) -> Result<Content, AnalysisError> {
        let content = (self.analyse)(recording, options)?;
        Ok(content.only_known(&recording.knows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = Section::ALL.iter().map(|section| section.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Section::ALL.len());
    }
}
