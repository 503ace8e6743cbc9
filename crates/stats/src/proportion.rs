//! The interval of a proportion.

use crate::distribution::Z_95;

/// The 95 % interval of a proportion found in n independent trials (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927); None for
/// fewer than one.
pub fn wilson(share: f64, n: f64) -> Option<(f64, f64)> {
    if n < 1.0 {
        return None;
    }
    let z2 = Z_95 * Z_95 / n;
    let centre = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z_95 / (1.0 + z2) * (share * (1.0 - share) / n + z2 / (4.0 * n)).max(0.0).sqrt();
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_literature() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263, 15 of 148, 0 of
        // 20 and 1 of 29.
        for (hits, n, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
        ] {
            let found = wilson(hits / n, n).unwrap();
            assert!((found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5, "{found:?}");
        }
    }

    #[test]
    fn of_nothing_there_is_no_proportion() {
        assert_eq!(wilson(0.5, 0.0), None);
    }
}
