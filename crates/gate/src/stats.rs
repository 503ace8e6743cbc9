//! Statistics that separate changes from noise.

mod bootstrap;
mod distribution;
mod mann_whitney;
#[cfg(test)]
pub(crate) mod noise;
mod order;

pub use bootstrap::{FEWEST_FOR_INTERVAL, Interval, Statistic, ratio_interval, resampled};
pub use mann_whitney::{MannWhitney, least_probability, mann_whitney};
pub use order::{FEWEST_FOR_MEDIAN_INTERVAL, MedianInterval, median_interval};

/// The mean; None for an empty slice.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median, the midpoint of the middle two for an even number; None for an empty slice.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        Some(sorted[middle])
    } else {
        Some(f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, sorted[middle]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_few_values() {
        assert_eq!((mean(&[]), median(&[])), (None, None));
        assert_eq!((mean(&[3.0]), median(&[3.0])), (Some(3.0), Some(3.0)));
        assert_eq!((mean(&[4.0, 1.0, 1.0]), median(&[4.0, 1.0, 1.0])), (Some(2.0), Some(1.0)));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }
}
