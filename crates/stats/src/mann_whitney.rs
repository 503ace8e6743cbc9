//! The Mann-Whitney U test: whether the values of one sample tend to be greater.

use crate::distribution::normal_below;

/// Maximum total number of values for which the probabilities are computed exactly; above, by the normal
/// approximation, which is then accurate to the third digit.
const EXACT_UP_TO: usize = 40;

/// The test result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// The number of pairs in which the first sample's value is the greater; a tie counts half.
    pub u: f64,
    /// The probability of a U at least this large if both samples come from the same distribution.
    pub p_greater: f64,
    /// The probability of a U at most this large, likewise.
    pub p_less: f64,
    /// Twice the smaller of `p_greater` and `p_less`, and at most 1.
    pub p_two_sided: f64,
    /// True if the probabilities are exact.
    pub exact: bool,
}

/// Tests two samples; None if one is empty or contains NaN.
///
/// For few values the probabilities are exact, with or without ties: over all permutations of the
/// values between two samples of these sizes. Otherwise they use the normal approximation, with
/// Mann and Whitney's variance corrected for ties, and with continuity correction (Hollander and
/// Wolfe, Nonparametric Statistical Methods, 2nd ed., 4.1).
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    if first.is_empty() || second.is_empty() || first.iter().chain(second).any(|x| x.is_nan()) {
        return None;
    }
    let (n, m) = (first.len(), second.len());
    let mut all: Vec<(f64, bool)> = first
        .iter()
        .map(|value| (*value, true))
        .chain(second.iter().map(|value| (*value, false)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the mid-rank of each value, which is an integer.
    let mut ranks = Vec::with_capacity(n + m);
    let mut ties = 0.0;
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let before = ranks.len();
        ranks.resize(before + group.len(), 2 * before + group.len() + 1);
        let size = group.len() as f64;
        ties += size * size * size - size;
    }
    let sum: usize =
        ranks.iter().zip(&all).filter(|(_, (_, first))| *first).map(|(rank, _)| *rank).sum();
    let u = (sum as f64 - (n * (n + 1)) as f64) / 2.0;
    let exact = n + m <= EXACT_UP_TO;
    let (p_greater, p_less) =
        if exact { count_out(&ranks, n, sum) } else { approximate(n as f64, m as f64, u, ties) };
    let p_two_sided = (2.0 * p_greater.min(p_less)).min(1.0);
    Some(MannWhitney { u, p_greater, p_less, p_two_sided, exact })
}

/// The fractions of all choices of `n` ranks whose sum is at least, and at most, `sum`.
fn count_out(ranks: &[usize], n: usize, sum: usize) -> (f64, f64) {
    let most: usize = ranks.iter().sum();
    // ways[k][s]: number of choices of k ranks with sum s; below 2^53, so exact as f64.
    let mut ways = vec![vec![0.0_f64; most + 1]; n + 1];
    ways[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for k in (1..=n.min(seen + 1)).rev() {
            let (fewer, these) = ways.split_at_mut(k);
            for (s, way) in these[0].iter_mut().enumerate().skip(rank) {
                *way += fewer[k - 1][s - rank];
            }
        }
    }
    let all: f64 = ways[n].iter().sum();
    let at_least: f64 = ways[n][sum..].iter().sum();
    let at_most: f64 = ways[n][..=sum].iter().sum();
    (at_least / all, at_most / all)
}

fn approximate(n: f64, m: f64, u: f64, ties: f64) -> (f64, f64) {
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return (1.0, 1.0);
    }
    let below = |u: f64| normal_below((u - n * m / 2.0) / variance.sqrt());
    (1.0 - below(u - 0.5), below(u + 0.5))
}

