//! Parsers of the argument values of the analysing commands: percentages, labels, wall times, memory.

use std::time::Duration;

use super::{amount, parse_duration};

/// A percentage: 5, 0.5%.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("not a percentage from 0 to 100".to_owned()),
    }
}

/// NAME=VALUE, both not empty; a name is one word.
pub(crate) fn parse_label(text: &str) -> Result<(String, String), String> {
    let word = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && word(name) && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE, with a name of letters, digits, _, . and -".to_owned()),
    }
}

/// A wall time, as the base of rates per second.
pub(crate) fn parse_wall(text: &str) -> Result<Duration, String> {
    let wall = parse_duration(text)?;
    if wall.is_zero() { Err("must be more than 0".into()) } else { Ok(wall) }
}

/// An amount of memory with a unit: 512MiB, 4GiB. K, M, G and T are binary as well.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    let (number, shift) = amount(text);
    let number: u64 = number.parse().map_err(|_| "use an amount such as 4GiB")?;
    let shift = shift.ok_or("the unit must be KiB, MiB, GiB or TiB")?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(|| "no such amount".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wall_time_is_none_to_divide_by() {
        assert!(parse_wall("0").is_err() && parse_wall("0s").is_err());
        assert_eq!(parse_wall("1ms"), Ok(Duration::from_millis(1)));
    }
}
