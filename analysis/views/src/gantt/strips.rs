//! The activity of the whole tree over time, in bins wide enough to be visible.

use proctrace_findings::{Mark, Series, Strip, Unit};
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;

use super::lanes::Lanes;

/// The bins of the strips.
pub(crate) struct Strips {
    /// Relative to the start of the recording.
    pub(crate) edges_ns: Vec<u64>,
    /// The recording's bins in each.
    bins: Vec<std::ops::Range<usize>>,
}

impl Strips {
    /// Strips of at most `bins_max` bins for a time window.
    pub(crate) fn of(recording: &Recording, from_ns: u64, until_ns: u64, bins_max: usize) -> Self {
        let bins = recording.bins();
        let start_ns = recording.first_ns();
        let first = bins.bin_of(start_ns.saturating_add(from_ns));
        let end = bins.bin_of(start_ns.saturating_add(until_ns.saturating_sub(1))) + 1;
        let merged = (end - first).div_ceil(bins_max).max(1);
        let mut ranges: Vec<_> =
            (first..end).step_by(merged).map(|begin| begin..(begin + merged).min(end)).collect();
        let edge_ns = |bin: usize| {
            (bin as u64).saturating_mul(bins.width_ns).min(recording.recorded_ns().max(1))
        };
        // In a very short bin at the end, a single event would look like a high rate.
        if let [.., before, last] = &mut *ranges
            && edge_ns(last.end) - edge_ns(last.start)
                < bins.width_ns.saturating_mul(merged as u64) / 2
        {
            before.end = last.end;
            ranges.pop();
        }
        let edges_ns = ranges.iter().map(|range| range.start).chain([end]).map(edge_ns).collect();
        Self { edges_ns, bins: ranges }
    }

    /// Every strip that is not empty.
    pub(crate) fn all(&self, recording: &Recording, lanes: &Lanes, cores: u32) -> Vec<Strip> {
        let of = |quantity: BinSeries| recording.bins().of(quantity);
        let cores_mark = Mark {
            at: f64::from(cores),
            name: format!("{cores} {}", if cores == 1 { "core" } else { "cores" }),
        };
        let busy = |name: &str, ns: &[f64]| series(name, self.per_ns(ns));
        let rate = |name: &str, events: &[f64]| series(name, self.per_second(events));

        let (cpu_ns, births) = by_category(recording, lanes);
        let by_lane = |values: &[Vec<f64>], make: &dyn Fn(&str, &[f64]) -> Series| {
            values.iter().enumerate().map(|(lane, values)| make(lanes.name(lane), values)).collect()
        };
        let strip = |title: &str, unit: Unit, series: Vec<Series>| Strip {
            title: title.to_owned(),
            unit,
            series,
            by_lane: false,
            limit: None,
        };
        let mut strips = vec![
            Strip {
                limit: Some(cores_mark.clone()),
                ..strip(
                    "CPU",
                    Unit::Cores,
                    vec![busy("user", of(BinSeries::User)), busy("system", of(BinSeries::System))],
                )
            },
            Strip {
                limit: Some(cores_mark),
                by_lane: true,
                ..strip("CPU by category", Unit::Cores, by_lane(&cpu_ns, &busy))
            },
            strip(
                "Tasks",
                Unit::Count,
                vec![
                    self.mean("running or runnable", recording, BinSeries::Running),
                    self.mean("uninterruptible", recording, BinSeries::Uninterruptible),
                ],
            ),
            Strip {
                by_lane: true,
                ..strip("New processes", Unit::PerSecond, by_lane(&births, &rate))
            },
            strip(
                "Switches",
                Unit::PerSecond,
                vec![
                    rate("voluntary", of(BinSeries::SwitchesVoluntary)),
                    rate("involuntary", of(BinSeries::SwitchesInvoluntary)),
                ],
            ),
            strip(
                "Storage per second",
                Unit::Bytes,
                vec![
                    rate("read", of(BinSeries::ReadBytes)),
                    rate("written", of(BinSeries::WriteBytes)),
                ],
            ),
        ];
        let values = |strip: &Strip| {
            strip
                .series
                .iter()
                .flat_map(|series| &series.values)
                .flatten()
                .any(|value| *value > 0.0)
        };
        strips.retain(values);
        strips
    }

    /// A series of events per second.
    pub(crate) fn rate(&self, name: &str, recording: &Recording, quantity: BinSeries) -> Series {
        series(name, self.per_second(recording.bins().of(quantity)))
    }

    fn sums<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = (f64, u64)> {
        self.bins.iter().zip(self.edges_ns.windows(2)).map(move |(range, edges)| {
            let sum = values.get(range.clone()).unwrap_or(&[]).iter().sum();
            (sum, edges[1].saturating_sub(edges[0]).max(1))
        })
    }

    fn per_ns(&self, values: &[f64]) -> Vec<f64> {
        self.sums(values).map(|(sum, ns)| sum / ns as f64).collect()
    }

    fn per_second(&self, values: &[f64]) -> Vec<f64> {
        self.sums(values).map(|(sum, ns)| sum / (ns as f64 / 1e9)).collect()
    }

    /// Means over the known bins; a gap before the first of them.
    pub(crate) fn mean(&self, name: &str, recording: &Recording, quantity: BinSeries) -> Series {
        let values = recording.bins().of(quantity);
        let known_from = recording.bins().known_from(quantity);
        let mean = |range: &std::ops::Range<usize>| {
            let known = values.get(range.start.max(known_from)..range.end)?;
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        Series { name: name.to_owned(), values: self.bins.iter().map(mean).collect() }
    }
}

/// CPU time and births in each bin, by lane.
fn by_category(recording: &Recording, lanes: &Lanes) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut cpu_ns = vec![vec![0.0; recording.bins().len()]; lanes.len()];
    let mut births = cpu_ns.clone();
    for (category, bins) in recording.bins().categories.iter().enumerate() {
        let lane = lanes.of_category(category);
        if lane < lanes.len() {
            add(&mut cpu_ns[lane], &bins.user_ns);
            add(&mut cpu_ns[lane], &bins.system_ns);
            add(&mut births[lane], &bins.processes);
        }
    }
    (cpu_ns, births)
}

fn add(to: &mut [f64], values: &[f64]) {
    for (to, value) in to.iter_mut().zip(values) {
        *to += value;
    }
}

fn series(name: &str, values: Vec<f64>) -> Series {
    Series { name: name.to_owned(), values: values.into_iter().map(Some).collect() }
}
