//! User and system time: exact CPU time, split in proportion to the ticks in user and kernel mode.
//!
//! The kernel samples the mode of a task at scheduler ticks (1 to 10 ms apart) and misses most
//! short tasks entirely. wait(2), getrusage(2) and /proc/PID/stat then count the whole run time of
//! a task that no tick hit in the kernel as user time (cputime_adjust() in kernel/sched/cputime.c).
//! This is a bias that does not average out over many processes: for 3,000 runs of /bin/true they
//! report 18 % system time, where cpu.stat, /proc/stat and perf report 58 %.
//!
//! The ticks themselves are an unbiased sample of CPU time, so they are pooled. The CPU time of a
//! task with enough ticks is split by its own ticks, stretch by stretch. All other tasks of a
//! program share the ticks that hit any of them; a program with few ticks borrows from its
//! category, and a category from the rest of the tree. Each task's CPU time is split once, so that
//! parts add up to the whole however tasks are grouped. The whole is split by all of its ticks;
//! where programs were hit by more or fewer ticks than their CPU time would predict, all parts are
//! scaled by the same factor.

use proctrace_findings::{Table, Unit};
use proctrace_replay::CpuTime;

use crate::recording::fast::{Bits, FastMap};

/// A group with fewer ticks is given an interval, but no value of its own.
pub(crate) const ENOUGH_TICKS: f64 = 30.0;

/// Ticks in a task's own stretch: a standard error of at most 7 percentage points.
const STRETCH_TICKS: f64 = 50.0;

/// CONFIG_HZ of 1000, 250 and 100; 300 is rare and treated as 250.
const KERNEL_TICKS_NS: [u64; 3] = [1_000_000, 4_000_000, LONGEST_TICK_NS];
const LONGEST_TICK_NS: u64 = 10_000_000;

/// Maximum pending increases of a task that lacks enough ticks; beyond it, neighbours are merged.
const PENDING_MAX: usize = 256;

/// Quantile of the normal distribution for a 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// CPU time as the kernel sampled it: the number of ticks times their length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Ticks in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Ticks in the kernel, in nanoseconds.
    pub system_ns: u64,
}

impl Ticks {
    pub(crate) fn total_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(other.user_ns),
            system_ns: self.system_ns.saturating_sub(other.system_ns),
        }
    }
}

/// CPU time of a group, and its own ticks, which determine how certain its split is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Divided {
    /// The total is exact.
    pub(crate) cpu: CpuTime,
    pub(crate) ticks: Ticks,
}

impl Divided {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.ticks = self.ticks.plus(other.ticks);
    }
}

/// How certain the split of a group is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Certainty {
    /// Ticks that hit the group: the sample size n of its estimate.
    pub(crate) ticks: f64,
    /// System CPU time of the group in percent; `None` with fewer than [`ENOUGH_TICKS`].
    pub(crate) system_percent: Option<f64>,
    /// The 95 % interval of the fraction of ticks in the kernel (Wilson 1927), in percent; `None`
    /// without ticks.
    pub(crate) interval_percent: Option<(f64, f64)>,
}

/// What is known of the split for a whole recording.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Split {
    /// Length of a tick.
    pub(crate) tick_ns: u64,
    /// Ticks that hit any task.
    pub(crate) ticks: Ticks,
}

impl Split {
    /// Uses the recorded tick length, if there is one. Older recordings lack it; then it is
    /// estimated as the kernel tick length nearest to what most tasks with little charged time were
    /// charged. (The kernel subtracts from each tick what the hypervisor stole.)
    pub(crate) fn new(told_ns: Option<u64>, charged_ns: impl Iterator<Item = Ticks>) -> Self {
        let mut ticks = Ticks::default();
        let mut seen = [0_u64; KERNEL_TICKS_NS.len()];
        for charged in charged_ns {
            ticks = ticks.plus(charged);
            for ns in [charged.user_ns, charged.system_ns] {
                let nearest = (0..KERNEL_TICKS_NS.len())
                    .filter(|_| (500_000..=12_000_000).contains(&ns))
                    .min_by_key(|at| KERNEL_TICKS_NS[*at].abs_diff(ns));
                if let Some(nearest) = nearest {
                    seen[nearest] += 1;
                }
            }
        }
        // Overestimating the tick length only makes intervals wider.
        let most = (0..seen.len()).rev().max_by_key(|at| seen[*at]).filter(|at| seen[*at] > 0);
        let seen_ns = most.map_or(LONGEST_TICK_NS, |at| KERNEL_TICKS_NS[at]);
        Self { tick_ns: told_ns.filter(|ns| *ns > 0).unwrap_or(seen_ns), ticks }
    }

