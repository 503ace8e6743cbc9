//! Numbers of a recording's records, and totals over its tasks.

use std::collections::HashMap;

use crate::task::Task;
use proctrace_replay::Usage;

/// Numbers of records, counted while reading.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    pub attaches: u64,
    pub forks: u64,
    pub execs: u64,
    pub execs_failed: u64,
    /// Number of these that were tries along a list of directories: the same process tried the same name
    /// in another one next, or before.
    pub execs_searched: u64,
    pub exits: u64,
    pub lookups_failed: u64,
    /// Number of these that were readlinks of files that exist but are not symbolic links:
    /// realpath(3) tests this way.
    pub not_links: u64,
    /// Number of these that were marks.
    pub marks: u64,
    /// The remaining ones by family, in the order of `Family::ALL`.
    pub by_family: [u64; 6],
    /// Exits whose peak RSS is an upper bound.
    pub(crate) rss_bounds: u64,
    /// Execs and look-ups of tasks that no fork or attach record announced.
    pub orphans: u64,
    /// Exits of such tasks.
    pub(crate) orphan_exits: u64,
    /// Latest reported count of lost records, by kind, reason and CPU.
    pub losses: HashMap<(u16, u16, u32), u64>,
}

impl Counts {
    /// Look-ups that failed, without those that found a file that is no link, and without marks.
    pub fn in_vain(&self) -> u64 {
        self.lookups_failed.saturating_sub(self.not_links).saturating_sub(self.marks)
    }
}

/// Totals over all tasks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub used: Usage,
    /// Tasks other than the first of each process.
    pub threads: u64,
    /// Tasks that have not ended: their per-task counts were never reported.
    pub alive: u64,
    /// Per-task counts of ended tasks: successful opens, failed look-ups and failed execs.
    pub opens: u64,
    pub lookups_failed: u64,
    pub execs_failed: u64,
}

impl Totals {
    /// The sum of both.
    pub fn plus(self, other: &Self) -> Self {
        Self {
            used: self.used.plus(other.used),
            threads: self.threads + other.threads,
            alive: self.alive + other.alive,
            opens: self.opens.saturating_add(other.opens),
            lookups_failed: self.lookups_failed.saturating_add(other.lookups_failed),
            execs_failed: self.execs_failed.saturating_add(other.execs_failed),
        }
    }

    pub fn add(&mut self, task: &Task) {
        self.threads += u64::from(task.is_thread);
        match task.end() {
            None => {
                self.used = self.used.plus(task.used());
                self.alive += 1;
            }
            Some(end) => {
                let used = end.record.used;
                let used = task.before().map_or(used, |before| used.since(*before));
                self.used = self.used.plus(used);
                let count = |sum: u64, more: u32| sum.saturating_add(more.into());
                self.opens = count(self.opens, end.record.opens);
                self.lookups_failed = count(self.lookups_failed, end.record.lookups_failed);
                self.execs_failed = count(self.execs_failed, end.record.execs_failed);
            }
        }
    }
}
