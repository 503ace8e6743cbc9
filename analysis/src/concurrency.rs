//! The section on concurrency: what tasks do with their time, how many do it at once, and what
//! part of the wall time no number of cores would shorten.

use std::collections::BTreeMap;

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Lines, Mark, Series, Table, Unit};

use crate::bins::Quantity;
use crate::error::AnalysisError;
use crate::recording::Recording;
use crate::sections::{Content, Options};
use crate::usage::Usage;

/// A bin in which so many CPUs were used at most counts as serial: samples of several tasks are not
/// taken at once, so one may spill a little into the next bin.
const SPILL: f64 = 1.05;
/// Cores of the projection.
const CORES_MAX: u32 = 128;
/// Each number up to this has a bar of its own; then they double.
const SINGLE_BARS: u64 = 8;

/// A bin of the command's time: its length and the CPU time used in it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slice {
    wall_ns: f64,
    cpu_ns: f64,
}

pub(crate) fn section(recording: &Recording, options: &Options) -> Result<Content, AnalysisError> {
    let cores = options.cores(recording);
    let slices = slices(recording);
    let looks = looks(recording);
    let levels = levels(&slices, &looks);
    let serial = Serial::of(&slices);
    let states = states(recording);
    Ok(Content {
        charts: vec![states_chart(&states), levels_chart(&levels), amdahl_chart(&serial, cores)],
        tables: vec![
            states_table(&states, recording),
            levels_table(&levels, &slices, &looks, recording.bins.width_ns),
            serial_table(&serial, &looks, recording.bins.width_ns),
            amdahl_table(&serial, cores),
            overcommit(&slices, &looks, cores),
        ],
    })
}

/// While the command ran.
fn slices(recording: &Recording) -> Vec<Slice> {
    let bins = &recording.bins;
    let until_ns = recording.watch.until_ns.min(recording.last_ns).max(recording.first_ns);
    let (user, system) = (bins.of(Quantity::User), bins.of(Quantity::System));
    let width_ns = bins.width_ns as f64;
    let length_ns = until_ns.saturating_sub(bins.start_ns) as f64;
    user.iter()
        .zip(system)
        .enumerate()
        .map_while(|(at, (user, system))| {
            let wall_ns = (length_ns - at as f64 * width_ns).min(width_ns);
            // What others used after the command's end is not its own.
            let cut = until_ns < recording.last_ns && wall_ns < width_ns;
            let share = if cut { wall_ns / width_ns } else { 1.0 };
            (wall_ns > 0.0).then_some(Slice { wall_ns, cpu_ns: (user + system) * share })
        })
        .collect()
}

/// How often a look found so many tasks running or runnable.
fn looks(recording: &Recording) -> BTreeMap<u32, u64> {
    let mut looks = BTreeMap::new();
    for tick in &recording.ticks {
        if tick.head.time_ns <= recording.watch.until_ns {
            *looks.entry(tick.running).or_default() += 1;
        }
    }
    looks
}

/// What tasks do with their time.
struct State {
    name: &'static str,
    time_ns: f64,
    exact: bool,
}

fn states(recording: &Recording) -> Vec<State> {
    let (mut used, mut life_ns) = (Usage::default(), 0.0);
    for task in &recording.tasks {
        used = used.plus(&task.used());
        let ended_ns = task.end.as_ref().map_or(recording.last_ns, |end| end.time_ns);
        life_ns += ended_ns.saturating_sub(task.born_ns) as f64;
    }
    let (running_ns, runnable_ns) = (used.run_ns as f64, used.run_delay_ns as f64);
    let rest_ns = (life_ns - running_ns - runnable_ns).max(0.0);
    let count = |of: fn(&proctrace_wire::layout::Tick) -> u32| {
        recording.ticks.iter().map(|tick| f64::from(of(tick))).sum::<f64>()
    };
    let (sleeping, uninterruptible, stopped) =
        (count(|tick| tick.sleeping), count(|tick| tick.uninterruptible), count(|t| t.stopped));
    let off = sleeping + uninterruptible + stopped;
    // Without a single look nothing says that it was anything but sleep.
    let share = |found: f64| if off > 0.0 { found / off } else { 0.0 };
    let other = share(uninterruptible) + share(stopped);
    vec![
        State { name: "running", time_ns: running_ns, exact: true },
        State { name: "runnable", time_ns: runnable_ns, exact: true },
        State { name: "sleeping", time_ns: rest_ns * (1.0 - other), exact: false },
        State { name: "uninterruptible", time_ns: rest_ns * share(uninterruptible), exact: false },
        State { name: "stopped", time_ns: rest_ns * share(stopped), exact: false },
    ]
}

