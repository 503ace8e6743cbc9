//! What goes with what: Pearson's r between series over equal bins of time.

use proctrace_findings::Correlations;

use crate::bins::{Bins, Quantity};
use crate::recording::Recording;

/// Pearson's product-moment correlation of two series of equal length; None where there are fewer
/// than two values, or one of the series never changes.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = x.len().min(y.len());
    if n < 2 {
        return None;
    }
    let mean = |values: &[f64]| values[..n].iter().sum::<f64>() / n as f64;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    // The root of each, because the product of the two could leave the range of a float.
    let scale = xx.sqrt() * yy.sqrt();
    (scale > 0.0 && scale.is_finite()).then(|| (xy / scale).clamp(-1.0, 1.0))
}

pub(crate) fn correlations(recording: &Recording) -> Correlations {
    let bins: &Bins = &recording.bins;
    // Only whole bins: a rate over a part of one is another quantity.
    let whole = usize::try_from(recording.recorded_ns() / bins.width_ns.max(1)).unwrap_or(0);
    let n = whole.min(bins.len());
    let switches: Vec<f64> = bins
        .of(Quantity::SwitchesVoluntary)
        .iter()
        .zip(bins.of(Quantity::SwitchesInvoluntary))
        .map(|(voluntary, involuntary)| voluntary + involuntary)
        .collect();
    let series: [(&str, &[f64]); 7] = [
        ("system CPU", bins.of(Quantity::System)),
        ("user CPU", bins.of(Quantity::User)),
        ("forks", bins.of(Quantity::Forks)),
        ("switches", &switches),
        ("running", bins.of(Quantity::Running)),
        ("read", bins.of(Quantity::ReadBytes)),
        ("write", bins.of(Quantity::WriteBytes)),
    ];
    Correlations {
        series: series.iter().map(|(name, _)| (*name).to_owned()).collect(),
        r: series
            .iter()
            .map(|(_, x)| series.iter().map(|(_, y)| pearson(&x[..n], &y[..n])).collect())
            .collect(),
        n,
        bin_ns: bins.width_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_known_values() {
        // Anscombe's quartet (The American Statistician 27, 1973), I: r = 0.81642...
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        assert!((pearson(&x, &y).unwrap() - 0.816_420_516_344_84).abs() < 1e-12);
        // Fisher's sepal and petal lengths would do as well; a straight line must give 1.
        let line: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        assert!((pearson(&x, &line).unwrap() + 1.0).abs() < 1e-15);
    }

    #[test]
    fn what_never_changes_goes_with_nothing() {
        assert_eq!(pearson(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(pearson(&[1.0], &[2.0]), None);
        assert_eq!(pearson(&[], &[]), None);
    }

    proptest! {
        #[test]
        fn is_symmetric_bounded_and_blind_to_scale(
            pairs in proptest::collection::vec((-1e6f64..1e6, -1e6f64..1e6), 2..40),
            factor in 0.001f64..1000.0,
            shift in -1e3f64..1e3,
        ) {
            let (x, y): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let r = pearson(&x, &y);
            prop_assert_eq!(r, pearson(&y, &x));
            if let Some(r) = r {
                prop_assert!((-1.0..=1.0).contains(&r));
                let scaled: Vec<f64> = x.iter().map(|x| x * factor + shift).collect();
                let again = pearson(&scaled, &y).unwrap();
                prop_assert!((r - again).abs() < 1e-6, "{r} {again}");
            }
        }
    }
}
