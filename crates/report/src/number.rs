//! Human-readable numbers.

pub use proctrace_findings::{bytes, count, counted, time};

/// A part of a whole in percent; "-" if the whole is zero.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    if percent > 0.0 && percent < 0.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A value as text; "-" if unknown.
pub fn or_dash<T>(figure: Option<T>, text: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), text)
}

/// A share in percent: its interval instead if there are too few samples for a single number, and
/// "-" if the interval is too wide to be informative.
pub fn share(percent: Option<f64>, interval: Option<(f64, f64)>) -> String {
    match (percent, interval) {
        (Some(percent), _) if percent > 0.0 && percent < 0.95 => format!("{percent:.1} %"),
        (Some(percent), _) => format!("{percent:.0} %"),
        (None, Some((low, high))) if high - low <= WIDEST_PERCENT => {
            format!("{low:.0}-{high:.0} %")
        }
        (None, _) => "-".to_owned(),
    }
}

/// Maximum width of an interval that is informative.
const WIDEST_PERCENT: f64 = 65.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(72_500), "72,500");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "process", "processes"), "1 process");
        assert_eq!(counted(0, "process", "processes"), "0 processes");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_300_000), "1.3 MB");
        assert_eq!(bytes(999_960), "1.0 MB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!(time(0), "0 s");
        assert_eq!(time(600_000), "600 µs");
        assert_eq!(time(1_500_000), "1.5 ms");
        assert_eq!(time(312_400_000), "312 ms");
        assert_eq!(time(2_641_000_000), "2.64 s");
        assert_eq!(time(24_640_000_000), "24.6 s");
        assert_eq!(time(125_000_000_000), "2 min 05 s");
        assert_eq!(time(6_360_000_000_000), "1 h 46 min");
        assert_eq!(percent(1, 3), "33 %");
        assert_eq!(percent(1, 1000), "0.1 %");
        assert_eq!(percent(0, 7), "0 %");
        assert_eq!(percent(1, 0), "-");
    }
}
