//! Correlation of two time series, and its significance.

use crate::distribution::Z_95;
use crate::mean;

/// Maximum lag tried, in bins, in either direction.
pub const LAGS: i64 = 10;
/// Pearson's product-moment correlation of two series of equal length; `None` where there are fewer
/// than two values, or one of the series is constant.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = x.len().min(y.len());
    if n < 2 {
        return None;
    }
    let (mean_x, mean_y) = (mean(&x[..n])?, mean(&y[..n])?);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    // The square roots separately, because the product could exceed the range of a float.
    let scale = xx.sqrt() * yy.sqrt();
    (scale > 0.0 && scale.is_finite()).then(|| (xy / scale).clamp(-1.0, 1.0))
}

/// The rank of each value, from 1; equal values share the mean of their ranks. Spearman's rho is
/// Pearson's r of these (Spearman, The American Journal of Psychology 15, 1904), with or without
/// ties.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    while begin < order.len() {
        let same = |at: &&usize| values[**at] == values[order[begin]];
        let ties = order[begin..].iter().take_while(same).count().max(1);
        let rank = begin as f64 + (ties as f64 + 1.0) / 2.0;
        for at in &order[begin..begin + ties] {
            ranks[*at] = rank;
        }
        begin += ties;
    }
    ranks
}

/// Autocorrelation at lags from 1 to a fifth of the series, scaled by n / (n - lag) for the values
/// without a partner (Pyper and Peterman, Can. J. Fish. Aquat. Sci. 55, 1998).
pub fn autocorrelation(values: &[f64]) -> Vec<f64> {
    let (n, lags) = (values.len(), values.len() / 5);
    let mean = mean(values).unwrap_or(0.0);
    // Zero-padded by the number of lags, so that the end does not wrap around to the beginning.
    let mut series = vec![(0.0, 0.0); (n + lags).next_power_of_two()];
    for (at, value) in values.iter().enumerate() {
        series[at].0 = value - mean;
    }
    let square: f64 = series.iter().map(|(deviation, _)| deviation * deviation).sum();
    if square <= 0.0 || !square.is_finite() {
        return vec![0.0; lags];
    }
    // The transform of a power spectrum is the autocovariance (Wiener, Khinchin).
    fourier(&mut series);
    let size = series.len() as f64;
    for (re, im) in &mut series {
        (*re, *im) = ((*re * *re + *im * *im) / size, 0.0);
    }
    fourier(&mut series);
    (1..=lags)
        .map(|lag| {
            let scaled = series[lag].0 / square * n as f64 / (n - lag) as f64;
            scaled.clamp(-1.0, 1.0)
        })
        .collect()
}

/// The discrete Fourier transform, in place, of a power of two of complex numbers (Cooley and Tukey,
/// Math. Comput. 19, 1965).
fn fourier(values: &mut [(f64, f64)]) {
    let size = values.len();
    if size < 2 {
        return;
    }
    let bits = size.trailing_zeros();
    for at in 0..size {
        let mirrored = at.reverse_bits() >> (usize::BITS - bits);
        if at < mirrored {
            values.swap(at, mirrored);
        }
    }
    let roots: Vec<(f64, f64)> = (0..size / 2)
        .map(|at| {
            let (sin, cos) = (-std::f64::consts::TAU * at as f64 / size as f64).sin_cos();
            (cos, sin)
        })
        .collect();
    let mut half = 1;
    while half < size {
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            let roots = roots.iter().step_by(size / (2 * half));
            for ((low, high), (re, im)) in low.iter_mut().zip(high).zip(roots) {
                let turned = (high.0 * re - high.1 * im, high.0 * im + high.1 * re);
                *high = (low.0 - turned.0, low.1 - turned.1);
                *low = (low.0 + turned.0, low.1 + turned.1);
            }
        }
        half *= 2;
    }
}