fn states_table(states: &[State], recording: &Recording) -> Table {
    let all_ns: f64 = states.iter().map(|state| state.time_ns).sum();
    let recorded_ns = recording.recorded_ns().max(1) as f64;
    Table::new("task_states", "What tasks do with their time")
        .text("state", "state", states.iter().map(|state| state.name))
        .real("time_ns", "time", Unit::Nanoseconds, states.iter().map(|state| state.time_ns))
        .real(
            "share_percent",
            "of all",
            Unit::Percent,
            states.iter().map(|state| percent(state.time_ns, all_ns)),
        )
        .real(
            "tasks_mean",
            "tasks",
            Unit::Count,
            states.iter().map(|state| state.time_ns / recorded_ns),
        )
        .text(
            "known",
            "known by",
            states.iter().map(|state| {
                if state.exact { "the kernel's counters" } else { "estimate from samples" }
            }),
        )
        .note(format!(
            "{} tasks, threads included, with {:.1} s of life in all; tasks: how many on average. \
             Running is CPU time; runnable is the wait for a CPU (run_delay of \
             /proc/PID/schedstat). The rest of their lives is divided as {} looks at all tasks \
             found them.",
            recording.tasks.len(),
            all_ns / 1e9,
            recording.ticks.len()
        ))
}

/// Time with so many CPUs in use, and looks that found so many tasks running.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Level {
    wall_ns: f64,
    looks: u64,
}

/// By number of CPUs or tasks.
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

fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
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
    Table::new("concurrency", "How many at once")
        .whole("level", "at once", Unit::Count, levels.keys().copied())
        .real("cpus_wall_ns", "CPUs used", Unit::Nanoseconds, of().map(|level| level.wall_ns))
        .real(
            "cpus_percent",
            "of wall",
            Unit::Percent,
            of().map(|level| percent(level.wall_ns, all_ns)),
        )
        .whole("looks", "looks", Unit::Count, of().map(|level| level.looks))
        .real(
            "looks_percent",
            "of looks",
            Unit::Percent,
            of().map(|level| percent(level.looks as f64, all_looks as f64)),
        )
        .note(format!(
            "CPUs used: CPU time over wall time of each of {} bins of {} s while the command ran, \
             rounded to a whole number; exact but for what was used between two samples. Looks: \
             tasks running or runnable in each of {all_looks} samples; an estimate.",
            slices.len(),
            bin_ns as f64 / 1e9
        ))
}

/// The part of the wall time in which at most one CPU was used, and the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Serial {
    serial_ns: f64,
    parallel_ns: f64,
    /// CPU time in the rest.
    parallel_cpu_ns: f64,
    bins: usize,
}

impl Serial {
    fn of(slices: &[Slice]) -> Self {
        let mut serial = Self { bins: slices.len(), ..Self::default() };
        for slice in slices {
            if slice.cpu_ns <= slice.wall_ns * SPILL {
                serial.serial_ns += slice.wall_ns;
            } else {
                serial.parallel_ns += slice.wall_ns;
                serial.parallel_cpu_ns += slice.cpu_ns;
            }
        }
        serial
    }

    fn wall_ns(&self) -> f64 {
        self.serial_ns + self.parallel_ns
    }

    /// How long it would take on so many cores, if its parallel part could be divided at will.
    fn on_ns(&self, cores: u32) -> f64 {
        self.serial_ns + self.parallel_cpu_ns / f64::from(cores.max(1))
    }

    /// Amdahl's bound: against one core, on as many as one likes.
    fn bound(&self) -> Option<f64> {
        (self.serial_ns > 0.0).then(|| self.on_ns(1) / self.serial_ns)
    }
}

