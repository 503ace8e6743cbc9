//! User and system time from sampled ticks and the exact run time, computed as in the kernel.

use std::ops::{Add, AddAssign, Sub};

/// CPU time of a task, a process or a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user mode.
    pub user_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
}

impl CpuTime {
    /// The sum. Sums saturate: a damaged or hostile trace can contain any number.
    pub fn total_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

impl Add for CpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
        }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for CpuTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(other.user_ns),
            system_ns: self.system_ns.saturating_sub(other.system_ns),
        }
    }
}

impl std::iter::Sum for CpuTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), Add::add)
    }
}

/// Splits the exact `run_ns` in proportion to the ticks that hit user and kernel mode. A task too
/// short for any tick, or hit in user mode only, counts as all user, as in cputime_adjust() in
/// kernel/sched/cputime.c, whose result wait4(2) and getrusage(2) report.
pub fn scale(run_ns: u64, utime_ns: u64, stime_ns: u64) -> CpuTime {
    let system_ns = if stime_ns == 0 {
        0
    } else if utime_ns == 0 {
        run_ns
    } else {
        let ticks = u128::from(utime_ns) + u128::from(stime_ns);
        let scaled = u128::from(stime_ns) * u128::from(run_ns) / ticks;
        u64::try_from(scaled).unwrap_or(run_ns).min(run_ns)
    };
    CpuTime { user_ns: run_ns - system_ns, system_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splits_as_the_kernel_does() {
        let split = |run, user, system| {
            let time = scale(run, user, system);
            (time.user_ns, time.system_ns)
        };
        assert_eq!(split(1_000, 0, 0), (1_000, 0));
        assert_eq!(split(1_000, 4_000_000, 0), (1_000, 0));
        assert_eq!(split(1_000, 0, 4_000_000), (0, 1_000));
        assert_eq!(split(9_000_000, 4_000_000, 8_000_000), (3_000_000, 6_000_000));
    }

    proptest! {
        #[test]
        fn the_parts_are_the_whole(run: u64, user: u64, system: u64) {
            let time = scale(run, user, system);
            prop_assert_eq!(time.user_ns.checked_add(time.system_ns), Some(run));
        }
    }
}