/// The effective sample size: how many independent pairs carry as much information about a
/// correlation as the `n` of two series with these autocorrelations. Its reciprocal is 1/n + 2/n
/// sum over lags of (n - lag)/n r_x(lag) r_y(lag) (Bartlett, J. R. Stat. Soc. 98, 1935; Pyper and
/// Peterman 1998). Never more than `n`.
pub fn effective_n(n: usize, x: &[f64], y: &[f64]) -> f64 {
    let length = n as f64;
    let sum: f64 = x
        .iter()
        .zip(y)
        .enumerate()
        .map(|(at, (x, y))| (length - (at + 1) as f64) / length * x * y)
        .sum();
    length / (1.0 + 2.0 * sum).max(1.0)
}

/// The 95 % confidence interval of a correlation (Fisher, Metron 1, 1921) for this number of
/// independent pairs; `None` for three or fewer, for which it is undefined.
pub fn interval(r: f64, n: f64) -> Option<(f64, f64)> {
    if n <= 3.0 {
        return None;
    }
    if r.abs() >= 1.0 {
        return Some((r, r));
    }
    let half = Z_95 / (n - 3.0).sqrt();
    let z = r.atanh();
    Some(((z - half).tanh(), (z + half).tanh()))
}

/// The lag of `y` behind `x`, in bins, at which their correlation is strongest, and that
/// correlation. The shortest of equally good lags; only lags that leave three quarters of the
/// series are tried.
pub fn best_lag(x: &[f64], y: &[f64]) -> Option<(i64, f64)> {
    let n = x.len().min(y.len());
    let (x, y) = (Centred::of(&x[..n]), Centred::of(&y[..n]));
    let most = LAGS.min(i64::try_from(n / 4).unwrap_or(LAGS));
    let mut lags: Vec<i64> = (-most..=most).collect();
    lags.sort_by_key(|lag| lag.abs());
    let mut best: Option<(i64, f64)> = None;
    for lag in lags {
        let shift = usize::try_from(lag.unsigned_abs()).unwrap_or(0);
        let r = if lag >= 0 { x.with(&y, shift) } else { y.with(&x, shift) };
        if let Some(r) = r
            && best.is_none_or(|(_, best)| r.abs() > best.abs() + 1e-12)
        {
            best = Some((lag, r));
        }
    }
    best
}

/// A series minus its mean, with prefix sums for correlating any part of it without summing it
/// again.
struct Centred {
    values: Vec<f64>,
    /// Prefix sums of the values, and of their squares.
    sums: Vec<(f64, f64)>,
}

impl Centred {
    fn of(values: &[f64]) -> Self {
        let mean = mean(values).unwrap_or(0.0);
        let values: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let mut sum = (0.0, 0.0);
        let mut sums = vec![sum];
        sums.extend(values.iter().map(|value| {
            sum = (sum.0 + value, sum.1 + value * value);
            sum
        }));
        Self { values, sums }
    }

    /// Pearson's r of this series and `later` shifted by a number of bins.
    fn with(&self, later: &Self, shift: usize) -> Option<f64> {
        let n = self.values.len().checked_sub(shift).filter(|n| *n >= 2)?;
        let (x, y) = (&self.values[..n], &later.values[shift..]);
        let ((sum_x, square_x), last) = (self.sums[n], later.sums[shift + n]);
        let (sum_y, square_y) = (last.0 - later.sums[shift].0, last.1 - later.sums[shift].1);
        let length = n as f64;
        let xx = square_x - sum_x * sum_x / length;
        let yy = square_y - sum_y * sum_y / length;
        // The remaining variance of a constant part is rounding.
        if xx <= square_x * 1e-12 || yy <= square_y * 1e-12 {
            return None;
        }
        let scale = xx.sqrt() * yy.sqrt();
        let r = (product(x, y) - sum_x * sum_y / length) / scale;
        (scale.is_finite() && r.is_finite()).then(|| r.clamp(-1.0, 1.0))
    }
}

