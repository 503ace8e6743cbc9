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
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; examples: 100ms, 5s"))
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

/// An interval from 1 ms to 1 hour.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    if (Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&interval) {
        Ok(interval)
    } else {
        Err("must be between 1ms and 1h".into())
    }
}

/// The number of an amount of bytes, and the power of two that its unit stands for; None: that is no unit.
pub fn amount(text: &str) -> (&str, Option<u32>) {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let shift = match unit {
        "" | "B" => Some(0),
        "K" | "KiB" => Some(10),
        "M" | "MiB" => Some(20),
        "G" | "GiB" => Some(30),
        "T" | "TiB" => Some(40),
        _ => None,
    };
    (number, shift)
}

/// A number of bytes with a unit: 4096, 256KiB, 16MiB, 1GiB. K, M and G are binary as well.
pub(crate) fn parse_size(text: &str) -> Result<u32, String> {
    let (number, shift) = amount(text);
    let number: u32 = number.parse().map_err(|_| "use a size such as 256KiB")?;
    let shift = shift.filter(|shift| *shift <= 30).ok_or("the unit must be KiB, MiB or GiB")?;
    let bytes = number.checked_mul(1 << shift).ok_or("larger than 4 GiB")?;
    if bytes.is_power_of_two() && (64 << 10..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("must be a power of two between 64KiB and 1GiB".into())
    }
}
