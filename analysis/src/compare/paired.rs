//! Paired measurements: the median or mean of their differences and ratios, with intervals.

use fastrand::Rng;

/// Confidence level of an interval, if there are enough pairs.
const CERTAINTY: f64 = 0.95;
/// Number of bootstrap resamples for the interval of a mean.
const RESAMPLES: usize = 9_999;
/// Fixed, so that the same pairs always give the same interval.
const SEED: u64 = 0x7061_6972_6564;

/// Fewer ticks do not suffice to split CPU time: of 20 the 95 % interval of a half is 30 to 70 %.
const TICKS_MIN: f64 = 20.0;
/// With fewer ticks of a mode on one side, a ratio of the two is mostly noise.
const HITS_MIN: f64 = 5.0;

/// Values that were measured in pairs, in the same order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Paired {
    pub(crate) job: Vec<f64>,
    pub(crate) clean: Vec<f64>,
}

/// The CPU time of a run, and the ticks that hit it: those of one mode, and all.
///
/// The kernel's own split of a single short process is not an estimate but a guess: if no tick hit
/// it in the kernel, all of it counts as user time (cputime_adjust() in kernel/sched/cputime.c).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Ticked {
    pub(crate) cpu_ns: f64,
    pub(crate) hits: f64,
    pub(crate) ticks: f64,
}

/// Paired runs whose CPU time is split by the ticks of all runs of a side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pooled {
    pub(crate) job: Vec<Ticked>,
    pub(crate) clean: Vec<Ticked>,
}

/// A central value and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) middle: f64,
    pub(crate) low: f64,
    /// Infinite where there is no upper bound.
    pub(crate) high: f64,
    /// The confidence level.
    pub(crate) certainty: f64,
}

impl Paired {
    pub(crate) fn len(&self) -> usize {
        self.job.len().min(self.clean.len())
    }

    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.job.iter().copied().zip(self.clean.iter().copied())
    }

    /// The median excess of the job's environment over the clean one; `None` without pairs.
    pub(crate) fn difference(&self) -> Option<Interval> {
        of_median(self.pairs().map(|(job, clean)| job - clean).collect())
    }

    /// The median ratio of the job's environment to the clean one; `None` if a clean value is zero.
    pub(crate) fn ratio(&self) -> Option<Interval> {
        if self.pairs().any(|(_, clean)| clean <= 0.0) {
            return None;
        }
        of_median(self.pairs().map(|(job, clean)| job / clean).collect())
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
    pub(crate) fn mean_ns(runs: &[Ticked]) -> Option<f64> {
        let sum = Ticked::sum(runs.iter().copied());
        (sum.ticks >= TICKS_MIN).then(|| sum.part_ns() / runs.len() as f64)
    }

    /// The mean excess of the job's environment over the clean one.
    pub(crate) fn difference(&self) -> Option<Interval> {
        Self::mean_ns(&self.job).and(Self::mean_ns(&self.clean))?;
        let pairs = self.pairs();
        let n = pairs.len() as f64;
        resampled(&pairs, |job, clean| (job.part_ns() - clean.part_ns()) / n)
    }

    /// The ratio of the means; `None` where there are too few ticks, in total or of that mode.
    pub(crate) fn ratio(&self) -> Option<Interval> {
        Self::mean_ns(&self.job).and(Self::mean_ns(&self.clean))?;
        let hits = |runs: &[Ticked]| Ticked::sum(runs.iter().copied()).hits;
        if hits(&self.job) < HITS_MIN || hits(&self.clean) < HITS_MIN {
            return None;
        }
        resampled(&self.pairs(), |job, clean| job.part_ns() / clean.part_ns())
    }

    fn pairs(&self) -> Vec<(Ticked, Ticked)> {
        self.job.iter().copied().zip(self.clean.iter().copied()).collect()
    }
}

