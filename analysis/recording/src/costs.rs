//! Cost of failed look-ups, estimated from the durations of those that were timed.

use proctrace_findings::LookupCost;

/// 95 % of a normal distribution lie within this number of standard deviations.
const DEVIATIONS_OF_95_PERCENT: f64 = 1.96;

/// Failed look-ups of a group, and the durations of those that were timed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Durations {
    /// All of the group.
    pub misses: u64,
    timed: u64,
    /// Mean, and sum of squared deviations from it: Welford's algorithm, which does not cancel.
    mean_ns: f64,
    squares: f64,
}

impl Durations {
    pub fn time(&mut self, duration_ns: u32) {
        self.timed += 1;
        let off = f64::from(duration_ns) - self.mean_ns;
        self.mean_ns += off / self.timed as f64;
        self.squares += off * (f64::from(duration_ns) - self.mean_ns);
    }

    /// Number of look-ups that were timed.
    pub fn timed(&self) -> u64 {
        self.timed
    }

    /// The mean of those that were timed.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed > 0).then_some(self.mean_ns)
    }

    /// The sum over the group; `None` if fewer than two were timed.
    ///
    /// The interval is that of the mean of a sample from a finite group. It is too narrow where few
    /// were timed and some of the others took a hundred times as long.
    pub fn cost(&self) -> Option<LookupCost> {
        if self.timed < 2 {
            return None;
        }
        let (timed, misses) = (self.timed as f64, self.misses.max(self.timed) as f64);
        let deviation = (self.squares / (timed - 1.0)).sqrt();
        let untimed = (1.0 - timed / misses).max(0.0);
        let margin = DEVIATIONS_OF_95_PERCENT * deviation / timed.sqrt() * untimed.sqrt();
        let total = |mean_ns: f64| (mean_ns.max(0.0) * misses).round() as u64;
        Some(LookupCost {
            total_ns: total(self.mean_ns),
            low_ns: total(self.mean_ns - margin),
            high_ns: total(self.mean_ns + margin),
            timed: self.timed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_was_timed_completely_has_no_margin() {
        let mut durations = Durations { misses: 4, ..Durations::default() };
        assert_eq!(durations.cost(), None);
        for duration_ns in [100, 200, 300, 400] {
            durations.time(duration_ns);
        }
        let expected = LookupCost { total_ns: 1000, low_ns: 1000, high_ns: 1000, timed: 4 };
        assert_eq!(durations.cost(), Some(expected));
    }

    /// Samples of one in 16 from a known group, most of which is cheap: the interval contains the true
    /// sum in about 95 of 100 samples.
    #[test]
    fn the_interval_contains_the_sum_as_often_as_it_says() {
        let group: Vec<u32> =
            (0..16_000).map(|n| 800 + n * 7919 % 500 + 3_000 * (n % 9 / 8)).collect();
        let sum: u64 = group.iter().map(|duration| u64::from(*duration)).sum();
        let mut state = 1_u64;
        let contained = (0..1_000).filter(|_| {
            let mut durations = Durations { misses: group.len() as u64, ..Durations::default() };
            for duration in &group {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if state >> 60 == 0 {
                    durations.time(*duration);
                }
            }
            let cost = durations.cost().expect("many were timed");
            (cost.low_ns..=cost.high_ns).contains(&sum)
        });
        let contained = contained.count();
        assert!((920..=980).contains(&contained), "{contained} of 1000");
    }
}
