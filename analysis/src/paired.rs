//! Measurements in pairs: the middle of their differences and ratios, and how far it can be
//! trusted.

use fastrand::Rng;

/// How surely an interval is to hold the true value, if there are enough pairs.
const CERTAINTY: f64 = 0.95;
/// How often pairs are drawn again for the interval of a mean.
const RESAMPLES: usize = 9_999;
/// The same pairs give the same interval.
const SEED: u64 = 0x7061_6972_6564;

/// What a number of measurements is summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Middle {
    /// The median, which a few bad runs do not move. Its interval is that of order statistics.
    Median,
    /// The mean, for what only the sum of many runs tells. Its interval is that of the bootstrap.
    Mean,
}

/// Figures that were measured beside each other, in the same order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Paired {
    pub(crate) by: Middle,
    pub(crate) job: Vec<f64>,
    pub(crate) clean: Vec<f64>,
}

/// A middle and what holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) middle: f64,
    pub(crate) low: f64,
    /// Infinite where nothing bounds it.
    pub(crate) high: f64,
    /// How surely.
    pub(crate) certainty: f64,
}

impl Middle {
    /// None of nothing.
    pub(crate) fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Median => median(values),
            Self::Mean => {
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            }
        }
    }
}

impl Paired {
    pub(crate) fn len(&self) -> usize {
        self.job.len().min(self.clean.len())
    }

    fn pairs(&self) -> Vec<(f64, f64)> {
        self.job.iter().copied().zip(self.clean.iter().copied()).collect()
    }

    /// What the job's environment takes more; None of nothing.
    pub(crate) fn difference(&self) -> Option<Interval> {
        let pairs = self.pairs();
        match self.by {
            Middle::Median => {
                of_median(pairs.into_iter().map(|(job, clean)| job - clean).collect())
            }
            Middle::Mean => of_sums(&pairs, |job, clean| (job - clean) / pairs.len() as f64),
        }
    }

    /// How many times as much it takes: the median ratio of the pairs, or the ratio of the means.
    /// None where clean runs took nothing.
    pub(crate) fn ratio(&self) -> Option<Interval> {
        let pairs = self.pairs();
        match self.by {
            Middle::Median if pairs.iter().any(|(_, clean)| *clean <= 0.0) => None,
            Middle::Median => {
                of_median(pairs.into_iter().map(|(job, clean)| job / clean).collect())
            }
            Middle::Mean => {
                of_sums(&pairs, |job, clean| job / clean).filter(|found| found.middle.is_finite())
            }
        }
    }
}

/// The value in the middle, or halfway between the two there; None of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// Between the k-th smallest and the k-th largest of n values lies the median of whatever they were
/// drawn from, unless fewer than k fell on one side of it; how many did is binomial (Thompson 1936,
/// the interval of the sign test). The largest k that is sure enough, or 1.
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

/// 1 - 2 P(fewer than k of n tosses of a coin show heads).
fn certainty(n: usize, k: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for heads in 0..k {
        below += term;
        term *= (n - heads) as f64 / (heads + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// A figure of both sums, and the percentiles of what it is when as many pairs are drawn again with
/// replacement (Efron 1979). For few pairs that is too narrow.
fn of_sums(pairs: &[(f64, f64)], figure: impl Fn(f64, f64) -> f64) -> Option<Interval> {
    let sums = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
        let (job, clean) = pairs.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        figure(job, clean)
    };
    if pairs.is_empty() {
        return None;
    }
    let middle = sums(&mut pairs.iter().copied());
    let mut rng = Rng::with_seed(SEED);
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| sums(&mut (0..pairs.len()).map(|_| pairs[rng.usize(..pairs.len())])))
        // Nothing over nothing.
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
        let pairs = Paired { by: Middle::Median, job: vec![4.0, 9.0], clean: vec![2.0, 0.0] };
        assert_eq!(pairs.ratio(), None);
        assert_eq!(pairs.difference().unwrap().middle, 5.5);
    }

    /// CPU time that a tick counts for the kernel in one run of four, and of eight: only means tell.
    #[test]
    fn means_tell_what_ticks_hide() {
        let job: Vec<f64> = (0..80).map(|n| f64::from(u8::from(n % 4 == 0)) * 4.0).collect();
        let clean: Vec<f64> = (0..80).map(|n| f64::from(u8::from(n % 8 == 1)) * 4.0).collect();
        let pairs = Paired { by: Middle::Mean, job, clean };
        let (difference, ratio) = (pairs.difference().unwrap(), pairs.ratio().unwrap());
        assert_eq!((difference.middle, ratio.middle), (0.5, 2.0));
        // The difference of a pair is 4 in a quarter, -4 in an eighth, else 0: its standard deviation is
        // 2.40, that of the mean of 80 is 0.268, and the interval twice 1.96 of it.
        let width = difference.high - difference.low;
        assert!((width - 2.0 * 1.96 * 0.268).abs() < 0.1, "{difference:?}");
        assert!(ratio.low < 2.0 && ratio.high > 2.0);
        let none = Paired { by: Middle::Mean, job: vec![1.0; 4], clean: vec![0.0; 4] };
        assert_eq!(none.ratio(), None);
        let rare = Paired { by: Middle::Mean, job: vec![1.0; 4], clean: vec![0.0, 0.0, 0.0, 1.0] };
        assert_eq!(rare.ratio().unwrap().high, f64::INFINITY);
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