/// The dot product, in four independent partial sums.
fn product(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (x, y) = (x.chunks_exact(4), y.chunks_exact(4));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in x.zip(y) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Independent normal deviates from a fixed seed (Box and Muller; xorshift by Marsaglia).
    struct Normal(u64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn next(&mut self) -> f64 {
            let (u, v) = (1.0 - self.uniform(), self.uniform());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }

        /// x(t) = phi x(t - 1) + noise, started in its stationary state.
        fn ar1(&mut self, phi: f64, n: usize) -> Vec<f64> {
            let mut x = self.next() / (1.0 - phi * phi).sqrt();
            (0..n)
                .map(|_| {
                    let now = x;
                    x = phi * x + self.next();
                    now
                })
                .collect()
        }
    }

    #[test]
    fn agrees_with_known_values() {
        // Anscombe's quartet (The American Statistician 27, 1973), I: r = 0.81642...
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        assert!((pearson(&x, &y).unwrap() - 0.816_420_516_344_84).abs() < 1e-12);
        // Fisher's sepal and petal lengths would do as well; a straight line must give ±1.
        let line: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        assert!((pearson(&x, &line).unwrap() + 1.0).abs() < 1e-15);
    }

    #[test]
    fn finds_the_r_that_was_built_in() {
        // Sine and cosine over whole periods are orthogonal and have equal norms, so the
        // correlation of x with a x + b z is a / sqrt(a^2 + b^2).
        let n = 1_000;
        let angle = |at: usize| std::f64::consts::TAU * 7.0 * at as f64 / n as f64;
        let x: Vec<f64> = (0..n).map(|at| angle(at).sin()).collect();
        let z: Vec<f64> = (0..n).map(|at| angle(at).cos()).collect();
        for (a, b) in [(3.0f64, 4.0), (-5.0, 12.0), (1.0, 0.0), (0.0, 2.0), (1e-3, 1.0)] {
            let y: Vec<f64> = x.iter().zip(&z).map(|(x, z)| 17.0 + a * x + b * z).collect();
            let expected = a / (a * a + b * b).sqrt();
            let r = pearson(&x, &y).unwrap();
            assert!((r - expected).abs() < 1e-12, "{r} {expected}");
        }
    }

    #[test]
    fn ranks_of_equals_are_shared() {
        assert_eq!(ranks(&[]), Vec::<f64>::new());
        assert_eq!(ranks(&[5.0, 1.0, 5.0, -2.0]), [3.5, 2.0, 3.5, 1.0]);
        assert_eq!(ranks(&[7.0; 5]), [3.0; 5]);
    }

    #[test]
    fn rho_with_ties_is_as_computed_by_hand() {
        // Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: the products of deviations add up to 4.5, their
        // squares to 4.5 and 5.
        let (x, y) = ([10.0, 20.0, 20.0, 90.0], [1.0, 3.0, 2.0, 40.0]);
        let rho = pearson(&ranks(&x), &ranks(&y)).unwrap();
        assert!((rho - 4.5 / 22.5f64.sqrt()).abs() < 1e-12, "{rho}");
        // Any increasing function leaves rho at 1.
        let cubes: Vec<f64> = y.iter().map(|y: &f64| y.powi(3)).collect();
        assert!((pearson(&ranks(&y), &ranks(&cubes)).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn autocorrelated_series_count_for_less() {
        let mut normal = Normal(88_172_645_463_325_252);
        let (n, phi) = (20_000, 0.7);
        let (x, y) = (normal.ar1(phi, n), normal.ar1(phi, n));
        let (of_x, of_y) = (autocorrelation(&x), autocorrelation(&y));
        assert!((of_x[0] - phi).abs() < 0.03 && (of_x[2] - phi.powi(3)).abs() < 0.05);
        // The sum of the geometric series: n (1 - phi^2) / (1 + phi^2).
        let expected = n as f64 * (1.0 - phi * phi) / (1.0 + phi * phi);
        let found = effective_n(n, &of_x, &of_y);
        assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        let noise: Vec<f64> = (0..n).map(|_| normal.next()).collect();
        let found = effective_n(n, &autocorrelation(&noise), &of_y);
        assert!(found > 0.9 * n as f64, "{found}");
    }

    #[test]
    fn the_fast_way_finds_what_the_slow_way_finds() {
        let mut normal = Normal(42);
        for n in [5, 8, 13, 100, 511] {
            let values = normal.ar1(0.9, n);
            let mean = mean(&values).unwrap();
            let product = |lag: usize| -> f64 {
                values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum()
            };
            for (at, found) in autocorrelation(&values).into_iter().enumerate() {
                let lag = at + 1;
                let slow = product(lag) / product(0) * n as f64 / (n - lag) as f64;
                assert!((found - slow.clamp(-1.0, 1.0)).abs() < 1e-12, "{n} {lag}");
            }
        }
    }

    #[test]
    fn intervals_hold_what_they_should() {
        // For independent but persistent series r is 0, and 95 in 100 intervals must contain it.
        // With the plain n, half of them do not.
        let mut normal = Normal(0x9E37_79B9_7F4A_7C15);
        let (runs, n) = (400, 400);
        let (mut held, mut held_by_n) = (0, 0);
        for _ in 0..runs {
            let (x, y) = (normal.ar1(0.8, n), normal.ar1(0.8, n));
            let r = pearson(&x, &y).unwrap();
            let effective = effective_n(n, &autocorrelation(&x), &autocorrelation(&y));
            let holds = |n| interval(r, n).is_some_and(|(low, high)| low <= 0.0 && high >= 0.0);
            held += usize::from(holds(effective));
            held_by_n += usize::from(holds(n as f64));
        }
        // 95 % of 400 is 380, with a standard deviation of 4.4; the estimate of n itself costs a
        // few per cent.
        assert!(held >= runs * 88 / 100, "{held} of {runs}");
        assert!(held_by_n < runs * 80 / 100, "{held_by_n} of {runs}");
    }

    #[test]
    fn the_interval_is_fishers() {
        // tanh(atanh(0.5) ± 1.96 / 5) for 28 pairs.
        let (low, high) = interval(0.5, 28.0).unwrap();
        let z = 0.549_306_144_334_055;
        assert!((low - (z - Z_95 / 5.0f64).tanh()).abs() < 1e-12);
        assert!((high - (z + Z_95 / 5.0f64).tanh()).abs() < 1e-12);
        assert_eq!(interval(1.0, 10.0), Some((1.0, 1.0)));
        assert_eq!(interval(0.5, 3.0), None);
    }

    #[test]
    fn a_series_that_follows_is_found_at_its_lag() {
        let mut normal = Normal(1_234_567);
        let noise: Vec<f64> = (0..500).map(|_| normal.next()).collect();
        let (early, late) = (&noise[7..], &noise[..493]);
        let (lag, r) = best_lag(early, late).unwrap();
        assert_eq!(lag, 7);
        assert!((r - 1.0).abs() < 1e-12);
        assert_eq!(best_lag(late, early).unwrap().0, -7);
        assert_eq!(best_lag(early, early).unwrap().0, 0);
        assert_eq!(best_lag(&[1.0, 1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn what_never_changes_goes_with_nothing() {
        assert_eq!(pearson(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(pearson(&[1.0], &[2.0]), None);
        assert_eq!(pearson(&[], &[]), None);
        assert_eq!(autocorrelation(&[4.0; 20]), [0.0; 4]);
        assert_eq!(effective_n(20, &[0.0; 4], &[0.0; 4]), 20.0);
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

        #[test]
        fn parts_of_series_correlate_as_if_added_up(
            pairs in proptest::collection::vec((-1e6f64..1e6, -1e6f64..1e6), 8..60),
            shift in 0usize..5,
        ) {
            let (x, y): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let n = x.len() - shift;
            let fast = Centred::of(&x).with(&Centred::of(&y), shift).unwrap();
            let slow = pearson(&x[..n], &y[shift..]).unwrap();
            prop_assert!((fast - slow).abs() < 1e-9, "{fast} {slow}");
        }

        #[test]
        fn any_numbers_give_numbers(
            x in proptest::collection::vec(any::<f64>(), 0..40),
            y in proptest::collection::vec(any::<f64>(), 0..40),
        ) {
            let n = x.len().min(y.len());
            let effective = effective_n(n, &autocorrelation(&x[..n]), &autocorrelation(&y[..n]));
            prop_assert!(effective.is_nan() || effective <= n as f64);
            prop_assert_eq!(ranks(&x).len(), x.len());
            let _ = best_lag(&x, &y);
        }
    }
}
