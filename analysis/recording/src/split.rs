//! User and system time of a whole recording, how certain they are, and the stretches of tasks with
//! many ticks; the arithmetic and its reasons are in `proctrace_replay::ticks`, where the live view
//! has it too.

use proctrace_findings::{Table, Unit};
use proctrace_replay::CpuTime;
pub use proctrace_replay::ticks::Ticks;
pub use proctrace_replay::ticks::{
    Balance, ENOUGH_TICKS, Own, Pools, TickLength, divide, stretch_ns,
};
use proctrace_wire::Quantity;

use proctrace_stats::wilson;

use proctrace_classify::fast::{Bits, FastMap};

/// Maximum pending increases of a task that lacks enough ticks; beyond it, neighbours are merged.
const PENDING_MAX: usize = 256;

/// CPU time of a group, and its own ticks, which determine how certain its split is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Divided {
    /// The total is exact.
    pub cpu: CpuTime,
    pub ticks: Ticks,
}

impl Divided {
    pub fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.ticks = self.ticks.plus(other.ticks);
    }
}

/// Certainty of the split of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certainty {
    /// Ticks that hit the group: the sample size n of its estimate.
    pub ticks: f64,
    /// System CPU time of the group in percent; `None` with fewer than [`ENOUGH_TICKS`].
    pub system_percent: Option<f64>,
    /// The 95 % interval of the fraction of ticks in the kernel (Wilson 1927), in percent; `None`
    /// without ticks.
    pub interval_percent: Option<(f64, f64)>,
}

/// Split of CPU time for a whole recording.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Split {
    /// Length of a tick.
    pub tick_ns: u64,
    /// Ticks that hit any task.
    pub ticks: Ticks,
}

impl Split {
    /// Uses the recorded tick length, if there is one. Older recordings lack it; then it is estimated
    /// from what the tasks were charged.
    pub fn new(told_ns: Option<u64>, charged_ns: impl Iterator<Item = Ticks>) -> Self {
        let (mut ticks, mut length) = (Ticks::default(), TickLength::default());
        for charged in charged_ns {
            ticks = ticks.plus(charged);
            length.note(charged);
        }
        Self { tick_ns: length.ns(told_ns), ticks }
    }

    /// Computes the correction that makes the sum of all parts agree with the ticks of the whole.
    pub fn balance(&self, parts: CpuTime) -> Balance {
        Balance::of_whole(parts, self.ticks)
    }

    /// The number of ticks.
    pub fn count(&self, ticks: Ticks) -> f64 {
        ticks.count(self.tick_ns)
    }

    /// True if CPU time can be split at all.
    pub fn is_known(&self) -> bool {
        self.count(self.ticks) >= ENOUGH_TICKS
    }

    /// The split of a group by itself; `None` with fewer than [`ENOUGH_TICKS`].
    pub fn own(&self, group: &Divided) -> Option<CpuTime> {
        (self.is_known() && self.count(group.ticks) >= ENOUGH_TICKS).then_some(group.cpu)
    }

    /// CPU time of something other than a process, such as one of its programs, split by its own
    /// ticks; `None` with fewer than [`ENOUGH_TICKS`].
    pub fn pooled(&self, run_ns: u64, ticks: Ticks) -> Option<CpuTime> {
        (self.count(ticks) >= ENOUGH_TICKS)
            .then(|| divide(run_ns, &Own::default(), ticks.system_share()))
    }

    /// Certainty of a group's split.
    pub fn certainty(&self, group: &Divided) -> Certainty {
        let ticks = self.count(group.ticks);
        let total_ns = group.cpu.total_ns();
        let enough = ticks >= ENOUGH_TICKS && self.is_known() && total_ns > 0;
        Certainty {
            ticks: (ticks * 100.0).round() / 100.0,
            system_percent: enough.then(|| 100.0 * group.cpu.system_ns as f64 / total_ns as f64),
            interval_percent: wilson(group.ticks.system_share(), ticks)
                .map(|(low, high)| (rounded(100.0 * low), rounded(100.0 * high))),
        }
    }
}