/// The smallest p-value possible for these sample sizes: that of complete separation.
pub fn least_probability(n: usize, m: usize) -> f64 {
    (1..=n).fold(1.0, |probability, k| probability * k as f64 / (m + k) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    /// en.wikipedia.org/wiki/Mann–Whitney_U_test: one hare and five tortoises beat the others, in
    /// the order T H H H H H T T T T T H.
    #[test]
    fn tortoises_and_hares() {
        let places = |who: char| -> Vec<f64> {
            // the first to finish has the greatest value
            "THHHHHTTTTTH"
                .chars()
                .rev()
                .zip(1..)
                .filter(|(c, _)| *c == who)
                .map(|(_, n)| f64::from(n))
                .collect()
        };
        assert_eq!(mann_whitney(&places('T'), &places('H')).unwrap().u, 11.0);
        assert_eq!(mann_whitney(&places('H'), &places('T')).unwrap().u, 25.0);
    }

    /// Hollander and Wolfe, table 4.1: permeability of the human chorioamnion to water at term, and
    /// at 12 to 26 weeks. The book has W = 30 for the smaller sample, which is U = 35 for the
    /// larger one, and P = 0.127; R's wilcox.test yields 0.1272 for them.
    #[test]
    fn permeability_of_the_chorioamnion() {
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = mann_whitney(&term, &early).unwrap();
        assert_eq!((found.u, found.exact), (35.0, true));
        near(found.p_greater, 0.127_206_127_206_127_2);
        near(found.p_two_sided, 0.254_412_254_412_254_4);
    }

    /// The example of scipy.stats.mannwhitneyu, exact and with the normal approximation: ages at
    /// the diagnosis of diabetes.
    #[test]
    fn ages_at_diagnosis() {
        let (males, females) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        let found = mann_whitney(&males, &females).unwrap();
        assert_eq!(found.u, 17.0);
        near(found.p_two_sided, 0.111_111_111_111_111_1);
        let (greater, _) = approximate(5.0, 4.0, 17.0, 0.0);
        near(2.0 * greater, 0.111_346_886_533_140_41);
    }

    /// The tie correction, and more values than are computed exactly: both values are those of
    /// scipy 1.17's mannwhitneyu(x, y, alternative="greater", method="asymptotic").
    #[test]
    fn many_values_with_ties() {
        let x: Vec<f64> = (0..25).map(|n| f64::from(n % 7)).collect();
        let y: Vec<f64> = (0..30).map(|n| f64::from(n % 5)).collect();
        let found = mann_whitney(&x, &y).unwrap();
        assert!(!found.exact);
        assert_eq!(found.u, TIED_U);
        near(found.p_greater, TIED_P);
    }
    const TIED_U: f64 = 453.0;
    const TIED_P: f64 = 0.091_921_456_191_542_63;

    /// Mann and Whitney's table of critical values for five and five, one-sided: U of 4 or less is
    /// significant at 5 %, of 1 or less at 1 %, of 0 at 0.5 %.
    #[test]
    fn critical_values_for_five_and_five() {
        // 0..5 against 0.5 higher: samples whose U is exactly `u`
        let p_of = |u: usize| {
            let first = [0.0, 1.0, 2.0, 3.0, 4.0 + u as f64];
            let second = [4.5, 5.5, 6.5, 7.5, 8.5];
            let found = mann_whitney(&first, &second).unwrap();
            assert_eq!(found.u, u as f64);
            found.p_less
        };
        assert!(p_of(4) <= 0.05 && p_of(5) > 0.05);
        assert!(p_of(1) <= 0.01 && p_of(2) > 0.01);
        assert!(p_of(0) <= 0.005 && p_of(1) > 0.005);
        near(p_of(0), least_probability(5, 5));
        near(least_probability(5, 5), 1.0 / 252.0);
    }

    #[test]
    fn what_says_nothing() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
        let same = mann_whitney(&[1.0; 5], &[1.0; 5]).unwrap();
        assert_eq!((same.u, same.p_greater, same.p_less), (12.5, 1.0, 1.0));
        let same = mann_whitney(&[1.0; 50], &[1.0; 50]).unwrap();
        assert_eq!((same.u, same.p_greater), (1250.0, 1.0));
    }

    proptest! {
        #[test]
        fn both_samples_tell_the_same(x in proptest::collection::vec(0_u8..9, 1..9), y in proptest::collection::vec(0_u8..9, 1..9)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let y: Vec<f64> = y.into_iter().map(f64::from).collect();
            let (one, other) = (mann_whitney(&x, &y).unwrap(), mann_whitney(&y, &x).unwrap());
            let pairs = (x.len() * y.len()) as f64;
            prop_assert_eq!(one.u + other.u, pairs);
            prop_assert!((one.p_greater - other.p_less).abs() < 1e-12);
            // counted pair by pair
            let u: f64 = x.iter().flat_map(|a| y.iter().map(move |b| if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 })).sum();
            prop_assert_eq!(one.u, u);
            prop_assert!(one.p_greater >= least_probability(x.len(), y.len()) - 1e-12);
        }
    }
}
