//! The sections of a report: each a function from a recording to tables and charts.

mod accounting;
mod ancestry;
mod concurrency;
pub(crate) mod correlations;
mod counts;
mod critical_path;
mod detached;
mod ends;
mod health;
mod lifetimes;
mod lookups;
mod memory;
mod opens;
mod phases;
pub(crate) mod pool;
mod requests;
mod spawners;
mod startup;
mod step_files;
mod steps;
mod summary;
mod switches;

use proctrace_findings::Table;
use proctrace_overview::nearest::nearest;
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;

use self::correlations::MATRIX;
use crate::analysis::Analysis;

/// A section.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its stable name.
    pub name: &'static str,
    /// The question it answers, in a few words.
    pub help: &'static str,
    pub(crate) analyse: fn(&Analysis<'_>, &Options) -> Content,
    /// Names of those of its tables that a report shows even if the section is not requested.
    pub(crate) shown: &'static [&'static str],
}

impl Section {
    /// Every section, in the order of a report.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "summary",
            help: "key figures, each under a stable name",
            analyse: summary::section,
            shown: &[],
        },
        Self {
            name: "counts",
            help: "processes and threads by category and by program",
            analyse: counts::section,
            shown: &["programs"],
        },
        Self {
            name: "lifetimes",
            help: "process lifetimes, and short processes that samplers miss",
            analyse: |of, options| lifetimes::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "ends",
            help: "processes that failed or were killed by a signal",
            analyse: ends::section,
            shown: &["ends"],
        },
        Self {
            name: "spawners",
            help: "processes started, by program and command line",
            analyse: spawners::section,
            shown: &["spawn_pairs"],
        },
        Self {
            name: "ancestry",
            help: "chains of programs from the command down",
            analyse: |of, options| ancestry::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "critical-path",
            help: "what the wall time went for: the decisive chain of processes",
            analyse: critical_path::section,
            shown: &[],
        },
        Self {
            name: "phases",
            help: "what happened between the marks of the payload (proctrace mark)",
            analyse: phases::section,
            shown: &["phases"],
        },
        Self {
            name: "steps",
            help: "units of work of make, ninja, a workflow and others, by group",
            analyse: steps::section,
            shown: &["step_groups"],
        },
        Self {
            name: "step-files",
            help: "files that one step writes and another one reads; orders not declared",
            analyse: |of, options| step_files::section(of.recording, options),
            shown: &["step_missing_needs"],
        },
        Self {
            name: "requests",
            help: "cores, memory and wall time to request for a step of each group",
            analyse: |of, options| requests::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "lookups",
            help: "failed look-ups by directory, program and path",
            analyse: lookups::section,
            shown: &["lookups"],
        },
        Self {
            name: "opens",
            help: "opened files: how often, for what, and who reads what others wrote",
            analyse: opens::section,
            shown: &[],
        },
        Self {
            name: "accounting",
            help: "exact CPU time, compared with time, prmon and ps",
            analyse: |of, options| accounting::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "detached",
            help: "processes that outlived their parent",
            analyse: detached::section,
            shown: &["detached"],
        },
        Self {
            name: "memory",
            help: "memory of each process, and of all processes over time",
            analyse: memory::section,
            shown: &["memory_processes"],
        },
        Self {
            name: "correlations",
            help: "correlations between quantities over time",
            analyse: |of, _| correlations::section(of.correlations(), of.recording.knows()),
            shown: &["correlation_matrix"],
        },
        Self {
            name: "switches",
            help: "context switches and CPU efficiency",
            analyse: |of, options| switches::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "concurrency",
            help: "numbers of running, waiting and sleeping tasks; serial part",
            analyse: |of, options| concurrency::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "startup",
            help: "cost of starting programs, until their libraries are loaded",
            analyse: |of, options| startup::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "pool",
            help: "parallel workers: phases, balance, shared memory",
            analyse: |of, options| pool::section(of.recording, options),
            shown: &[],
        },
        Self {
            name: "health",
            help: "lost records, consistency checks, accuracy of each quantity",
            analyse: health::section,
            shown: &[],
        },
    ];

    /// The name of a section that was probably meant.
    pub fn meant(name: &str) -> Option<&'static str> {
        nearest(name, Self::ALL.iter().map(|section| section.name))
    }

    /// The section of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|section| section.name == name)
    }

    /// Returns whether a report has a table of this section when no section is requested.
    pub fn shows(&self, table: &Table) -> bool {
        // Of the tables without rows, only the matrix has a message: why it is empty.
        self.shown.contains(&table.name) && (table.height() > 0 || table.name == MATRIX)
    }

    /// The contents of this section for a recording. For several sections, [`Analysis::section`]
    /// saves passes over all processes.
    pub fn of(&self, recording: &Recording, options: &Options) -> Content {
        Analysis::of(recording).section(self, options)
    }
}

impl Analysis<'_> {
    /// The contents of a section.
    pub fn section(&self, section: &Section, options: &Options) -> Content {
        let content = (section.analyse)(self, options);
        content.only_known(self.recording.knows())
    }

    /// The tables that a report shows when no section is requested.
    pub fn report_tables(&self, options: &Options) -> Vec<Table> {
        self.prepare();
        let mut tables = Vec::new();
        for section in Section::ALL.iter().filter(|section| !section.shown.is_empty()) {
            let content = self.section(section, options);
            tables.extend(content.tables.into_iter().filter(|table| section.shows(table)));
        }
        tables
    }

    /// The contents of all sections, in their order.
    pub fn sections(&self, options: &Options) -> Vec<(&'static Section, Content)> {
        self.prepare();
        Section::ALL.iter().map(|section| (section, self.section(section, options))).collect()
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
