//! Quantities over time as items of a timeline.

use std::collections::BTreeMap;

use proctrace_findings::{Series, TimelineCounter, TimelineItem};
use proctrace_overview::passes::passes;
use proctrace_recording::Recording;
use proctrace_recording::bins::BinSeries;
use proctrace_wire::Quantity;

use super::{number, since};
use crate::gantt::strips::Strips;

/// Maximum number of bins: those of the recording itself are at most twice as fine.
const BINS_MAX: usize = 10_000;

/// A value per bin.
struct Binwise {
    name: &'static str,
    unit: &'static str,
    needs: &'static [Quantity],
    /// True if it is a mean; otherwise, increases per second.
    is_mean: bool,
    /// The sum of these.
    of: &'static [BinSeries],
    /// A value of 1.
    scale: f64,
}

const fn rate(
    name: &'static str,
    unit: &'static str,
    needs: &'static [Quantity],
    of: &'static [BinSeries],
) -> Binwise {
    Binwise { name, unit, needs, is_mean: false, of, scale: 1.0 }
}

const fn mean(name: &'static str, needs: &'static [Quantity], of: &'static [BinSeries]) -> Binwise {
    Binwise { name, unit: "tasks", needs, is_mean: true, of, scale: 1.0 }
}

const fn cores(
    name: &'static str,
    needs: &'static [Quantity],
    of: &'static [BinSeries],
) -> Binwise {
    Binwise { scale: 1e9, ..rate(name, "cores", needs, of) }
}

const COUNTERS: &[Binwise] = &[
    mean("tasks alive", &[Quantity::Forks], &[BinSeries::Live]),
    mean("tasks running or runnable", &[Quantity::Samples], &[BinSeries::Running]),
    mean("tasks uninterruptible", &[Quantity::Samples], &[BinSeries::Uninterruptible]),
    cores("CPU", &[Quantity::Forks, Quantity::Cpu], &[BinSeries::User, BinSeries::System]),
    cores("CPU system", &[Quantity::Forks, Quantity::Cpu, Quantity::Split], &[BinSeries::System]),
    rate("forks", "1/s", &[Quantity::Forks], &[BinSeries::Forks]),
    rate("execs", "1/s", &[Quantity::Execs], &[BinSeries::Execs]),
    rate("failed look-ups", "1/s", &Quantity::LOOKUPS, &[BinSeries::LookupsFailed]),
    rate("storage read", "B/s", &[Quantity::Forks, Quantity::Io], &[BinSeries::ReadBytes]),
    rate("storage written", "B/s", &[Quantity::Forks, Quantity::Io], &[BinSeries::WriteBytes]),
];

pub(super) fn counters<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let bins = Strips::of(recording, 0, recording.recorded_ns().max(1), BINS_MAX);
    for counter in COUNTERS.iter().filter(|counter| recording.knows.all(counter.needs)) {
        let values = values(recording, &bins, counter);
        let (name, unit) = (counter.name, counter.unit);
        take(TimelineItem::Counter(TimelineCounter {
            name,
            unit,
            process: None,
            values: &values,
        }))?;
    }
    if recording.knows.all(&[Quantity::Memory]) {
        memory(recording, take)?;
    }
    Ok(())
}

/// One value per bin, without those that are not known.
fn values(recording: &Recording, bins: &Strips, counter: &Binwise) -> Vec<(u64, f64)> {
    let series = |quantity: &BinSeries| -> Series {
        match counter.is_mean {
            true => bins.mean(counter.name, recording, *quantity),
            false => bins.rate(counter.name, recording, *quantity),
        }
    };
    let all: Vec<Series> = counter.of.iter().map(series).collect();
    let value = |at: usize| {
        let parts = all.iter().map(|series| series.values.get(at).copied().flatten());
        parts.sum::<Option<f64>>().filter(|sum| sum.is_finite())
    };
    let times = bins.edges_ns.iter().enumerate();
    times.filter_map(|(at, time_ns)| Some((*time_ns, value(at)? / counter.scale))).collect()
}

/// The memory of all processes at each pass, and of each process at each reading.
fn memory<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let passes = passes(recording, |_| true);
    let mut of_all = |name, bytes: &dyn Fn(usize) -> u64| {
        let time_ns = |at: usize| since(recording, passes[at].time_ns);
        let values: Vec<_> = (0..passes.len()).map(|at| (time_ns(at), bytes(at) as f64)).collect();
        take(counter(name, None, &values))
    };
    of_all("PSS of all processes", &|at| passes[at].pss_bytes)?;
    of_all("RSS of all processes", &|at| passes[at].rss_bytes)?;
    let mut of_process: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, reading) in recording.memory_readings.iter().enumerate() {
        of_process.entry(reading.process).or_default().push(at);
    }
    for (process, readings) in of_process {
        let mut of_one = |name, bytes: &dyn Fn(usize) -> u64| {
            let time_ns =
                |at: usize| since(recording, recording.memory_readings[at].record.head.time_ns);
            let values: Vec<_> =
                readings.iter().map(|at| (time_ns(*at), bytes(*at) as f64)).collect();
            take(counter(name, Some(number(process)), &values))
        };
        of_one("PSS", &|at| recording.memory_readings[at].record.pss_bytes)?;
        of_one("RSS", &|at| recording.memory_readings[at].record.rss_bytes)?;
    }
    Ok(())
}

fn counter<'a>(
    name: &'static str,
    process: Option<u32>,
    values: &'a [(u64, f64)],
) -> TimelineItem<'a> {
    TimelineItem::Counter(TimelineCounter { name, unit: "B", process, values })
}
