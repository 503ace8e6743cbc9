//! The concurrency section: how many CPUs a job uses, how many tasks run at once, and when that
//! exceeds the requested cores.

mod amdahl;
mod states;

use std::collections::BTreeMap;

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Series, Table, Unit, count};
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use self::amdahl::Serial;
use crate::shares::percent;
use crate::shares::slices::{SPILL, Slice, slices};

/// Maximum level that has a bar of its own; then the ranges double.
const SINGLE_BARS: u64 = 8;

pub(crate) fn section(recording: &Recording, options: &Options) -> Content {
    let cores = options.cores(recording);
    let slices = slices(recording);
    let looks = looks(recording);
    let levels = levels(&slices, &looks);
    let looked: u64 = looks.values().sum();
    let by_cpu = Serial::by_cpu(&slices);
    let by_looks = Serial::by_looks(&slices, looked);
    let states = states::states(recording);
    let waiting = states::waiting_percent(recording);
    Content {
        charts: [states::chart(&states), levels_chart(&levels)]
            .into_iter()
            .chain(by_looks.as_ref().map(|serial| amdahl::chart(serial, cores)))
            .collect(),
        tables: vec![
            states::table(&states, recording),
            levels_table(&levels, &slices, &looks, recording.bins().width_ns),
            amdahl::serial_table(&by_cpu, by_looks.as_ref(), waiting, recording.bins().width_ns),
            amdahl::table(by_looks.as_ref(), cores, looked, recording.peak_running()),
            overcommit(&slices, &looks, cores),
        ],
    }
}

/// Number of samples by the number of tasks found running or runnable.
fn looks(recording: &Recording) -> BTreeMap<u32, u64> {
    let mut looks = BTreeMap::new();
    for tick in recording.ticks().unwrap_or_default() {
        if tick.head.time_ns <= recording.watch().until_ns {
            *looks.entry(tick.running).or_default() += 1;
        }
    }
    looks
}

/// Wall time with a number of CPUs in use, and samples that found that number of tasks running.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Level {
    wall_ns: f64,
    looks: u64,
}

/// Time by number of CPUs or tasks.
fn levels(slices: &[Slice], looks: &BTreeMap<u32, u64>) -> BTreeMap<u64, Level> {
    let mut levels: BTreeMap<u64, Level> = BTreeMap::new();
    for slice in slices {
        let cpus = (slice.cpu_ns / slice.wall_ns).round().max(0.0) as u64;
        levels.entry(cpus).or_default().wall_ns += slice.wall_ns;
    }
    for (tasks, count) in looks {
        levels.entry(u64::from(*tasks)).or_default().looks += count;
    }
    levels
}

fn wall_ns(slices: &[Slice]) -> f64 {
    slices.iter().map(|slice| slice.wall_ns).sum()
}

