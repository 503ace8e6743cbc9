//! Parsers of argument values: durations, sizes, call families.

use std::time::Duration;

use proctrace_record::{CgroupPattern, JOB_CGROUPS, Misses, PatternError};
use proctrace_wire::Family;

/// Which cgroups are jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobCgroups(pub(crate) Vec<CgroupPattern>);

/// A pattern of such cgroups; an empty one stands for those of the usual batch systems.
pub(crate) fn parse_job_cgroups(text: &str) -> Result<JobCgroups, PatternError> {
    let patterns = if text.is_empty() { JOB_CGROUPS } else { &[text] };
    patterns.iter().map(|pattern| pattern.parse()).collect::<Result<_, _>>().map(JobCgroups)
}

/// all, none, or a comma-separated list of call families.
pub(crate) fn parse_misses(text: &str) -> Result<Misses, String> {
    match text {
        "all" => Ok(Misses::all()),
        "none" => Ok(Misses::NONE),
        list => list.split(',').try_fold(Misses::NONE, |misses, name| {
            let family = Family::from_name(name).ok_or_else(|| {
                let names = Family::ALL.map(Family::name).join(", ");
                format!("unknown call family {name:?}: use all, none, or a list of {names}")
            })?;
            Ok(misses.with(family))
        }),
    }
}

/// A number with a unit: 100ms, 5s, 2m, 1h.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; examples: 100ms, 5s"))
}

/// A percentage: 5, 0.5%.
#[cfg(feature = "analyse")]
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("not a percentage from 0 to 100".to_owned()),
    }
}

/// NAME=VALUE, both not empty; a name is one word.
#[cfg(feature = "analyse")]
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
#[cfg(feature = "analyse")]
pub(crate) fn parse_wall(text: &str) -> Result<Duration, String> {
    let wall = parse_duration(text)?;
    if wall.is_zero() { Err("must be more than 0".into()) } else { Ok(wall) }
}

/// The shortest time off the CPU that is recorded; None: none is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitsMin(pub(crate) Option<Duration>);

/// A duration, or none.
pub(crate) fn parse_waits(text: &str) -> Result<WaitsMin, String> {
    if text == "none" {
        return Ok(WaitsMin(None));
    }
    let shortest = parse_duration(text)?;
    if shortest < Duration::from_micros(1) {
        return Err("must be none, or at least 1us".into());
    }
    Ok(WaitsMin(Some(shortest)))
}

pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    if (Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&interval) {
        Ok(interval)
    } else {
        Err("must be between 1ms and 1h".into())
    }
}

/// An amount of memory with a unit: 512MiB, 4GiB. K, M, G and T are binary as well.
#[cfg(feature = "analyse")]
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().map_err(|_| String::from("use an amount such as 4GiB"))?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        _ => return Err("the unit must be KiB, MiB, GiB or TiB".into()),
    };
    number.checked_mul(factor).filter(|bytes| *bytes > 0).ok_or_else(|| "no such amount".into())
}

/// A number of bytes with a unit: 4096, 256KiB, 16MiB, 1GiB. K, M and G are binary as well.
pub(crate) fn parse_size(text: &str) -> Result<u32, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: u32 = number.parse().map_err(|_| String::from("use a size such as 256KiB"))?;
    let factor = match unit {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err("the unit must be KiB, MiB or GiB".into()),
    };
    let bytes = number.checked_mul(factor).ok_or("larger than 4 GiB")?;
    if bytes.is_power_of_two() && (64 << 10..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("must be a power of two between 64KiB and 1GiB".into())
    }
}
