//! Human-readable numbers for tables and notes.

use crate::table::Unit;

/// 72500 as 72,500.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: "1 process", "2 processes".
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Bytes with a decimal (SI) unit, as disk sizes are given.
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 || value >= 99.95 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// A duration with a unit and about three significant digits.
pub fn time(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if ns == 0 {
        "0 s".to_owned()
    } else if ns < 999_500 {
        format!("{:.0} µs", seconds * 1e6)
    } else if ns < 99_950_000 {
        format!("{:.1} ms", seconds * 1e3)
    } else if ns < 999_500_000 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 99.95 {
        format!("{seconds:.1} s")
    } else {
        let seconds = seconds.round() as u64;
        match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
            (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
        }
    }
}

/// A number with about three significant digits and its unit.
pub fn figure(number: f64, unit: Unit) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    let size = number.abs();
    match unit {
        Unit::Nanoseconds => format!("{sign}{}", time(size.round() as u64)),
        Unit::Bytes => format!("{sign}{}", bytes(size.round() as u64)),
        Unit::Percent => format!("{} %", digits(number)),
        Unit::PerSecond => format!("{}/s", digits(number)),
        // avoids -0.00
        Unit::Coefficient if size < 0.005 => "0.00".to_owned(),
        Unit::Coefficient => format!("{number:+.2}"),
        Unit::Ratio if size >= 99.5 => digits(number),
        Unit::Ratio => format!("{number:.3}"),
        // A mean may be fractional, but a whole number of processes has no decimals.
        Unit::Count if number.fract() == 0.0 && size < 1e15 => {
            format!("{sign}{}", count(size as u64))
        }
        Unit::Count | Unit::Cores | Unit::Text | Unit::List | Unit::Figure | Unit::Flag => {
            digits(number)
        }
    }
}

/// Values over time as a line of blocks, one for each part of the time: the largest value in it, from one
/// eighth of `most` to all of it. A dot stands for a part without a value.
pub fn sparkline(values: &[(u64, u64)], length_ns: u64, most: u64, parts: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let scaled = |value: u64, whole: u64, steps: usize| {
        u128::from(value).saturating_mul(steps as u128).div_ceil(u128::from(whole.max(1)))
    };
    let place = |step: u128, steps: usize| {
        usize::try_from(step).unwrap_or(usize::MAX).min(steps.saturating_sub(1))
    };
    let block =
        |value| BLOCKS[place(scaled(value, most, BLOCKS.len()).saturating_sub(1), BLOCKS.len())];
    let part_of = |time_ns: u64| {
        place(
            u128::from(time_ns).saturating_mul(parts as u128) / u128::from(length_ns.max(1)),
            parts,
        )
    };
    let mut line: Vec<Option<u64>> = vec![None; parts];
    for (time_ns, value) in values {
        if let Some(part) = line.get_mut(part_of(*time_ns)) {
            *part = (*part).max(Some(*value));
        }
    }
    line.into_iter().map(|value| value.map_or('·', block)).collect()
}

fn digits(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.095 => format!("{number:.3}"),
        size if size < 0.95 => format!("{number:.2}"),
        size if size < 99.5 => format!("{number:.1}"),
        size if size < 1e15 => {
            format!("{}{}", if number < 0.0 { "-" } else { "" }, count(size.round() as u64))
        }
        _ => format!("{number:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_over_time_are_blocks() {
        let values = [(0, 1), (10, 8), (11, 2), (99, 4), (100, 5)];
        assert_eq!(sparkline(&values, 100, 8, 10), "▁█·······▅");
        assert_eq!(sparkline(&[(5, 0), (u64::MAX, u64::MAX)], 0, 0, 3), "··█");
        assert_eq!(sparkline(&[], 100, 8, 3), "···");
        assert_eq!(sparkline(&values, 100, 8, 0), "");
    }

    #[test]
    fn thousands_stand_apart_and_one_is_singular() {
        assert_eq!(count(72_500), "72,500");
        assert_eq!(counted(1, "process", "processes"), "1 process");
        assert_eq!(counted(1_234_567, "bin", "bins"), "1,234,567 bins");
    }
}
