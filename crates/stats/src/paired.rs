//! Paired measurements: the median or mean of their differences and ratios, with intervals.

use crate::bootstrap::{RESAMPLES, resamples};
use crate::{MedianInterval, median_interval};

/// Confidence level of an interval, if there are enough pairs.
const CERTAINTY: f64 = 0.95;
/// Fixed, so that the same pairs always give the same interval.
const SEED: u64 = 0x7061_6972_6564;

/// Minimum ticks to split CPU time: of 20 the 95 % interval of a half is 30 to 70 %.
const TICKS_MIN: f64 = 20.0;
/// Minimum ticks of a mode on each side: with fewer, a ratio of the two is mostly noise.
const HITS_MIN: f64 = 5.0;

/// Values of two sides that were measured in pairs, in the same order.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// Those of the side whose excess is asked for.
    pub a: Vec<f64>,
    /// Those of the other.
    pub b: Vec<f64>,
}

/// The CPU time of a run, and the ticks that hit it: those of one mode, and all.
///
/// The kernel's own split of a single short process is not an estimate but a guess: if no tick hit
/// it in the kernel, all of it counts as user time (cputime_adjust() in kernel/sched/cputime.c).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ticked {
    /// CPU time, exact.
    pub cpu_ns: f64,
    /// Ticks of the mode.
    pub hits: f64,
    /// All ticks.
    pub ticks: f64,
}

/// Paired runs whose CPU time is split by the ticks of all runs of a side.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    /// Those of the side whose excess is asked for.
    pub a: Vec<Ticked>,
    /// Those of the other.
    pub b: Vec<Ticked>,
}

/// A central value and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median, or the mean.
    pub middle: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound, infinite where there is none.
    pub high: f64,
    /// The confidence level.
    pub certainty: f64,
}

impl Paired {
    /// Number of pairs.
    pub fn count(&self) -> usize {
        self.a.len().min(self.b.len())
    }

    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.a.iter().copied().zip(self.b.iter().copied())
    }

    /// The median excess of A over B; `None` without pairs.
    pub fn difference(&self) -> Option<Estimate> {
        of_median(self.pairs().map(|(a, b)| a - b).collect())
    }

    /// The median ratio of A to B; `None` if a value of B is zero.
    pub fn ratio(&self) -> Option<Estimate> {
        if self.pairs().any(|(_, b)| b <= 0.0) {
            return None;
        }
        of_median(self.pairs().map(|(a, b)| a / b).collect())
    }
}

impl Ticked {
    fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            hits: self.hits + other.hits,
            ticks: self.ticks + other.ticks,
        }
    }

    fn sum(runs: impl IntoIterator<Item = Self>) -> Self {
        runs.into_iter().fold(Self::default(), Self::plus)
    }

    /// CPU time in that mode; not a number without a tick.
    fn part_ns(self) -> f64 {
        self.cpu_ns * self.hits / self.ticks
    }
}

impl Pooled {
    /// Mean CPU time per run in that mode; `None` where there are too few ticks.
    pub fn mean_ns(runs: &[Ticked]) -> Option<f64> {
        let sum = Ticked::sum(runs.iter().copied());
        (sum.ticks >= TICKS_MIN).then(|| sum.part_ns() / runs.len() as f64)
    }

    /// The mean excess of A over B.
    pub fn difference(&self) -> Option<Estimate> {
        Self::mean_ns(&self.a).and(Self::mean_ns(&self.b))?;
        let n = self.a.len().min(self.b.len()) as f64;
        self.resampled(|a, b| (a.part_ns() - b.part_ns()) / n)
    }

    /// The ratio of the means; `None` where there are too few ticks, in total or of that mode.
    pub fn ratio(&self) -> Option<Estimate> {
        Self::mean_ns(&self.a).and(Self::mean_ns(&self.b))?;
        let hits = |runs: &[Ticked]| Ticked::sum(runs.iter().copied()).hits;
        if hits(&self.a) < HITS_MIN || hits(&self.b) < HITS_MIN {
            return None;
        }
        self.resampled(|a, b| a.part_ns() / b.part_ns())
    }

