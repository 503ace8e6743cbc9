//! Metric values as text: with units, thousands separators and signs.

use proctrace_findings::MetricFamily;
use proctrace_report::number::{bytes, count, time};

use crate::numbers::{Numbers, Sample};

/// A value of a family with its unit. Values are not negative.
pub(crate) fn value(family: &MetricFamily, value: f64) -> String {
    match family.unit {
        // Both casts saturate, and no recording lasts 584 years.
        "seconds" => time((value * 1e9).round() as u64),
        "bytes" => bytes(value.round() as u64),
        "percent" => format!("{} %", plain(value)),
        _ => plain(value),
    }
}

/// A number without a unit, with thousands separators; a mean may have a decimal.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value < 9e15 {
        count(value as u64)
    } else if value > 99.95 && value < 9e15 {
        count(value.round() as u64)
    } else {
        format!("{value:.1}")
    }
}

/// A count that is not negative.
pub(crate) fn count_of(count: f64) -> String {
    plain(count)
}

/// A signed change of a count.
pub(crate) fn signed_count(change: f64) -> String {
    let sign = if change < 0.0 { '-' } else { '+' };
    if change == 0.0 { "0".into() } else { format!("{sign}{}", plain(change.abs())) }
}

/// A signed change of a family's value, with its unit.
pub(crate) fn change(family: &MetricFamily, change: f64) -> String {
    let sign = if change < 0.0 { '-' } else { '+' };
    if change == 0.0 { "0".into() } else { format!("{sign}{}", value(family, change.abs())) }
}

/// A signed change in percent. Rounding never hides a change or a remainder: "0 %" and "-100 %" are
/// printed only if exact.
pub(crate) fn percent(percent: f64) -> String {
    let mut text = signed(percent);
    for digits in 1..=DIGITS_MAX {
        let hides = match text.parse() {
            Ok(0.0) => percent != 0.0,
            Ok(-100.0) => percent != -100.0,
            _ => false,
        };
        if !hides {
            break;
        }
        text = rounded(percent, digits);
    }
    format!("{text} %")
}

/// Maximum number of digits: changes down to one in a hundred million are distinguished from zero.
const DIGITS_MAX: usize = 6;

fn signed(percent: f64) -> String {
    let digits = match percent.abs() {
        size if size >= 9.95 => 0,
        size if size >= 0.095 => 1,
        _ => 2,
    };
    rounded(percent, digits)
}

fn rounded(percent: f64, digits: usize) -> String {
    let text = format!("{percent:+.digits$}");
    // Avoids -0.0 and +0.0.
    if text.trim_start_matches(['+', '-', '0', '.']).is_empty() { "0".into() } else { text }
}

/// The certainty of a change that is the same in all runs, of which there are several.
pub(crate) const EXACT: &str = "exact";

/// The certainty of a change between one run and another.
pub(crate) const SINGLE: &str = "n=1";

/// The certainty of a change: "exact", an interval, or why there is none.
pub(crate) fn certainty(numbers: &Numbers, exact: bool) -> String {
    let Some(before) = numbers.before else { return String::new() };
    let runs = if before.n == numbers.after.n {
        format!("n={}", before.n)
    } else {
        format!("n={} and {}", before.n, numbers.after.n)
    };
    if exact {
        let spread = |sample: &Sample| {
            if sample.is_constant() {
                count(sample.greatest as u64)
            } else {
                format!("{}-{}", count(sample.least as u64), count(sample.greatest as u64))
            }
        };
        if before.is_constant() && numbers.after.is_constant() {
            // That a run agrees with itself says nothing.
            return if before.n.max(numbers.after.n) > 1 { EXACT.into() } else { SINGLE.into() };
        }
        return format!("{runs}, {} to {}", spread(&before), spread(&numbers.after));
    }
    match numbers.interval_percent {
        Some(interval) => {
            format!("{runs} [{}, {}] %", signed(interval.low), signed(interval.high))
        }
        None => format!("{runs}, no interval"),
    }
}

/// Values before, after and the change: "1,204 before, 1,804 after (+600, +50 %)".
pub(crate) fn comparison(family: &MetricFamily, numbers: &Numbers, exact: bool) -> String {
    let after = value(family, numbers.after.centre);
    let (Some(before), Some(difference)) = (numbers.before, numbers.change) else {
        let runs = numbers.after.n;
        return if runs == 1 { after } else { format!("{after} ({runs} runs)") };
    };
    let mut inside = vec![change(family, difference)];
    inside.extend(numbers.change_percent.map(percent));
    if !(exact && before.is_constant() && numbers.after.is_constant()) {
        inside.push(certainty(numbers, exact));
    }
    if difference == 0.0 {
        inside.retain(|part| part != "0" && part != "0 %");
        inside.insert(0, "no change".into());
    }
    format!("{} before, {after} after ({})", value(family, before.centre), inside.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Kind;

    fn family(name: &str) -> &'static MetricFamily {
        MetricFamily::named(name).unwrap()
    }

    #[test]
    fn figures_have_units_and_changes_have_signs() {
        assert_eq!(value(family("total_execs"), 72_500.0), "72,500");
        assert_eq!(value(family("total_execs"), 2.5), "2.5");
        assert_eq!(value(family("total_cpu_seconds"), 2.641), "2.64 s");
        assert_eq!(value(family("peak_rss_bytes"), 1.3e6), "1.3 MB");
        assert_eq!(value(family("total_execs"), 1e300), format!("{:.1}", 1e300));
        assert_eq!(change(family("total_cpu_seconds"), -0.0021), "-2.1 ms");
        assert_eq!(change(family("total_execs"), 600.0), "+600");
        assert_eq!(percent(49.96), "+50 %");
        assert_eq!(percent(-0.4), "-0.4 %");
        assert_eq!(percent(-0.04), "-0.04 %");
        assert_eq!(percent(-0.004), "-0.004 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(-100.0), "-100 %");
        assert_eq!(percent(100.0 * (2_056.0 - 527_413.0) / 527_413.0), "-99.6 %");
        assert_eq!(percent(-99.97), "-99.97 %");
        assert_eq!(percent(-99.4), "-99 %");
        assert_eq!(percent(99.6), "+100 %");
    }

    #[test]
    fn a_comparison_says_what_is_known() {
        let say = |name: &str, before: &[f64], after: &[f64]| {
            let family = family(name);
            let exact = family.kind == Kind::Count;
            comparison(family, &Numbers::of(family.kind, Some(before), after).unwrap(), exact)
        };
        assert_eq!(
            say("total_execs", &[1204.0], &[1804.0]),
            "1,204 before, 1,804 after (+600, +50 %)"
        );
        assert_eq!(say("total_execs", &[12.0], &[12.0]), "12 before, 12 after (no change)");
        assert_eq!(say("total_execs", &[0.0], &[12.0]), "0 before, 12 after (+12)");
        assert_eq!(
            say("total_execs", &[10.0, 12.0, 11.0], &[11.0, 11.0, 11.0]),
            "11 before, 11 after (no change, n=3, 10-12 to 11)"
        );
        assert_eq!(
            say("total_cpu_seconds", &[1.0], &[1.5]),
            "1.00 s before, 1.50 s after (+500 ms, +50 %, n=1, no interval)"
        );
        assert_eq!(
            say("total_cpu_seconds", &[1.0; 3], &[1.5; 3]),
            "1.00 s before, 1.50 s after (+500 ms, +50 %, n=3 [+50, +50] %)"
        );
    }
}
