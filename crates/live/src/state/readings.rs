//! Readings of what tasks have used, and what other streams tell of tasks before their birth.

use proctrace_replay::ticks::{Own, Ticks};
use proctrace_wire::layout::Sample;

use super::FastMap;
use proctrace_replay::Usage;

/// Samples that wait for the birth of their task, which another stream has.
const EARLY_MAX: usize = 1 << 12;

/// The last reading of a task that is alive.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    seen: Usage,
    /// CPU time and ticks that no stretch has used yet.
    pending_run_ns: u64,
    pending: Ticks,
}

impl Reading {
    /// The first reading: what the task used before it was recorded.
    pub(crate) fn first(seen: Usage) -> Self {
        Self { seen, ..Self::default() }
    }

    /// Notes a later reading; returns what was added since the last. At a sample and at the end, `stretch_ns` is how
    /// much time in ticks a stretch needs.
    pub(crate) fn read(&mut self, reading: Usage, stretch_ns: Option<u64>) -> Added {
        let later = self.seen.or_later(reading);
        let used = later.since(self.seen);
        self.seen = later;
        self.pending_run_ns = self.pending_run_ns.saturating_add(used.run_ns);
        self.pending = self.pending.plus(used.ticks());
        let own = stretch_ns.map_or(Own::default(), |stretch_ns| self.stretch(stretch_ns));
        Added { used, own }
    }

    /// A stretch of at least so much time in ticks, if that has passed since the last.
    fn stretch(&mut self, stretch_ns: u64) -> Own {
        if self.pending.total_ns() < stretch_ns.max(1) {
            return Own::default();
        }
        let (run_ns, ticks) = (self.pending_run_ns, self.pending);
        (self.pending_run_ns, self.pending) = (0, Ticks::default());
        Own { run_ns, ticks, system_ns: run_ns as f64 * ticks.system_share() }
    }
}

/// Usage of a task since its last reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Added {
    pub(crate) used: Usage,
    /// The stretch that ended.
    pub(crate) own: Own,
}

/// Records that came before the birth of their task.
#[derive(Debug, Clone, Default)]
pub(crate) struct Early {
    samples: FastMap<u32, Sample>,
    /// Failed look-ups by task.
    misses: FastMap<u32, u64>,
}

impl Early {
    /// Keeps a sample until its task is born.
    pub(crate) fn keep(&mut self, sample: Sample) {
        if self.samples.len() >= EARLY_MAX {
            self.samples.clear();
        }
        self.samples.insert(sample.head.task, sample);
    }

    /// The sample that came before the birth of its task.
    pub(crate) fn take(&mut self, task: u32) -> Option<Sample> {
        if self.samples.is_empty() { None } else { self.samples.remove(&task) }
    }

    /// Counts a failed look-up of a task that is not born yet; false if there is no room.
    pub(crate) fn keep_miss(&mut self, task: u32) -> bool {
        if self.misses.len() >= EARLY_MAX && !self.misses.contains_key(&task) {
            return false;
        }
        let misses = self.misses.entry(task).or_default();
        *misses = misses.saturating_add(1);
        true
    }

    /// The failed look-ups that came before the birth of their task.
    pub(crate) fn take_misses(&mut self, task: u32) -> u64 {
        if self.misses.is_empty() { 0 } else { self.misses.remove(&task).unwrap_or(0) }
    }

    /// Failed look-ups of tasks whose birth has not been seen.
    pub(crate) fn misses(&self) -> u64 {
        self.misses.values().fold(0, |sum, misses| sum.saturating_add(*misses))
    }
}
