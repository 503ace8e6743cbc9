//! Measurements in pairs, and how far the middle of their differences can be trusted.

/// How surely an interval is to hold the median, if there are enough pairs.
const CERTAINTY: f64 = 0.95;

/// Figures that were measured beside each other, in the same order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Paired {
    pub(crate) job: Vec<f64>,
    pub(crate) clean: Vec<f64>,
}

/// A median and what holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) middle: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// How surely.
    pub(crate) certainty: f64,
}

impl Paired {
    pub(crate) fn len(&self) -> usize {
        self.job.len().min(self.clean.len())
    }

    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.job.iter().copied().zip(self.clean.iter().copied())
    }

    /// What the job's environment takes more; None of nothing.
    pub(crate) fn difference(&self) -> Option<Interval> {
        interval(self.pairs().map(|(job, clean)| job - clean).collect())
    }

    /// How many times as much it takes; None where a clean run took nothing.
    pub(crate) fn ratio(&self) -> Option<Interval> {
        if self.pairs().any(|(_, clean)| clean <= 0.0) {
            return None;
        }
        interval(self.pairs().map(|(job, clean)| job / clean).collect())
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
fn interval(mut values: Vec<f64>) -> Option<Interval> {
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
            let found = interval((1..=n).map(f64::from).collect()).unwrap();
            assert_eq!((found.low, found.high), (f64::from(k), f64::from(n + 1 - k)), "{n}");
            assert!((100.0 * found.certainty - percent).abs() < 0.005, "{n}: {found:?}");
        }
    }

    #[test]
    fn few_pairs_say_how_little_they_are_worth() {
        let found = interval(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!(found, Interval { middle: 2.0, low: 1.0, high: 3.0, certainty: 0.75 });
        assert_eq!(interval(vec![7.0]).unwrap().certainty, 0.0);
        assert_eq!(interval(Vec::new()), None);
        let pairs = Paired { job: vec![4.0, 9.0], clean: vec![2.0, 0.0] };
        assert_eq!(pairs.ratio(), None);
        assert_eq!(pairs.difference().unwrap().middle, 5.5);
    }

    proptest! {
        #[test]
        fn the_middle_lies_within(values in proptest::collection::vec(-1e12f64..1e12, 1..1100)) {
            let found = interval(values).unwrap();
            prop_assert!(found.low <= found.middle && found.middle <= found.high);
            prop_assert!((0.0..=1.0).contains(&found.certainty));
        }
    }
}
