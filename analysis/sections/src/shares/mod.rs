//! Parts of a whole: percentages, rates, and slices of time.

pub(crate) mod rate;
pub(crate) mod slices;

/// A part of a count in percent; `None` if the whole is zero.
pub(crate) fn share_percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// A part in percent; `None` if the whole is zero.
pub(crate) fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}
