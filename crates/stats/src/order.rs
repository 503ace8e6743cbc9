//! Medians, and the distribution-free interval of one.

use serde::{Deserialize, Serialize};

use crate::distribution::Z_95;

/// The median, the midpoint of the middle two for an even number; None for an empty slice.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The lower median: a value that occurred. The values are reordered. None for an empty slice.
pub fn lower_median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MedianInterval {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Number of measurements.
    pub n: usize,
    /// The confidence level of the interval; None if the interval is merely the range, because not
    /// even that reaches 95 %.
    pub confidence: Option<f64>,
}

/// Minimum number of measurements for a 95 % interval: all lie on one side of the true median in
/// two of 2^n cases.
pub const FEWEST_FOR_MEDIAN_INTERVAL: usize = 6;

const CONFIDENCE_WANTED: f64 = 0.95;
/// Up to so many values, the binomial distribution is computed: 2 to the power of -1075 is 0.
const EXACT_MAX: usize = 1000;

impl MedianInterval {
    /// Probability that such an interval holds the true median, also where it is merely the range.
    pub fn certainty(&self) -> f64 {
        let n = i32::try_from(self.n).unwrap_or(i32::MAX);
        self.confidence.unwrap_or_else(|| 1.0 - 2.0 * 0.5_f64.powi(n))
    }
}

/// The median and its interval by order statistics (Thompson 1936, the interval of the sign test): from the k-th smallest
/// to the k-th largest, for the largest k that still reaches 95 %. None for an empty slice.
pub fn median_interval(values: &[f64]) -> Option<MedianInterval> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    let median = middle(&sorted)?;
    if n < FEWEST_FOR_MEDIAN_INTERVAL {
        return Some(MedianInterval { median, low: least, high: most, n, confidence: None });
    }
    if n > EXACT_MAX {
        // The probabilities of the binomial distribution are too small for a float; it is as good as normal.
        let rank = ((n as f64 - Z_95 * (n as f64).sqrt()) / 2.0).floor().max(1.0) as usize;
        let (low, high) = (sorted[rank - 1], sorted[n - rank]);
        let confidence = Some(CONFIDENCE_WANTED);
        return Some(MedianInterval { median, low, high, n, confidence });
    }
    // P(B <= k - 1) for B binomial (n, 1/2): the probability that fewer than k lie below the true
    // median.
    let mut tail = 0.5_f64.powf(n as f64);
    let mut probability = tail;
    let mut rank = 1;
    loop {
        let next = probability * (n + 1 - rank) as f64 / rank as f64;
        if 1.0 - 2.0 * (tail + next) < CONFIDENCE_WANTED || 2 * rank >= n {
            break;
        }
        probability = next;
        tail += next;
        rank += 1;
    }
    Some(MedianInterval {
        median,
        low: sorted[rank - 1],
        high: sorted[n - rank],
        n,
        confidence: Some(1.0 - 2.0 * tail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f64> {
        (1..=n).rev().map(|value| value as f64).collect()
    }

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(median_interval(&[]), None);
    }

    #[test]
    fn the_lower_median_is_one_of_the_values() {
        assert_eq!(lower_median(&mut []), None);
        assert_eq!(lower_median(&mut [4, 1, 3, 9]), Some(3));
        assert_eq!(lower_median(&mut [4, 1, 9]), Some(4));
    }

    #[test]
    fn few_values_give_their_range_without_a_confidence() {
        let five = median_interval(&numbers(5)).unwrap();
        assert_eq!((five.median, five.low, five.high, five.n), (3.0, 1.0, 5.0, 5));
        assert_eq!((five.confidence, five.certainty()), (None, 0.9375));
        assert_eq!(median_interval(&[1.0]).unwrap().certainty(), 0.0);
        assert_eq!(median_interval(&[2.0, 1.0]).unwrap().median, 1.5);
    }

    #[test]
    fn the_interval_of_many_values_is_as_wide_as_that_of_some() {
        let width = |n: usize| {
            let found = median_interval(&numbers(n)).unwrap();
            (found.high - found.low) / (n as f64).sqrt()
        };
        for n in [1000, 1001, 1075, 5000] {
            assert!((width(n) - 1.96).abs() < 0.08, "{n}: {}", width(n));
        }
    }

    /// The ranks in tables of the sign test for 95 %.
    #[test]
    fn ranks_are_those_of_the_sign_test() {
        for (n, rank, confidence) in [
            (6, 1, 0.96875),
            (7, 1, 0.984375),
            (8, 1, 0.9921875),
            (9, 2, 0.9609375),
            (10, 2, 0.978515625),
            (12, 3, 0.961425781),
            (15, 4, 0.964843750),
            (20, 6, 0.958610535),
        ] {
            let found = median_interval(&numbers(n)).unwrap();
            assert_eq!((found.low, found.high), (rank as f64, (n + 1 - rank) as f64), "n = {n}");
            assert!((found.confidence.unwrap() - confidence).abs() < 1e-8, "n = {n}");
        }
    }
}
