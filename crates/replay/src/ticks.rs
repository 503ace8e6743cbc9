//! User and system time: exact CPU time, split in proportion to the ticks in user and kernel mode.
//!
//! wait(2), getrusage(2) and /proc/PID/stat divide the run time of a task by its own ticks alone, and
//! count that of a task which no tick hit in the kernel as user time: a bias that does not average
//! out. The ticks themselves are an unbiased sample, so they are pooled by program, category and
//! tree, and each task's CPU time is split once: parts add up to the whole however tasks are grouped.
//! docs/decisions/0024-pooled-ticks.md has the rules and the measurements.

use crate::CpuTime;

/// Minimum ticks of a group that is given a value of its own; one with fewer is given an interval.
pub const ENOUGH_TICKS: f64 = 30.0;

/// Ticks in a task's own stretch: a standard error of at most 7 percentage points.
const STRETCH_TICKS: f64 = 50.0;

/// The time in ticks that a task's own stretch has at least, in nanoseconds.
pub fn stretch_ns(tick_ns: u64) -> u64 {
    (STRETCH_TICKS * tick_ns as f64) as u64
}

/// CONFIG_HZ of 1000, 250 and 100; 300 is rare and treated as 250.
const KERNEL_TICKS_NS: [u64; 3] = [1_000_000, 4_000_000, LONGEST_TICK_NS];
const LONGEST_TICK_NS: u64 = 10_000_000;

/// CPU time as the kernel sampled it: the number of ticks times their length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Ticks in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Ticks in the kernel, in nanoseconds.
    pub system_ns: u64,
}

impl Ticks {
    /// The sum of both.
    pub fn total_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// Their number, if they are so long.
    pub fn count(self, tick_ns: u64) -> f64 {
        self.total_ns() as f64 / tick_ns.max(1) as f64
    }

    /// The fraction of them in the kernel; meaningless without ticks.
    pub fn system_share(self) -> f64 {
        self.system_ns as f64 / (self.total_ns() as f64).max(1.0)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
        }
    }

    /// Ticks that `other` does not have.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(other.user_ns),
            system_ns: self.system_ns.saturating_sub(other.system_ns),
        }
    }
}

/// The length of a tick, where it was not recorded: the kernel tick length nearest to what most tasks
/// with little charged time were charged. (The kernel subtracts from each tick what the hypervisor
/// stole.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TickLength {
    seen: [u64; KERNEL_TICKS_NS.len()],
}

impl TickLength {
    /// Notes what a task was charged in all.
    pub fn note(&mut self, charged: Ticks) {
        for ns in [charged.user_ns, charged.system_ns] {
            let nearest = (0..KERNEL_TICKS_NS.len())
                .filter(|_| (500_000..=12_000_000).contains(&ns))
                .min_by_key(|at| KERNEL_TICKS_NS[*at].abs_diff(ns));
            if let Some(nearest) = nearest {
                self.seen[nearest] = self.seen[nearest].saturating_add(1);
            }
        }
    }

    /// The recorded length, if there is one, or the one seen. Overestimating it only makes intervals
    /// wider.
    pub fn ns(&self, told_ns: Option<u64>) -> u64 {
        let seen = &self.seen;
        let most = (0..seen.len()).rev().max_by_key(|at| seen[*at]).filter(|at| seen[*at] > 0);
        let seen_ns = most.map_or(LONGEST_TICK_NS, |at| KERNEL_TICKS_NS[at]);
        told_ns.filter(|ns| *ns > 0).unwrap_or(seen_ns)
    }
}

/// Correction factors of at most 1: a part's excess of one kind of time is counted as the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    system: f64,
    user: f64,
}

impl Default for Balance {
    fn default() -> Self {
        Self { system: 1.0, user: 1.0 }
    }
}

impl Balance {
    /// Makes the parts of a whole that these ticks hit agree with them.
    pub fn of_whole(parts: CpuTime, ticks: Ticks) -> Self {
        if ticks.total_ns() == 0 {
            return Self::default();
        }
        let system = parts.total_ns() as f64 * ticks.system_share();
        Self::towards(parts.user_ns as f64, parts.system_ns as f64, system)
    }

    /// Makes parts with these sums add up to that much system time, and the rest user time.
    pub fn towards(user_part: f64, system_part: f64, system: f64) -> Self {
        if system_part > system {
            Self { system: system / system_part, user: 1.0 }
        } else if user_part > 0.0 {
            Self { system: 1.0, user: (user_part + system_part - system) / user_part }
        } else {
            Self::default()
        }
    }

    /// Corrects the user and system time of a part; their sum stays the same.
    pub fn of(self, user: f64, system: f64) -> (f64, f64) {
        let (kept_user, kept_system) = (user * self.user, system * self.system);
        (kept_user + (system - kept_system), kept_system + (user - kept_user))
    }

    /// The same in whole nanoseconds.
    pub fn of_time(self, cpu: CpuTime) -> CpuTime {
        let (_, system) = self.of(cpu.user_ns as f64, cpu.system_ns as f64);
        let total_ns = cpu.total_ns();
        let system_ns = if system > 0.0 { (system.round() as u64).min(total_ns) } else { 0 };
        CpuTime { user_ns: total_ns - system_ns, system_ns }
    }
}

/// The part of a task's CPU time that was split by its own ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Own {
    /// The CPU time of the stretches that had enough.
    pub run_ns: u64,
    /// Their ticks.
    pub ticks: Ticks,
    /// The system time in it, in nanoseconds.
    pub system_ns: f64,
}

impl Own {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            run_ns: self.run_ns.saturating_add(other.run_ns),
            ticks: self.ticks.plus(other.ticks),
            system_ns: self.system_ns + other.system_ns,
        }
    }

    /// The part that `other` does not have.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            run_ns: self.run_ns.saturating_sub(other.run_ns),
            ticks: self.ticks.minus(other.ticks),
            system_ns: (self.system_ns - other.system_ns).max(0.0),
        }
    }
}

/// Fraction, by program, of system time in CPU time not split by the tasks' own ticks.
#[derive(Debug, Default)]
pub struct Pools {
    shares: Vec<f64>,
}

impl Pools {
    /// Built from the remaining ticks of each program's tasks, and the category of each program.
    /// `whole` are all ticks, of `tick_ns` each.
    pub fn new(tick_ns: u64, whole: Ticks, programs: &[Ticks], category_of: &[usize]) -> Self {
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
        let of = |ticks: Ticks, larger| blend(ticks.system_share(), ticks.count(tick_ns), larger);
        let rest = of(rest, whole.system_share());
        let categories: Vec<f64> = categories.iter().map(|ticks| of(*ticks, rest)).collect();
        let shares = programs.iter().enumerate().map(|(program, ticks)| {
            let category = category_of.get(program).copied().unwrap_or(0);
            of(*ticks, categories.get(category).copied().unwrap_or(rest))
        });
        Self { shares: shares.collect() }
    }

    /// The fraction of system time for a program's tasks.
    pub fn share(&self, program: usize) -> f64 {
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
pub fn divide(run_ns: u64, own: &Own, pooled_share: f64) -> CpuTime {
    let rest_ns = run_ns.saturating_sub(own.run_ns) as f64;
    let system_ns = (own.system_ns + rest_ns * pooled_share).round();
    let system_ns = if system_ns > 0.0 { (system_ns as u64).min(run_ns) } else { 0 };
    CpuTime { user_ns: run_ns - system_ns, system_ns }
}
