//! Quantities over time as items of a timeline.

use std::collections::BTreeMap;

use proctrace_findings::{Series, TimelineCounter, TimelineItem};
use proctrace_overview::passes::passes;
use proctrace_recording::Recording;
use proctrace_recording::bin_series::{BinKind, BinSeries};
use proctrace_recording::knowledge::Knows;
use proctrace_wire::Quantity;

use super::{number, since};
use crate::gantt::strips::Strips;

/// Maximum number of bins: those of the recording itself are at most twice as fine.
const BINS_MAX: usize = 10_000;

/// A value per bin: the sum of some quantities.
struct Binwise {
    name: &'static str,
    unit: &'static str,
    of: &'static [BinSeries],
    /// A value of 1.
    scale: f64,
}

const fn counter_of(name: &'static str, unit: &'static str, of: &'static [BinSeries]) -> Binwise {
    Binwise { name, unit, of, scale: 1.0 }
}

const COUNTERS: &[Binwise] = &[
    counter_of("tasks alive", "tasks", &[BinSeries::Live]),
    counter_of("tasks running or runnable", "tasks", &[BinSeries::Running]),
    counter_of("tasks uninterruptible", "tasks", &[BinSeries::Uninterruptible]),
    Binwise { scale: 1e9, ..counter_of("CPU", "cores", &[BinSeries::User, BinSeries::System]) },
    Binwise { scale: 1e9, ..counter_of("CPU system", "cores", &[BinSeries::System]) },
    counter_of("forks", "1/s", &[BinSeries::Forks]),
    counter_of("execs", "1/s", &[BinSeries::Execs]),
    counter_of("failed look-ups", "1/s", &[BinSeries::LookupsFailed]),
    counter_of("storage read", "B/s", &[BinSeries::ReadBytes]),
    counter_of("storage written", "B/s", &[BinSeries::WriteBytes]),
];

impl Binwise {
    /// Their sum may be known where they are not: all CPU time without its division.
    fn is_known(&self, knows: &Knows) -> bool {
        let needs: &[Quantity] = match self.of {
            [BinSeries::User, BinSeries::System] => &[Quantity::Forks, Quantity::Cpu],
            [one, ..] => one.needs(),
            [] => &[],
        };
        knows.all(needs)
    }

    /// True if it is a mean; otherwise, increases per second.
    fn is_mean(&self) -> bool {
        self.of.iter().all(|it| matches!(it.kind(), BinKind::Mean | BinKind::Sampled))
    }
}

pub(super) fn counters<E>(
    recording: &Recording,
    take: &mut impl FnMut(TimelineItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let bins = Strips::of(recording, 0, recording.recorded_ns().max(1), BINS_MAX);
    for counter in COUNTERS.iter().filter(|counter| counter.is_known(recording.knows())) {
        let values = values(recording, &bins, counter);
        let (name, unit) = (counter.name, counter.unit);
        take(TimelineItem::Counter(TimelineCounter {
            name,
            unit,
            process: None,
            values: &values,
        }))?;
    }
    if recording.knows().all(&[Quantity::Memory]) {
        memory(recording, take)?;
    }
    Ok(())
}

/// One value per bin, without those that are not known.
fn values(recording: &Recording, bins: &Strips, counter: &Binwise) -> Vec<(u64, f64)> {
    let series = |quantity: &BinSeries| -> Series {
        match counter.is_mean() {
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
    for (at, reading) in recording.memory_readings().unwrap_or_default().iter().enumerate() {
        of_process.entry(reading.process).or_default().push(at);
    }
    for (process, readings) in of_process {
        let mut of_one = |name, bytes: &dyn Fn(usize) -> u64| {
            let time_ns = |at: usize| {
                since(
                    recording,
                    recording.memory_readings().unwrap_or_default()[at].record.head.time_ns,
                )
            };
            let values: Vec<_> =
                readings.iter().map(|at| (time_ns(*at), bytes(*at) as f64)).collect();
            take(counter(name, Some(number(process)), &values))
        };
        of_one("PSS", &|at| recording.memory_readings().unwrap_or_default()[at].record.pss_bytes)?;
        of_one("RSS", &|at| recording.memory_readings().unwrap_or_default()[at].record.rss_bytes)?;
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