fn serial_table(serial: &Serial, looks: &BTreeMap<u32, u64>, bin_ns: u64) -> Table {
    let all: u64 = looks.values().sum();
    let alone: u64 = looks.range(..=1).map(|(_, count)| count).sum();
    let share = (all > 0).then(|| alone as f64 / all as f64);
    let looked_ns = share.map(|share| share * serial.wall_ns());
    let faster = |serial_ns: f64| (serial_ns > 0.0).then(|| serial.wall_ns() / serial_ns);
    let cpus = (serial.parallel_ns > 0.0).then(|| serial.parallel_cpu_ns / serial.parallel_ns);
    Table::new("serial", "What no number of cores would shorten")
        .text("by", "by", ["CPU time of bins", "looks at tasks"])
        .whole("n", "n", Unit::Count, [serial.bins as u64, all])
        .real("serial_ns", "serial", Unit::Nanoseconds, [Some(serial.serial_ns), looked_ns])
        .real(
            "serial_percent",
            "of wall",
            Unit::Percent,
            [percent(serial.serial_ns, serial.wall_ns()), share.map(|share| 100.0 * share)],
        )
        .real("parallel_cpus", "else CPUs", Unit::Cores, [cpus, None])
        .real(
            "faster",
            "faster",
            Unit::Ratio,
            [faster(serial.serial_ns), looked_ns.and_then(faster)],
        )
        .note(format!(
            "Serial: wall time of the command in which at most one of its tasks uses a CPU, also \
             that in which none does: bins of {} s with at most {SPILL} CPUs in use, or looks that \
             find at most one task running or runnable. Else CPUs: how many are in use on average \
             in the rest. Faster: this run against one whose rest takes no time.",
            bin_ns as f64 / 1e9
        ))
}

/// 1, 2, 4, ... and what was asked for.
fn projected(cores: u32) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::successors(Some(1u32), |n| n.checked_mul(2))
        .take_while(|n| *n <= CORES_MAX)
        .collect();
    if let Err(at) = all.binary_search(&cores) {
        all.insert(at, cores);
    }
    all
}

fn amdahl_table(serial: &Serial, cores: u32) -> Table {
    let rows = projected(cores);
    let faster = |n: u32| {
        let on_ns = serial.on_ns(n);
        (on_ns > 0.0).then(|| serial.on_ns(1) / on_ns)
    };
    let mut table = Table::new("amdahl", "How much faster more cores could make it, at best")
        .whole("cores", "cores", Unit::Cores, rows.iter().map(|n| u64::from(*n)))
        .real("wall_ns", "wall", Unit::Nanoseconds, rows.iter().map(|n| serial.on_ns(*n)))
        .real("speedup", "faster than one", Unit::Ratio, rows.iter().map(|n| faster(*n)))
        .real(
            "efficiency_percent",
            "cores in use",
            Unit::Percent,
            rows.iter().map(|n| Some(100.0 * faster(*n)? / f64::from(*n))),
        )
        .note(
            "Amdahl (AFIPS 1967): the serial time, by CPU time of bins, and the CPU time of the \
             rest over the cores. It assumes that the rest can be divided at will at no cost, and \
             that the serial part stays as long as it is, waiting included.",
        );
    if let Some(bound) = serial.bound() {
        table =
            table.note(format!("No number of cores makes it more than {bound:.2} times as fast."));
    }
    table
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
    Table::new("overcommit", "More than was asked for")
        .whole("cores", "cores", Unit::Cores, [u64::from(cores)])
        .real("over_ns", "over for", Unit::Nanoseconds, [over_ns])
        .real("over_percent", "of wall", Unit::Percent, [percent(over_ns, wall_ns(slices))])
        .real("excess_cpu_ns", "CPU above", Unit::Nanoseconds, [excess_ns])
        .real("peak_cpus", "peak", Unit::Cores, [peak])
        .real("crowded_percent", "crowded", Unit::Percent, [percent(crowded as f64, all as f64)])
        .note(format!(
            "Over: bins with more than {SPILL} times the cores in use. CPU above: what was used in \
             these beyond the cores. Crowded: looks that found more tasks running or runnable than \
             cores; n = {all}, an estimate."
        ))
}