/// The median, or the mean of the two middle values; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The interval of a median. The population median is between the k-th smallest and the k-th
/// largest of n values, unless fewer than k of them fell on one side of it, and that number is
/// binomial (Thompson 1936, the interval of the sign test). Uses the largest k that reaches the
/// confidence level, or 1.
fn of_median(mut values: Vec<f64>) -> Option<Interval> {
    let middle = median(&values)?;
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let mut k = 1;
    while 2 * (k + 1) <= n && certainty(n, k + 1) >= CERTAINTY {
        k += 1;
    }
    Some(Interval { middle, low: values[k - 1], high: values[n - k], certainty: certainty(n, k) })
}

/// 1 - 2 P(fewer than k of n coin tosses show heads).
fn certainty(n: usize, k: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for heads in 0..k {
        below += term;
        term *= (n - heads) as f64 / (heads + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// A statistic of both sums, with its percentiles over resamples of as many pairs drawn with
/// replacement (Efron 1979). For few pairs this interval is too narrow.
fn resampled(
    pairs: &[(Ticked, Ticked)],
    figure: impl Fn(Ticked, Ticked) -> f64,
) -> Option<Interval> {
    let sums = |pairs: &mut dyn Iterator<Item = (Ticked, Ticked)>| {
        let none = (Ticked::default(), Ticked::default());
        let (job, clean) = pairs.fold(none, |sum, pair| (sum.0.plus(pair.0), sum.1.plus(pair.1)));
        figure(job, clean)
    };
    if pairs.is_empty() {
        return None;
    }
    let middle = sums(&mut pairs.iter().copied());
    let mut rng = Rng::with_seed(SEED);
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| sums(&mut (0..pairs.len()).map(|_| pairs[rng.usize(..pairs.len())])))
        // Zero divided by zero.
        .filter(|value| !value.is_nan())
        .collect();
    drawn.sort_by(f64::total_cmp);
    let tail = (drawn.len() as f64 * (1.0 - CERTAINTY) / 2.0) as usize;
    let high = drawn.len().checked_sub(1 + tail)?;
    Some(Interval { middle, low: drawn[tail], high: drawn[high], certainty: CERTAINTY })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From the binomial distribution by hand: for n = 10 and k = 2 it is 1 - 2 (1 + 10) / 1024.
    #[test]
    fn order_statistics_are_those_of_the_sign_test() {
        for (n, k, percent) in [
            (6, 1, 96.88),
            (8, 1, 99.22),
            (9, 2, 96.09),
            (10, 2, 97.85),
            (15, 4, 96.48),
            (20, 6, 95.86),
        ] {
            let found = of_median((1..=n).map(f64::from).collect()).unwrap();
            assert_eq!((found.low, found.high), (f64::from(k), f64::from(n + 1 - k)), "{n}");
            assert!((100.0 * found.certainty - percent).abs() < 0.005, "{n}: {found:?}");
        }
    }

    #[test]
    fn few_pairs_say_how_little_they_are_worth() {
        let found = of_median(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!(found, Interval { middle: 2.0, low: 1.0, high: 3.0, certainty: 0.75 });
        assert_eq!(of_median(vec![7.0]).unwrap().certainty, 0.0);
        assert_eq!(of_median(Vec::new()), None);
        let pairs = Paired { job: vec![4.0, 9.0], clean: vec![2.0, 0.0] };
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
        let pairs = Pooled { job: hit(480, 3), clean: hit(480, 6) };
        assert!((Pooled::mean_ns(&pairs.job).unwrap() - 1e6 / 3.0).abs() < 1e-3);
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
        let pairs = Pooled { job: hit(480, 3), clean: none(480) };
        assert!(pairs.difference().is_some());
        assert_eq!(pairs.ratio(), None);
        let reversed = Pooled { job: none(480), clean: hit(480, 3) };
        assert_eq!(reversed.ratio(), None, "nothing is 100 % less");
        let few = Pooled { job: hit(480, 3), clean: none(19) };
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
