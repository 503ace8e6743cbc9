//! Recordings with 1, 2, 4… workers or threads compared: what an additional worker gains, and what
//! it costs.

mod charts;
mod run;

pub use run::SeriesRun;

use std::collections::BTreeMap;

use proctrace_findings::{Table, Unit};

use proctrace_overview::options::Content;
use run::BUSY_PERCENT;

/// Parameters for judging a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesOptions {
    /// The knee is where efficiency falls below this.
    pub knee_percent: f64,
    /// True to show core-time relative to the first group even if there is only one group; with
    /// several groups it is always shown.
    pub against_first: bool,
}

/// The runs of one variant.
struct Group<'a> {
    name: &'a str,
    runs: Vec<&'a SeriesRun>,
}

/// Tables and charts of a series.
pub fn series(runs: &[SeriesRun], options: &SeriesOptions) -> Content {
    let groups = groups(runs);
    let mut tables = vec![
        throughput_table(&groups),
        resources_table(&groups),
        knee_table(&groups, options.knee_percent),
    ];
    if groups.len() > 1 || options.against_first {
        tables.push(core_time_table(&groups));
    }
    if let [first, second] = &groups[..] {
        tables.extend(comparison(first, second));
    }
    Content { tables, charts: charts::charts(&groups, options.knee_percent) }
}

/// Groups in order of first occurrence.
fn groups(runs: &[SeriesRun]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group.name == run.group) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { name: &run.group, runs: vec![run] }),
        }
    }
    for group in &mut groups {
        group.runs.sort_by_key(|run| run.workers);
    }
    groups
}

impl Group<'_> {
    /// The mean of a value over the runs with each number of workers; runs without it are left out.
    fn means(&self, figure: impl Fn(&SeriesRun) -> Option<f64>) -> BTreeMap<u64, f64> {
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for run in &self.runs {
            if let Some(value) = figure(run) {
                let (sum, n) = sums.entry(run.workers).or_default();
                *sum += value;
                *n += 1.0;
            }
        }
        sums.into_iter().map(|(workers, (sum, n))| (workers, sum / n)).collect()
    }

    /// Throughput per worker, in percent of that with the fewest workers.
    fn efficiencies(&self) -> BTreeMap<u64, f64> {
        let mut rates = self.means(SeriesRun::rate_per_worker);
        let reference = rates.values().next().copied().filter(|rate| *rate > 0.0);
        match reference {
            Some(reference) => {
                rates.values_mut().for_each(|rate| *rate = 100.0 * *rate / reference);
                rates
            }
            None => BTreeMap::new(),
        }
    }

    fn efficiency(&self, run: &SeriesRun) -> Option<f64> {
        let rates = self.means(SeriesRun::rate_per_worker);
        let reference = rates.values().next().copied().filter(|rate| *rate > 0.0)?;
        Some(100.0 * run.rate_per_worker()? / reference)
    }

    /// The smallest number of workers whose efficiency is below the limit, and its efficiency.
    fn knee(&self, limit_percent: f64) -> Option<(u64, f64)> {
        self.efficiencies().into_iter().find(|(_, percent)| *percent < limit_percent)
    }
}

/// Every run, group by group.
fn rows<'a>(groups: &'a [Group<'a>]) -> impl Iterator<Item = &'a SeriesRun> + Clone {
    groups.iter().flat_map(|group| group.runs.iter().copied())
}

/// Columns for run, group if there are several, and workers.
fn begin(name: &'static str, title: &str, groups: &[Group<'_>]) -> Table {
    let table =
        Table::new(name, title).text("run", "run", rows(groups).map(|run| run.name.clone()));
    let table = if groups.len() > 1 {
        table.text("group", "group", rows(groups).map(|run| run.group.clone()))
    } else {
        table
    };
    table.whole("workers", "workers", Unit::Count, rows(groups).map(|run| run.workers))
}