fn levels_table(
    levels: &BTreeMap<u64, Level>,
    slices: &[Slice],
    looks: &BTreeMap<u32, u64>,
    bin_ns: u64,
) -> Table {
    let (all_ns, all_looks) = (wall_ns(slices), looks.values().sum::<u64>());
    let of = || levels.values();
    Table::new("concurrency", "CPUs used and tasks running at the same time")
        .rows_need(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .whole("level", "at once", Unit::Count, levels.keys().copied())
        .real("cpus_wall_ns", "CPUs used", Unit::Nanoseconds, of().map(|level| level.wall_ns))
        .real(
            "cpus_percent",
            "of wall",
            Unit::Percent,
            of().map(|level| percent(level.wall_ns, all_ns)),
        )
        .whole("looks", "samples", Unit::Count, of().map(|level| level.looks))
        .real(
            "looks_percent",
            "of samples",
            Unit::Percent,
            of().map(|level| percent(level.looks as f64, all_looks as f64)),
        )
        .note(format!(
            "CPUs used: CPU time / wall time in each of {} bins of {} s while the command ran, \
             rounded to an integer; exact except for CPU time used between two samples. samples: \
             by tasks running or runnable, n = {}; an estimate.",
            count(slices.len() as u64),
            bin_ns as f64 / 1e9,
            count(all_looks)
        ))
}

fn overcommit(slices: &[Slice], looks: &BTreeMap<u32, u64>, cores: u32) -> Table {
    let (mut over_ns, mut excess_ns, mut peak) = (0.0, 0.0, 0.0f64);
    for slice in slices {
        let allowed_ns = slice.wall_ns * f64::from(cores);
        if slice.cpu_ns > allowed_ns * SPILL {
            over_ns += slice.wall_ns;
            excess_ns += slice.cpu_ns - allowed_ns;
        }
        peak = peak.max(slice.cpu_ns / slice.wall_ns);
    }
    let all: u64 = looks.values().sum();
    let crowded: u64 = looks.range(cores.saturating_add(1)..).map(|(_, count)| count).sum();
    Table::new("overcommit", "Use beyond the requested cores")
        .rows_need(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .whole("cores", "cores", Unit::Cores, [u64::from(cores)])
        .real("over_ns", "over", Unit::Nanoseconds, [over_ns])
        .real("over_percent", "of wall", Unit::Percent, [percent(over_ns, wall_ns(slices))])
        .real("excess_cpu_ns", "excess", Unit::Nanoseconds, [excess_ns])
        .real("peak_cpus", "peak", Unit::Cores, [peak])
        .real("crowded_percent", "crowded", Unit::Percent, [percent(crowded as f64, all as f64)])
        .note(format!(
            "over: bins with more than {SPILL} times the cores in use; the margin allows for \
             samples of several tasks not being simultaneous. excess: CPU time in these bins \
             beyond the cores. crowded: samples with more tasks running or runnable than cores; n \
             = {}, an estimate.",
            count(all)
        ))
}

/// The range of levels that share a bar: 9 to 16, 17 to 32 and so on.
fn bar_of(level: u64) -> (u64, u64) {
    if level <= SINGLE_BARS {
        return (level, level);
    }
    let top = level.checked_next_power_of_two().unwrap_or(u64::MAX);
    (top / 2 + 1, top)
}

fn levels_chart(levels: &BTreeMap<u64, Level>) -> Chart {
    let mut bars: BTreeMap<(u64, u64), Level> = (0..=SINGLE_BARS)
        .take_while(|level| levels.keys().next_back().is_some_and(|last| level <= last))
        .map(|level| ((level, level), Level::default()))
        .collect();
    for (level, found) in levels {
        let bar = bars.entry(bar_of(*level)).or_default();
        bar.wall_ns += found.wall_ns;
        bar.looks += found.looks;
    }
    let all_ns: f64 = bars.values().map(|bar| bar.wall_ns).sum();
    let all_looks: u64 = bars.values().map(|bar| bar.looks).sum();
    let body = Bars {
        rows: bars
            .keys()
            .map(
                |(low, high)| {
                    if low == high { low.to_string() } else { format!("{low} to {high}") }
                },
            )
            .collect(),
        axis: Axis::linear("share of time", Unit::Percent),
        series: vec![
            Series {
                name: "CPUs used".into(),
                values: bars.values().map(|bar| percent(bar.wall_ns, all_ns)).collect(),
            },
            Series {
                name: "tasks running or runnable".into(),
                values: bars
                    .values()
                    .map(|bar| percent(bar.looks as f64, all_looks as f64))
                    .collect(),
            },
        ],
        stacked: false,
    };
    Chart::new("concurrency", "CPUs used and tasks running at the same time", ChartBody::Bars(body))
        .needs(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .note(format!(
            "CPUs used: exact, by bins of time; tasks: an estimate, n = {} samples.",
            count(all_looks)
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene, real};

    /// 4 s alone, then 4 s with two children on their own CPUs in addition to the command.
    fn four_and_four() -> Recording {
        let mut scene = Scene::new(4, 100 * MS);
        scene.sample(4 * S, 1, (4 * S, 0)).fork(4 * S, 1, 2).fork(4 * S, 1, 3);
        for at in 1..=80u32 {
            let running = if at <= 40 { 1 } else { 3 };
            scene.tick(u64::from(at) * 100 * MS - MS, [running, 3 - running, 0]);
        }
        scene.exit(8 * S, 2, (4 * S, 0)).exit(8 * S, 3, (4 * S, 0));
        scene.exit_with(8 * S, 1, (8 * S, 0), |exit| exit.run_delay_ns = 0);
        scene.load(Some((8 * S, 16 * S, 0)))
    }

    fn table<'a>(content: &'a Content, name: &str) -> &'a Table {
        content.tables.iter().find(|table| table.name == name).unwrap()
    }

    #[test]
    fn the_serial_part_is_found_by_both() {
        let content = section(&four_and_four(), &Options::default());
        let serial = table(&content, "serial");
        for by in ["CPU time of bins", "samples of tasks"] {
            assert!((real(serial, "by", by, "serial_percent").unwrap() - 50.0).abs() < 1e-9);
            assert!((real(serial, "by", by, "faster").unwrap() - 2.0).abs() < 1e-9);
        }
        let cpus = real(serial, "by", "CPU time of bins", "parallel_cpus").unwrap();
        assert!((cpus - 3.0).abs() < 1e-9);
    }

    #[test]
    fn cpus_that_were_not_to_be_had_are_not_taken_for_serial() {
        // 2 s of the command alone, then 8 children of 1 s each, all of it on one CPU.
        let mut scene = Scene::new(2, 100 * MS);
        scene.sample(2 * S, 1, (2 * S, 0));
        for child in 2..10 {
            scene.fork(2 * S, 1, child);
        }
        for at in 1..=100u32 {
            scene.tick(u64::from(at) * 100 * MS - MS, [if at <= 20 { 1 } else { 8 }, 1, 0]);
        }
        for child in 2..10 {
            scene.exit_with(10 * S, child, (S, 0), |exit| exit.run_delay_ns = 7 * S);
        }
        let recording = scene.exit(10 * S, 1, (2 * S, 0)).load(Some((10 * S, 10 * S, 0)));
        let content = section(&recording, &Options::default());
        let amdahl = table(&content, "amdahl");
        let last = match amdahl.named("speedup").unwrap().values.get(amdahl.height() - 1) {
            proctrace_findings::Cell::Real(number) => number,
            other => panic!("{other:?}"),
        };
        assert!((last - 10.0 / (2.0 + 8.0 / 128.0)).abs() < 1e-6, "{amdahl:#?}");
        assert!(amdahl.notes[1].contains("at most 5.0 times"), "{amdahl:#?}");
        let serial = table(&content, "serial");
        assert_eq!(real(serial, "by", "CPU time of bins", "faster"), None);
        assert!(
            (real(serial, "by", "samples of tasks", "serial_percent").unwrap() - 20.0).abs() < 1e-6
        );
        let chart = content.charts.iter().find(|chart| chart.name == "amdahl").unwrap();
        let ChartBody::Lines(lines) = &chart.body else { panic!("no lines") };
        assert!((lines.marks[0].at - 5.0).abs() < 1e-6, "{lines:?}");
    }

    #[test]
    fn more_than_was_asked_for_is_told() {
        let options = Options { cores: Some(2), ..Options::default() };
        let content = section(&four_and_four(), &options);
        let over = table(&content, "overcommit");
        let of = |column: &str| {
            let column = &over.named(column).unwrap().values;
            match column.get(0) {
                proctrace_findings::Cell::Real(number) => number,
                other => panic!("{other:?}"),
            }
        };
        assert!((of("over_ns") - 4e9).abs() < 1.0);
        assert!((of("over_percent") - 50.0).abs() < 1e-9);
        assert!((of("excess_cpu_ns") - 4e9).abs() < 1.0);
        assert!((of("peak_cpus") - 3.0).abs() < 1e-9);
        assert!((of("crowded_percent") - 50.0).abs() < 1e-9);
    }

    #[test]
    fn levels_are_shares_of_all_time() {
        let recording = four_and_four();
        let levels = levels(&slices(&recording), &looks(&recording));
        assert_eq!(levels.keys().copied().collect::<Vec<_>>(), [1, 3]);
        assert!((levels[&1].wall_ns - 4e9).abs() < 1.0 && levels[&1].looks == 40);
        assert!((levels[&3].wall_ns - 4e9).abs() < 1.0 && levels[&3].looks == 40);
        assert_eq!(
            (bar_of(8), bar_of(9), bar_of(16), bar_of(17)),
            ((8, 8), (9, 16), (9, 16), (17, 32))
        );
        assert_eq!(bar_of(u64::MAX).1, u64::MAX);
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let recording = Scene::new(1, 100 * MS).load(None);
        section(&recording, &Options::default());
    }
}
