//! The values of one metric before and after, and the change.

use proctrace_findings::Kind;
use serde::Serialize;

use proctrace_stats::{Interval, Statistic, ratio_interval};

/// The values of one metric over the runs of a side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// Number of runs.
    pub n: usize,
    /// The representative value: the median of counts, the mean of measurements.
    pub centre: f64,
    /// The smallest value.
    pub least: f64,
    /// The largest value.
    pub greatest: f64,
}

/// One metric before and after, in its family's unit except for percentages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Numbers {
    /// Before; None without a baseline.
    pub before: Option<Sample>,
    /// After.
    pub after: Sample,
    /// The change from before to after.
    pub change: Option<f64>,
    /// The change relative to before; None if that is 0.
    pub change_percent: Option<f64>,
    /// The 95 % interval of that change; None for counts, for too few runs, and if a value before
    /// is 0.
    pub interval_percent: Option<Interval>,
}

/// True if metrics of this kind are deterministic.
pub(crate) fn is_exact(kind: Kind) -> bool {
    kind == Kind::Count
}

impl Sample {
    /// The sample of these values; None for an empty slice.
    pub(crate) fn of(kind: Kind, values: &[f64]) -> Option<Self> {
        let statistic = if is_exact(kind) { Statistic::Median } else { Statistic::Mean };
        Some(Self {
            n: values.len(),
            centre: statistic.of(values)?,
            least: values.iter().copied().min_by(f64::total_cmp)?,
            greatest: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }

    /// True if all runs have the same value.
    pub fn is_constant(&self) -> bool {
        self.least == self.greatest
    }
}

impl Numbers {
    /// The comparison of these values; None if there are none after.
    pub(crate) fn of(kind: Kind, before: Option<&[f64]>, after: &[f64]) -> Option<Self> {
        let after_sample = Sample::of(kind, after)?;
        let sample = before.and_then(|before| Sample::of(kind, before));
        let change = sample.map(|before| after_sample.centre - before.centre);
        let interval = match before {
            Some(before) if !is_exact(kind) => ratio_interval(before, after, Statistic::Mean),
            _ => None,
        };
        Some(Self {
            before: sample,
            after: after_sample,
            change,
            change_percent: sample
                .zip(change)
                .filter(|(before, _)| before.centre > 0.0)
                .map(|(before, change)| 100.0 * change / before.centre),
            interval_percent: interval.map(|ratio| Interval {
                low: 100.0 * (ratio.low - 1.0),
                high: 100.0 * (ratio.high - 1.0),
            }),
        })
    }
}