    /// Computes the correction that makes the sum of all parts agree with the ticks of the whole.
    pub(crate) fn balance(&self, parts: CpuTime) -> Balance {
        if self.ticks.total_ns() == 0 {
            return Balance::default();
        }
        let system = parts.total_ns() as f64 * share(self.ticks);
        Balance::towards(parts.user_ns as f64, parts.system_ns as f64, system)
    }

    /// The number of ticks.
    pub(crate) fn count(&self, ticks: Ticks) -> f64 {
        ticks.total_ns() as f64 / self.tick_ns.max(1) as f64
    }

    /// Whether CPU time can be split at all.
    pub(crate) fn is_known(&self) -> bool {
        self.count(self.ticks) >= ENOUGH_TICKS
    }

    /// The split of a group by itself; `None` with fewer than [`ENOUGH_TICKS`].
    pub(crate) fn own(&self, group: &Divided) -> Option<CpuTime> {
        (self.is_known() && self.count(group.ticks) >= ENOUGH_TICKS).then_some(group.cpu)
    }

    /// CPU time of something other than a process, such as one of its programs, split by its own
    /// ticks; `None` with fewer than [`ENOUGH_TICKS`].
    pub(crate) fn pooled(&self, run_ns: u64, ticks: Ticks) -> Option<CpuTime> {
        (self.count(ticks) >= ENOUGH_TICKS).then(|| divide(run_ns, &Own::default(), share(ticks)))
    }

    /// How certain a group's split is.
    pub(crate) fn certainty(&self, group: &Divided) -> Certainty {
        let ticks = self.count(group.ticks);
        let total_ns = group.cpu.total_ns();
        let enough = ticks >= ENOUGH_TICKS && self.is_known() && total_ns > 0;
        Certainty {
            ticks: (ticks * 100.0).round() / 100.0,
            system_percent: enough.then(|| 100.0 * group.cpu.system_ns as f64 / total_ns as f64),
            interval_percent: wilson(share(group.ticks), ticks)
                .map(|(low, high)| (rounded(100.0 * low), rounded(100.0 * high))),
        }
    }
}

/// Columns with the system CPU time of groups in percent, and for programs the ticks it is based
/// on.
pub(crate) fn columns(
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
        .real(
            "system_low_percent",
            "system from",
            Unit::Percent,
            certain().map(|certain| certain.interval_percent.map(|interval| interval.0)),
        )
        .detail()
        .real(
            "system_high_percent",
            "system to",
            Unit::Percent,
            certain().map(|certain| certain.interval_percent.map(|interval| interval.1)),
        )
        .detail()
        .real("ticks", "ticks", Unit::Count, certain().map(|certain| certain.ticks))
        .detail()
}

/// Square roots differ in the last digits between machines; printed results must not.
fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

/// The fraction of ticks in the kernel; meaningless without ticks.
fn share(ticks: Ticks) -> f64 {
    ticks.system_ns as f64 / (ticks.total_ns() as f64).max(1.0)
}

/// The 95 % interval of a proportion observed in n independent draws (E. B. Wilson, JASA 22, 1927).
fn wilson(share: f64, n: f64) -> Option<(f64, f64)> {
    if n < 1.0 {
        return None;
    }
    let z2 = Z * Z / n;
    let centre = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / n + z2 / (4.0 * n)).sqrt();
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

/// The increase of a task's usage over an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) run_ns: u64,
    pub(crate) ticks: Ticks,
}

impl Growth {
    fn join(&mut self, next: &Self) {
        self.to_ns = next.to_ns;
        self.run_ns = self.run_ns.saturating_add(next.run_ns);
        self.ticks = self.ticks.plus(next.ticks);
    }
}

/// Correction factors of at most 1: a part's excess of one kind of time is counted as the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Balance {
    system: f64,
    user: f64,
}

impl Default for Balance {
    fn default() -> Self {
        Self { system: 1.0, user: 1.0 }
    }
}

impl Balance {
    /// Makes parts with these sums add up to that much system time, and the rest user time.
    pub(crate) fn towards(user_part: f64, system_part: f64, system: f64) -> Self {
        if system_part > system {
            Self { system: system / system_part, user: 1.0 }
        } else if user_part > 0.0 {
            Self { system: 1.0, user: (user_part + system_part - system) / user_part }
        } else {
            Self::default()
        }
    }

    /// Corrects the user and system time of a part; their sum stays the same.
    pub(crate) fn of(self, user: f64, system: f64) -> (f64, f64) {
        let (kept_user, kept_system) = (user * self.user, system * self.system);
        (kept_user + (system - kept_system), kept_system + (user - kept_user))
    }