    /// A statistic of both sums, with its percentiles over resamples of as many pairs drawn with
    /// replacement (Efron 1979). For few pairs this interval is too narrow.
    fn resampled(&self, figure: impl Fn(Ticked, Ticked) -> f64) -> Option<Estimate> {
        let pairs: Vec<_> = self.a.iter().copied().zip(self.b.iter().copied()).collect();
        if pairs.is_empty() {
            return None;
        }
        let of_sums = |pairs: &[(Ticked, Ticked)]| {
            let none = (Ticked::default(), Ticked::default());
            let (a, b) = pairs.iter().fold(none, |sum, (a, b)| (sum.0.plus(*a), sum.1.plus(*b)));
            figure(a, b)
        };
        let mut drawn = resamples(&pairs, RESAMPLES, SEED, of_sums);
        // Zero divided by zero.
        drawn.retain(|value| !value.is_nan());
        drawn.sort_by(f64::total_cmp);
        let tail = (drawn.len() as f64 * (1.0 - CERTAINTY) / 2.0) as usize;
        let high = drawn.len().checked_sub(1 + tail)?;
        let (low, high) = (drawn[tail], drawn[high]);
        Some(Estimate { middle: of_sums(&pairs), low, high, certainty: CERTAINTY })
    }
}

fn of_median(values: Vec<f64>) -> Option<Estimate> {
    let found = median_interval(&values)?;
    let MedianInterval { median: middle, low, high, .. } = found;
    Some(Estimate { middle, low, high, certainty: found.certainty() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_pairs_say_how_little_they_are_worth() {
        let found = of_median(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!(found, Estimate { middle: 2.0, low: 1.0, high: 3.0, certainty: 0.75 });
        assert_eq!(of_median(vec![7.0]).unwrap().certainty, 0.0);
        assert_eq!(of_median(Vec::new()), None);
        let pairs = Paired { a: vec![4.0, 9.0], b: vec![2.0, 0.0] };
        assert_eq!(pairs.ratio(), None);
        assert_eq!(pairs.difference().unwrap().middle, 5.5);
    }

    /// Runs of 1 ms, every fourth of which is hit by a tick; of these every third, or sixth, in the
    /// kernel.
    fn hit(runs: usize, every: usize) -> Vec<Ticked> {
        let of = |n: usize| Ticked {
            cpu_ns: 1e6,
            hits: f64::from(u8::from(n.is_multiple_of(4 * every))),
            ticks: f64::from(u8::from(n.is_multiple_of(4))),
        };
        (0..runs).map(of).collect()
    }

    #[test]
    fn ticks_of_all_runs_tell_what_those_of_one_do_not() {
        let pairs = Pooled { a: hit(480, 3), b: hit(480, 6) };
        assert!((Pooled::mean_ns(&pairs.a).unwrap() - 1e6 / 3.0).abs() < 1e-3);
        let (difference, ratio) = (pairs.difference().unwrap(), pairs.ratio().unwrap());
        assert!((difference.middle - 1e6 / 6.0).abs() < 1e-3);
        assert!((ratio.middle - 2.0).abs() < 1e-9);
        // Of 120 ticks a third and a sixth hit: a standard deviation of 0.055 of their difference,
        // reduced because half of the hits are in the same pairs.
        let width = (difference.high - difference.low) / 1e6;
        assert!((0.1..0.25).contains(&width), "{difference:?}");
        assert!(difference.low > 0.0 && ratio.low > 1.0 && ratio.high < 4.0, "{ratio:?}");
    }

    #[test]
    fn few_ticks_say_nothing() {
        // 19 in total, then 20, none of which in that mode.
        let none = |ticks: usize| -> Vec<Ticked> {
            vec![Ticked { cpu_ns: 1e6, hits: 0.0, ticks: 1.0 }; ticks]
        };
        assert_eq!(Pooled::mean_ns(&none(19)), None);
        assert_eq!(Pooled::mean_ns(&none(20)), Some(0.0));
        let pairs = Pooled { a: hit(480, 3), b: none(480) };
        assert!(pairs.difference().is_some());
        assert_eq!(pairs.ratio(), None);
        let reversed = Pooled { a: none(480), b: hit(480, 3) };
        assert_eq!(reversed.ratio(), None, "nothing is 100 % less");
        let few = Pooled { a: hit(480, 3), b: none(19) };
        assert_eq!((few.difference(), few.ratio()), (None, None));
    }

    proptest! {
        #[test]
        fn the_middle_lies_within(values in proptest::collection::vec(-1e12f64..1e12, 1..1100)) {
            let found = of_median(values).unwrap();
            prop_assert!(found.low <= found.middle && found.middle <= found.high);
            prop_assert!((0.0..=1.0).contains(&found.certainty));
        }
    }
}
