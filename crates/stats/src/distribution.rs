//! The normal distribution and Student's t distribution.

use std::f64::consts::{FRAC_2_PI, SQRT_2};

/// Quantile of the normal distribution for a 95 % interval.
pub(crate) const Z_95: f64 = 1.959_963_984_540_054;

/// The probability that a standard normal variable is below `z`.
pub(crate) fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// The probability that Student's t with `degrees` degrees of freedom lies within `t` of 0, by the
/// finite sums of Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
fn student_within(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    // Odd: cos + 2/3 cos^3 + 2·4/(3·5) cos^5 …; even: 1 + 1/2 cos^2 + 1·3/(2·4) cos^4 …
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = 0.0;
    for step in 0..degrees / 2 {
        sum += term;
        let k = f64::from(2 * step + if odd { 3 } else { 2 });
        term *= cos * cos * (k - 1.0) / k;
    }
    if odd { FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

/// The two-sided critical value of Student's t for this total tail probability.
pub(crate) fn student_quantile(two_sided: f64, degrees: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_within(high, degrees) < 1.0 - two_sided && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if student_within(middle, degrees) < 1.0 - two_sided {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: critical values of Student's t
    /// for 0.975.
    #[test]
    fn quantiles_are_those_of_the_table() {
        for (degrees, critical) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (8, 2.306),
            (10, 2.228),
            (15, 2.131),
            (30, 2.042),
            (100, 1.984),
        ] {
            let found = student_quantile(0.05, degrees);
            assert!((found - critical).abs() < 6e-4, "{degrees}: {found}");
        }
        assert!((student_quantile(0.01, 8) - 3.355).abs() < 6e-4);
    }

    /// The same handbook, 1.3.6.7.1: the cumulative normal distribution.
    #[test]
    fn the_normal_distribution_is_that_of_the_table() {
        for (z, below) in [(0.0, 0.5), (1.0, 0.841_34), (1.96, 0.975_00), (-2.33, 0.009_90)] {
            assert!((normal_below(z) - below).abs() < 6e-6, "{z}");
        }
    }
}