    /// The same in whole nanoseconds.
    pub(crate) fn of_time(self, cpu: CpuTime) -> CpuTime {
        let (_, system) = self.of(cpu.user_ns as f64, cpu.system_ns as f64);
        let total_ns = cpu.total_ns();
        let system_ns = if system > 0.0 { (system.round() as u64).min(total_ns) } else { 0 };
        CpuTime { user_ns: total_ns - system_ns, system_ns }
    }
}

/// The part of a task's CPU time that was split by its own ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Own {
    pub(crate) run_ns: u64,
    pub(crate) ticks: Ticks,
    pub(crate) system_ns: f64,
}

/// Splits the CPU time of tasks by their own ticks where there are enough, while samples are read.
#[derive(Debug, Default)]
pub(crate) struct Stretches {
    stretch_ns: u64,
    pending: FastMap<usize, Vec<Growth>>,
    own: FastMap<usize, Own>,
    /// Tasks that have an entry of their own.
    owners: Bits,
}

impl Stretches {
    pub(crate) fn new(tick_ns: u64) -> Self {
        let stretch_ns = (STRETCH_TICKS * tick_ns as f64) as u64;
        Self { stretch_ns, ..Self::default() }
    }

    /// Adds an increase of a task's usage. Calls `divided` with each increase that can be split
    /// now, and with the fraction of it that is system time.
    pub(crate) fn push(
        &mut self,
        task: usize,
        growth: Growth,
        mut divided: impl FnMut(&Growth, f64),
    ) {
        let pending = self.pending.entry(task).or_default();
        pending.push(growth);
        let ticks = pending.iter().fold(Ticks::default(), |sum, growth| sum.plus(growth.ticks));
        if ticks.total_ns() >= self.stretch_ns.max(1) {
            let share = share(ticks);
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

    /// Whether an increase has enough ticks by itself, so that a task that was never sampled need
    /// not be remembered.
    pub(crate) fn suffices(&self, growth: &Growth) -> bool {
        growth.ticks.total_ns() >= self.stretch_ns.max(1)
    }

    /// The increases of a task that never got enough ticks.
    pub(crate) fn take_pending(&mut self, task: usize) -> Vec<Growth> {
        self.pending.remove(&task).unwrap_or_default()
    }

    /// The part of a task's CPU time that was split by its own ticks.
    #[inline]
    pub(crate) fn own(&self, task: usize) -> Own {
        if !self.owners.contains(task) {
            return Own::default();
        }
        self.own.get(&task).copied().unwrap_or_default()
    }
}

/// By program: the fraction of system time in CPU time not split by the tasks' own ticks.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    shares: Vec<f64>,
}

impl Pools {
    /// Built from the remaining ticks of each program's tasks, and the category of each program.
    pub(crate) fn new(split: &Split, programs: &[Ticks], category_of: &[usize]) -> Self {
        let mut categories: Vec<Ticks> = Vec::new();
        let mut rest = Ticks::default();
        for (program, ticks) in programs.iter().enumerate() {
            let category = category_of.get(program).copied().unwrap_or(0);
            if categories.len() <= category {
                categories.resize(category + 1, Ticks::default());
            }
            categories[category] = categories[category].plus(*ticks);
            rest = rest.plus(*ticks);
        }
        let n = |ticks| split.count(ticks);
        let whole = share(split.ticks);
        let rest = blend(share(rest), n(rest), whole);
        let categories: Vec<f64> =
            categories.iter().map(|ticks| blend(share(*ticks), n(*ticks), rest)).collect();
        let shares = programs.iter().enumerate().map(|(program, ticks)| {
            let category = category_of.get(program).copied().unwrap_or(0);
            blend(share(*ticks), n(*ticks), categories.get(category).copied().unwrap_or(rest))
        });
        Self { shares: shares.collect() }
    }

    /// The fraction of system time for a program's tasks.
    pub(crate) fn share(&self, program: usize) -> f64 {
        self.shares.get(program).copied().unwrap_or(0.0)
    }
}

/// The fraction for a group with n ticks; one below [`ENOUGH_TICKS`] borrows the rest from a larger
/// group.
fn blend(own: f64, n: f64, larger: f64) -> f64 {
    if n >= ENOUGH_TICKS { own } else { (own * n + larger * (ENOUGH_TICKS - n)) / ENOUGH_TICKS }
}

/// Splits a task's or process's exact CPU time: by its own ticks where they were used, and by the
/// pooled fraction for the rest.
pub(crate) fn divide(run_ns: u64, own: &Own, pooled_share: f64) -> CpuTime {
    let rest_ns = run_ns.saturating_sub(own.run_ns) as f64;
    let system_ns = (own.system_ns + rest_ns * pooled_share).round();
    let system_ns = if system_ns > 0.0 { (system_ns as u64).min(run_ns) } else { 0 };
    CpuTime { user_ns: run_ns - system_ns, system_ns }
}

#[cfg(test)]
mod tests;