fn throughput_table(groups: &[Group<'_>]) -> Table {
    let efficiencies =
        groups.iter().flat_map(|group| group.runs.iter().map(|run| group.efficiency(run)));
    let table = begin("series", "Throughput", groups)
        .whole("events", "events", Unit::Count, rows(groups).map(|run| run.events))
        .whole("wall_ns", "wall", Unit::Nanoseconds, rows(groups).map(|run| run.wall_ns))
        .real("events_per_second", "rate", Unit::PerSecond, rows(groups).map(SeriesRun::rate))
        .real(
            "events_per_second_per_worker",
            "per worker",
            Unit::PerSecond,
            rows(groups).map(SeriesRun::rate_per_worker),
        )
        .real("efficiency_percent", "efficiency", Unit::Percent, efficiencies)
        .note(format!(
            "workers: as given by RUN=N; otherwise those of the pool that used most of the CPU \
             time; otherwise threads of the busiest process with more than {BUSY_PERCENT} % of the \
             CPU time of its busiest thread."
        ))
        .note(
            "rate: events per second of wall time. efficiency: rate per worker relative to the run \
             with the fewest workers of the group.",
        );
    if rows(groups).all(|run| run.events.is_none()) {
        return table.note(
            "Events are not known: give --events N[,N…], or name the logs with --events-log GLOB. \
             For runs that all do the same work, --events 1 is enough.",
        );
    }
    table
}

fn resources_table(groups: &[Group<'_>]) -> Table {
    let use_percent = |run: &SeriesRun| {
        let cpu_ns = run.cpu_ns? as f64;
        (run.core_time_ns() > 0.0).then(|| 100.0 * cpu_ns / run.core_time_ns())
    };
    let per_worker =
        |bytes: Option<u64>, run: &SeriesRun| run.per_worker(bytes.map(|bytes| bytes as f64));
    begin("series_resources", "Resources", groups)
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, rows(groups).map(|run| run.cpu_ns))
        .real("use_percent", "of cores", Unit::Percent, rows(groups).map(use_percent))
        .whole("peak_bytes", "peak", Unit::Bytes, rows(groups).map(|run| run.peak_bytes))
        .real(
            "peak_bytes_per_worker",
            "per worker",
            Unit::Bytes,
            rows(groups).map(|run| per_worker(run.peak_bytes, run)),
        )
        .real(
            "mean_bytes_per_worker",
            "mean",
            Unit::Bytes,
            rows(groups).map(|run| per_worker(run.mean_bytes, run)),
        )
        .real(
            "written_bytes_per_event",
            "per event",
            Unit::Bytes,
            rows(groups).map(|run| run.per_event(run.written_bytes? as f64)),
        )
        .note(
            "of cores: CPU time / (wall time x workers). peak, mean: memory, mean per worker; PSS \
             of all processes at one reading (record --memory), or without readings the peak RSS \
             of a program with threads. per event: bytes written by system calls.",
        )
}

fn knee_table(groups: &[Group<'_>], limit_percent: f64) -> Table {
    let efficiencies: Vec<BTreeMap<u64, f64>> = groups.iter().map(Group::efficiencies).collect();
    let knees: Vec<Option<(u64, f64)>> =
        groups.iter().map(|group| group.knee(limit_percent)).collect();
    let before = efficiencies.iter().zip(&knees).map(|(efficiencies, knee)| {
        let up_to = knee.map_or(u64::MAX, |(workers, _)| workers);
        efficiencies.range(..up_to).next_back().map(|(workers, _)| *workers)
    });
    Table::new("series_knee", "Scaling limit")
        .text("group", "group", groups.iter().map(|group| label(group.name)))
        .whole(
            "reference_workers",
            "reference",
            Unit::Count,
            efficiencies.iter().map(|of| of.keys().next().copied()),
        )
        .whole("efficient_workers", "good up to", Unit::Count, before)
        .whole("knee_workers", "knee at", Unit::Count, knees.iter().map(|k| k.map(|(n, _)| n)))
        .real(
            "knee_efficiency_percent",
            "efficiency there",
            Unit::Percent,
            knees.iter().map(|k| k.map(|(_, percent)| percent)),
        )
        .note(format!(
            "knee: the smallest number of workers with an efficiency below {limit_percent} % \
             (--knee)."
        ))
}

fn label(name: &str) -> String {
    if name.is_empty() { "all runs".to_owned() } else { name.to_owned() }
}

/// Cores times wall time of each group, compared with the first.
fn core_time_table(groups: &[Group<'_>]) -> Table {
    let core_time: Vec<f64> =
        groups.iter().map(|group| group.runs.iter().map(|run| run.core_time_ns()).sum()).collect();
    let events: Vec<Option<u64>> = groups
        .iter()
        .map(|group| {
            group.runs.iter().try_fold(0u64, |sum, run| Some(sum.saturating_add(run.events?)))
        })
        .collect();
    let per_event: Vec<Option<f64>> = core_time
        .iter()
        .zip(&events)
        .map(|(ns, events)| events.filter(|n| *n > 0).map(|events| ns / events as f64))
        .collect();
    let to_first = |values: &[Option<f64>]| -> Vec<Option<f64>> {
        let first = values.first().copied().flatten().filter(|first| *first > 0.0);
        values.iter().map(|value| Some((*value)? / first?)).collect()
    };
    let known: Vec<Option<f64>> = core_time.iter().copied().map(Some).collect();
    Table::new("series_core_time", "Core-time")
        .text("group", "group", groups.iter().map(|group| label(group.name)))
        .whole("runs", "runs", Unit::Count, groups.iter().map(|group| group.runs.len() as u64))
        .real("core_time_ns", "core-time", Unit::Nanoseconds, core_time)
        .real("to_first", "vs first", Unit::Ratio, to_first(&known))
        .whole("events", "events", Unit::Count, events)
        .real("core_time_per_event_ns", "per event", Unit::Nanoseconds, per_event.clone())
        .real("per_event_to_first", "vs first", Unit::Ratio, to_first(&per_event))
        .note(
            "core-time: workers x wall time, summed over the runs of a group. vs first: as a \
             multiple of the first group's.",
        )
}

/// Two variants at the numbers of workers that both have; `None` if there are none.
fn comparison(first: &Group<'_>, second: &Group<'_>) -> Option<Table> {
    let workers = |group: &Group<'_>| group.means(|_| Some(0.0)).into_keys().collect::<Vec<_>>();
    let of_second = workers(second);
    let both: Vec<u64> =
        workers(first).into_iter().filter(|workers| of_second.contains(workers)).collect();
    if both.is_empty() {
        return None;
    }
    let at_both = |group: &Group<'_>, figure: fn(&SeriesRun) -> Option<f64>| -> Vec<Option<f64>> {
        let means = group.means(figure);
        both.iter().map(|workers| means.get(workers).copied()).collect()
    };
    let change = |first: &[Option<f64>], second: &[Option<f64>]| -> Vec<Option<f64>> {
        first
            .iter()
            .zip(second)
            .map(|(first, second)| {
                let first = first.filter(|first| *first > 0.0)?;
                Some(100.0 * ((*second)? / first - 1.0))
            })
            .collect()
    };
    let peak = |run: &SeriesRun| run.per_worker(run.peak_bytes.map(|bytes| bytes as f64));
    let rates = (at_both(first, SeriesRun::rate), at_both(second, SeriesRun::rate));
    let memory = (at_both(first, peak), at_both(second, peak));
    let changes = (change(&rates.0, &rates.1), change(&memory.0, &memory.1));
    let title = format!("{} compared with {}", label(second.name), label(first.name));
    let table = Table::new("series_comparison", title)
        .whole("workers", "workers", Unit::Count, both.iter().copied())
        .real("first_events_per_second", "first", Unit::PerSecond, rates.0)
        .real("second_events_per_second", "second", Unit::PerSecond, rates.1)
        .real("rate_change_percent", "change", Unit::Percent, changes.0)
        .real("first_bytes_per_worker", "first", Unit::Bytes, memory.0)
        .real("second_bytes_per_worker", "second", Unit::Bytes, memory.1)
        .real("memory_change_percent", "change", Unit::Percent, changes.1)
        .note(format!(
            "first: {}; second: {}. Events per second, and peak memory per worker; means if there \
             are several runs.",
            label(first.name),
            label(second.name)
        ));
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;

    fn run(group: &str, workers: u64, seconds: f64, events: u64, megabytes: u64) -> SeriesRun {
        SeriesRun {
            name: format!("{group}{workers}"),
            group: group.into(),
            workers,
            wall_ns: (seconds * 1e9) as u64,
            cpu_ns: Some(1),
            events: Some(events),
            peak_bytes: Some(megabytes * 1_000_000),
            mean_bytes: None,
            written_bytes: Some(events * 930_000),
        }
    }

    fn reals(content: &Content, table: &str, column: &str) -> Vec<Option<f64>> {
        let table = content.tables.iter().find(|known| known.name == table).unwrap();
        let column = table.named(column).unwrap();
        (0..table.height())
            .map(|row| match column.values.get(row) {
                Cell::Real(value) => Some(value),
                Cell::Whole(value) => Some(value as f64),
                _ => None,
            })
            .collect()
    }

    const OPTIONS: SeriesOptions = SeriesOptions { knee_percent: 90.0, against_first: false };

    /// The values of ATLAS's table for the SharedWriter, with 8 and 16 workers: 6.7 to 11.4 and 6.7
    /// to 21.2 events a second, 1.67 to 1.88 and 1.45 to 1.81 GB a core.
    #[test]
    fn two_variants_are_compared_as_the_shared_writers_were() {
        let runs = [
            run("legacy", 8, 1000.0, 6_700, 8 * 1_670),
            run("legacy", 16, 1000.0, 6_700, 16 * 1_450),
            run("new", 16, 1000.0, 21_200, 16 * 1_810),
            run("new", 8, 1000.0, 11_400, 8 * 1_880),
        ];
        let content = series(&runs, &OPTIONS);
        let change: Vec<_> = reals(&content, "series_comparison", "rate_change_percent")
            .iter()
            .map(|value| value.unwrap().round())
            .collect();
        assert_eq!(change, [70.0, 216.0]);
        let change: Vec<_> = reals(&content, "series_comparison", "memory_change_percent")
            .iter()
            .map(|value| value.unwrap().round())
            .collect();
        assert_eq!(change, [13.0, 25.0]);
        let written = reals(&content, "series_resources", "written_bytes_per_event");
        assert_eq!(written, [Some(930_000.0); 4]);
    }

    #[test]
    fn the_knee_is_the_first_below_the_limit() {
        // Per worker and second: 10, 10, 9.5, 8, 9.4; for two runs with two workers the mean
        // counts.
        let runs = [
            run("", 1, 10.0, 100, 1),
            run("", 2, 10.0, 180, 1),
            run("", 2, 10.0, 220, 1),
            run("", 4, 10.0, 380, 1),
            run("", 8, 10.0, 640, 1),
            run("", 16, 10.0, 1504, 1),
        ];
        let content = series(&runs, &OPTIONS);
        assert_eq!(reals(&content, "series_knee", "knee_workers"), [Some(8.0)]);
        assert_eq!(reals(&content, "series_knee", "efficient_workers"), [Some(4.0)]);
        let percent = reals(&content, "series", "efficiency_percent");
        let expected = [100.0, 90.0, 110.0, 95.0, 80.0, 94.0];
        for (found, expected) in percent.iter().zip(expected) {
            assert!((found.unwrap() - expected).abs() < 1e-9, "{percent:?}");
        }
        let none = series(&runs, &SeriesOptions { knee_percent: 50.0, ..OPTIONS });
        assert_eq!(reals(&none, "series_knee", "knee_workers"), [None]);
        assert_eq!(reals(&none, "series_knee", "efficient_workers"), [Some(16.0)]);
    }

    /// AthenaMP in production, table 1: 173 core-days against 360.
    #[test]
    fn core_time_is_added_up_and_compared() {
        let day = 86_400.0;
        let runs = [
            run("mp", 8, 30.0 * day, 1000, 1),
            run("mp", 8, 15.0 * day, 1000, 1),
            run("mj", 1, 100.0 * day, 1000, 1),
            run("mj", 1, 73.0 * day, 1000, 1),
        ];
        let content = series(&runs, &OPTIONS);
        let ratio = reals(&content, "series_core_time", "to_first");
        assert!((ratio[1].unwrap() - 173.0 / 360.0).abs() < 1e-12);
        let ratio = reals(&content, "series_core_time", "per_event_to_first");
        assert!((ratio[1].unwrap() - 173.0 / 360.0).abs() < 1e-12);
    }

    #[test]
    fn without_events_there_is_no_throughput_but_the_rest() {
        let mut runs = [run("", 1, 10.0, 1, 5), run("", 2, 6.0, 1, 5)];
        runs.iter_mut().for_each(|run| run.events = None);
        let content = series(&runs, &OPTIONS);
        assert_eq!(reals(&content, "series", "efficiency_percent"), [None, None]);
        assert_eq!(reals(&content, "series_knee", "knee_workers"), [None]);
        assert!(content.tables[0].notes.iter().any(|note| note.contains("--events")));
        assert_eq!(content.charts.len(), 1);
        assert_eq!(series(&[], &OPTIONS).tables[0].height(), 0);
    }
}