fn states_chart(states: &[State]) -> Chart {
    let body = Bars {
        rows: states.iter().map(|state| state.name.to_owned()).collect(),
        axis: Axis::linear("time of all tasks", Unit::Nanoseconds),
        series: vec![
            Series {
                name: "exact".into(),
                values: states.iter().map(|s| s.exact.then_some(s.time_ns)).collect(),
            },
            Series {
                name: "estimate from samples".into(),
                values: states.iter().map(|s| (!s.exact).then_some(s.time_ns)).collect(),
            },
        ],
        stacked: true,
    };
    Chart::new("task_states", "What tasks do with their time", ChartBody::Bars(body))
}

/// Levels that share a bar: 9 to 16, 17 to 32 and so on.
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
    Chart::new("concurrency", "How many at once", ChartBody::Bars(body)).note(format!(
        "CPUs used are exact, over bins of time; tasks are an estimate, n = {all_looks} looks."
    ))
}

fn amdahl_chart(serial: &Serial, cores: u32) -> Chart {
    let rows = projected(cores);
    let speedup = |n: &u32| {
        let on_ns = serial.on_ns(*n);
        (on_ns > 0.0).then(|| serial.on_ns(1) / on_ns)
    };
    let marks = serial
        .bound()
        .filter(|bound| *bound <= f64::from(CORES_MAX))
        .map(|bound| Mark { at: bound, name: "bound".into() });
    let body = Lines {
        x_axis: Axis::logarithmic("cores", Unit::Cores),
        y_axis: Axis::logarithmic("times as fast as on one", Unit::Ratio),
        x: rows.iter().map(|n| f64::from(*n)).collect(),
        series: vec![
            Series { name: "at best".into(), values: rows.iter().map(speedup).collect() },
            Series {
                name: "ideal".into(),
                values: rows.iter().map(|n| Some(f64::from(*n))).collect(),
            },
        ],
        stacked: false,
        points: true,
        marks: marks.into_iter().collect(),
        moments: vec![Mark { at: f64::from(cores), name: "asked for".into() }],
    };
    Chart::new("amdahl", "How much faster more cores could make it", ChartBody::Lines(body))
        .note("Serial and parallel part as measured in this run; nothing is lost by dividing it.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene, real};

    /// 4 s alone, then 4 s with two children on CPUs of their own beside the command.
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
    fn the_serial_part_and_its_bound_are_amdahls() {
        let content = section(&four_and_four(), &Options::default()).unwrap();
        let serial = table(&content, "serial");
        for by in ["CPU time of bins", "looks at tasks"] {
            assert!((real(serial, "by", by, "serial_percent").unwrap() - 50.0).abs() < 1e-9);
            assert!((real(serial, "by", by, "faster").unwrap() - 2.0).abs() < 1e-9);
        }
        let cpus = real(serial, "by", "CPU time of bins", "parallel_cpus").unwrap();
        assert!((cpus - 3.0).abs() < 1e-9);
        // 4 s + 12 s of CPU time: 16 s on one core, 7 s on four, 4 s on any number.
        let serial = Serial::of(&slices(&four_and_four()));
        assert!((serial.on_ns(1) - 16e9).abs() < 1.0 && (serial.on_ns(4) - 7e9).abs() < 1.0);
        assert!((serial.bound().unwrap() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn time_is_divided_among_states() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2);
        for at in 1..=10 {
            scene.tick(at * 100 * MS, [0, 3, 1]);
        }
        // Lives of 2 s: 0.5 s on a CPU, 0.3 s waiting for one, three quarters of the rest asleep.
        scene.exit_with(S, 2, (200 * MS, 0), |exit| exit.run_delay_ns = 300 * MS);
        let recording = scene.exit(S, 1, (300 * MS, 0)).load(None);
        let content = section(&recording, &Options::default()).unwrap();
        let states = table(&content, "task_states");
        let of = |state: &str| real(states, "state", state, "time_ns").unwrap() / 1e9;
        assert_eq!((of("running"), of("runnable")), (0.5, 0.3));
        assert!((of("sleeping") - 0.9).abs() < 1e-9);
        assert!((of("uninterruptible") - 0.3).abs() < 1e-9);
        assert_eq!(of("stopped"), 0.0);
    }

    #[test]
    fn more_than_was_asked_for_is_told() {
        let options = Options { cores: Some(2), ..Options::default() };
        let content = section(&four_and_four(), &options).unwrap();
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
        section(&recording, &Options::default()).unwrap();
    }
}