/// Columns with the system CPU time of groups in percent, and for programs the ticks it is based
/// on.
pub fn columns(
    table: Table,
    split: &Split,
    groups: impl Iterator<Item = Divided> + Clone,
) -> Table {
    let certain = || groups.clone().map(|group| split.certainty(&group));
    table
        .real(
            "system_percent",
            "system",
            Unit::Percent,
            certain().map(|certain| certain.system_percent),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .real(
            "system_low_percent",
            "system from",
            Unit::Percent,
            certain().map(|certain| certain.interval_percent.map(|interval| interval.0)),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
        .real(
            "system_high_percent",
            "system to",
            Unit::Percent,
            certain().map(|certain| certain.interval_percent.map(|interval| interval.1)),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
        .real("ticks", "ticks", Unit::Count, certain().map(|certain| certain.ticks))
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
}

/// Square roots differ in the last digits between machines; printed results must not.
fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

/// The increase of a task's usage over an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    pub from_ns: u64,
    pub to_ns: u64,
    pub run_ns: u64,
    pub ticks: Ticks,
}

impl Growth {
    fn join(&mut self, next: &Self) {
        self.to_ns = next.to_ns;
        self.run_ns = self.run_ns.saturating_add(next.run_ns);
        self.ticks = self.ticks.plus(next.ticks);
    }
}

/// Splits the CPU time of tasks by their own ticks where there are enough, while samples are read.
#[derive(Debug, Default)]
pub struct Stretches {
    stretch_ns: u64,
    pending: FastMap<usize, Vec<Growth>>,
    own: FastMap<usize, Own>,
    /// Tasks that have an entry of their own.
    owners: Bits,
}

impl Stretches {
    pub fn new(tick_ns: u64) -> Self {
        Self { stretch_ns: stretch_ns(tick_ns), ..Self::default() }
    }

    /// Adds an increase of a task's usage. Calls `divided` with each increase that can be split
    /// now, and with the fraction of it that is system time.
    pub fn push(&mut self, task: usize, growth: Growth, mut divided: impl FnMut(&Growth, f64)) {
        let pending = self.pending.entry(task).or_default();
        pending.push(growth);
        let ticks = pending.iter().fold(Ticks::default(), |sum, growth| sum.plus(growth.ticks));
        if ticks.total_ns() >= self.stretch_ns.max(1) {
            let share = ticks.system_share();
            self.owners.insert(task);
            let own = self.own.entry(task).or_default();
            for growth in pending.drain(..) {
                own.run_ns = own.run_ns.saturating_add(growth.run_ns);
                own.system_ns += growth.run_ns as f64 * share;
                divided(&growth, share);
            }
            own.ticks = own.ticks.plus(ticks);
        } else if pending.len() >= PENDING_MAX {
            let mut joined = Vec::with_capacity(PENDING_MAX / 2);
            for pair in pending.chunks(2) {
                let mut first = pair[0];
                if let Some(second) = pair.get(1) {
                    first.join(second);
                }
                joined.push(first);
            }
            *pending = joined;
        }
    }

    /// True if an increase has enough ticks by itself, so that a task that was never sampled need
    /// not be remembered.
    pub fn suffices(&self, growth: &Growth) -> bool {
        growth.ticks.total_ns() >= self.stretch_ns.max(1)
    }

    /// The increases of a task that never got enough ticks.
    pub(crate) fn take_pending(&mut self, task: usize) -> Vec<Growth> {
        self.pending.remove(&task).unwrap_or_default()
    }

    /// The part of a task's CPU time that was split by its own ticks.
    #[inline]
    pub fn own(&self, task: usize) -> Own {
        if !self.owners.contains(task) {
            return Own::default();
        }
        self.own.get(&task).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
