//! Statistics that separate changes from noise: plans of runs, medians, means and proportions with intervals, tests and correlations.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bootstrap;
mod correlation;
mod distribution;
mod experiment;
mod mann_whitney;
pub mod noise;
mod order;
mod paired;
mod proportion;

pub use bootstrap::{FEWEST_FOR_INTERVAL, Interval, Statistic, ratio_interval, resampled};
pub use correlation::{LAGS, autocorrelation, best_lag, effective_n, interval, pearson, ranks};
pub use experiment::{Order, Plan, Round, Side};
pub use mann_whitney::{MannWhitney, least_probability, mann_whitney};
pub use order::{
    FEWEST_FOR_MEDIAN_INTERVAL, MedianInterval, lower_median, median, median_interval,
};
pub use paired::{Estimate, Paired, Pooled, Ticked};
pub use proportion::wilson;

/// The mean; None for an empty slice.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
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
