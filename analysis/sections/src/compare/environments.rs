//! The same command in two environments, alternately: how much more one costs than the other.

use std::collections::BTreeMap;

use proctrace_findings::{Table, Unit};
use proctrace_libsearch::list_directory;
use proctrace_stats::{Estimate, Paired, Pooled, Ticked, median};
use proctrace_wire::escape::to_text;

use proctrace_recording::Recording;
use proctrace_recording::misses::Misses;
use proctrace_recording::task::Task;

/// Maximum directories listed.
const DIRECTORIES_MAX: usize = 20;

/// Resources used by one run of a command and all its descendants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartRun {
    /// Time from its start to its exit.
    pub wall_ns: u64,
    /// CPU time, exact.
    pub cpu_ns: u64,
    /// Scheduler ticks in user mode, times the tick length.
    pub user_ticks_ns: u64,
    /// Scheduler ticks in the kernel, times the tick length.
    pub system_ticks_ns: u64,
    /// Failed look-ups, without readlinks of files that are not symbolic links.
    pub lookups_failed: u64,
    /// Successful opens.
    pub opens: u64,
    /// Processes.
    pub processes: u64,
    /// Failed look-ups by searched directory.
    pub by_directory: BTreeMap<String, u64>,
}

impl StartRun {
    /// The figures of a recording.
    pub fn of(recording: &Recording) -> Self {
        let mut run = Self {
            wall_ns: recording.wall_ns(),
            processes: recording.processes().len() as u64,
            lookups_failed: recording.counts().in_vain(),
            opens: recording
                .tasks()
                .iter()
                .filter_map(|task| Some(u64::from(task.end()?.record.opens)))
                .fold(0, u64::saturating_add),
            ..Self::default()
        };
        for process in recording.processes() {
            run.cpu_ns = run.cpu_ns.saturating_add(process.cpu.total_ns());
        }
        for used in recording.tasks().iter().map(Task::used) {
            run.user_ticks_ns = run.user_ticks_ns.saturating_add(used.utime_ns);
            run.system_ticks_ns = run.system_ticks_ns.saturating_add(used.stime_ns);
        }
        for (miss, count) in recording.misses().into_iter().flat_map(Misses::iter) {
            let directory = recording.directories().get(miss.directory as usize);
            let searched = list_directory(directory.map_or(b"", Vec::as_slice));
            let name = to_text(searched).into_owned();
            *run.by_directory.entry(name).or_default() += u64::from(count);
        }
        run
    }
}

/// A quantity that is compared.
struct ComparedFigure {
    name: &'static str,
    column: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&StartRun) -> u64,
}

const fn quantity(
    name: &'static str,
    column: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&StartRun) -> u64,
) -> ComparedFigure {
    ComparedFigure { name, column, title, unit, of }
}

/// Quantities that are known per run.
const QUANTITIES: [ComparedFigure; 5] = [
    quantity("wall time", "wall_ns", "wall", Unit::Nanoseconds, |run| run.wall_ns),
    quantity("CPU", "cpu_ns", "CPU", Unit::Nanoseconds, |run| run.cpu_ns),
    quantity("failed look-ups", "lookups_failed", "misses", Unit::Count, |run| run.lookups_failed),
    quantity("opens", "opens", "opens", Unit::Count, |run| run.opens),
    quantity("processes", "processes", "processes", Unit::Count, |run| run.processes),
];

/// Quantities that only the ticks of all runs together determine.
const MODES: [ComparedFigure; 2] = [
    quantity("user CPU", "user_ns", "user", Unit::Nanoseconds, |run| run.user_ticks_ns),
    quantity("system CPU", "system_ns", "system", Unit::Nanoseconds, |run| run.system_ticks_ns),
];

/// Tables of runs in the job's environment and in a clean one; the n-th run of one is paired with
/// the n-th of the other. `tick_ns` is the kernel's tick length on the machine where they ran.
pub fn environments(job: &[StartRun], clean: &[StartRun], tick_ns: u64) -> Vec<Table> {
    let pairs = QUANTITIES.each_ref().map(|quantity| {
        let figures =
            |runs: &[StartRun]| runs.iter().map(|run| (quantity.of)(run) as f64).collect();
        Paired { a: figures(job), b: figures(clean) }
    });
    let modes = MODES.each_ref().map(|mode| {
        let ticked =
            |runs: &[StartRun]| runs.iter().map(|run| of_mode(mode, run, tick_ns)).collect();
        Pooled { a: ticked(job), b: ticked(clean) }
    });
    let mut tables = vec![medians(&pairs), split(&modes), relative(&pairs, &modes)];
    tables.extend(directories(job, clean));
    tables
}

fn of_mode(mode: &ComparedFigure, run: &StartRun, tick_ns: u64) -> Ticked {
    let ticks = |ns: u64| ns as f64 / tick_ns.max(1) as f64;
    Ticked {
        cpu_ns: run.cpu_ns as f64,
        hits: ticks((mode.of)(run)),
        ticks: ticks(run.user_ticks_ns.saturating_add(run.system_ticks_ns)),
    }
}

/// A column with both sides, and their difference with its interval.
fn column(job: Option<f64>, clean: Option<f64>, difference: Option<Estimate>) -> Vec<Option<f64>> {
    let of = |part: fn(&Estimate) -> f64| difference.as_ref().map(part);
    vec![job, clean, of(|of| of.middle), of(|of| of.low), of(|of| of.high)]
}

/// Per-run quantities: a row for each side, and the difference with its interval.
fn medians(pairs: &[Paired]) -> Table {
    let n = pairs.first().map_or(0, Paired::count);
    let certainty = pairs.first().and_then(Paired::difference).map(|interval| interval.certainty);
    let mut table = Table::new("startup", "One run of the command: medians").text(
        "environment",
        "environment",
        [
            "this environment, median",
            "clean, median",
            "paired difference, median",
            "  interval from",
            "  interval to",
        ],
    );
    for (quantity, pair) in QUANTITIES.iter().zip(pairs) {
        let values = column(median(&pair.a), median(&pair.b), pair.difference());
        table = table.real(quantity.column, quantity.title, quantity.unit, values);
    }
    let table = table.note(format!(
        "n = {n} runs in each environment, alternating; misses: failed look-ups of paths. The \
         median of the {n} paired differences is not the difference of the medians: disturbances \
         common to both runs of a pair cancel.",
    ));
    match certainty {
        Some(certainty) => table.note(format!(
            "interval: contains the median difference with a probability of {:.1} %, whatever its \
             distribution (order statistics of the pairs).",
            100.0 * certainty
        )),
        None => table,
    }
}

/// User and system time: means, because only the ticks of all runs together determine the split.
fn split(modes: &[Pooled]) -> Table {
    let ticks = |runs: fn(&Pooled) -> &[Ticked]| {
        let runs = modes.first().map_or(&[][..], runs);
        runs.iter().map(|run| run.ticks).sum::<f64>().round() as u64
    };
    let mut table = Table::new("startup_split", "One run of the command: user and system time")
        .text(
            "environment",
            "environment",
            [
                "this environment, mean",
                "clean, mean",
                "difference of means",
                "  interval from",
                "  interval to",
            ],
        )
        .whole(
            "ticks",
            "ticks",
            Unit::Count,
            [Some(ticks(|mode| &mode.a)), Some(ticks(|mode| &mode.b)), None, None, None],
        );
    for (mode, pooled) in MODES.iter().zip(modes) {
        let (job, clean) = (Pooled::mean_ns(&pooled.a), Pooled::mean_ns(&pooled.b));
        let values = column(job, clean, pooled.difference());
        table = table.real(mode.column, mode.title, mode.unit, values);
    }
    table.note(
        "The CPU time of all runs in one environment is split in proportion to all their ticks; \
         ticks: their number. -: fewer than 20 in one environment, too few to split it; --runs N \
         gives more. The kernel counts a short run without a tick in kernel mode as all user time, \
         so its own user times, and sums of them, are too high. interval: 95 %, bootstrap over \
         pairs, too narrow for few pairs.",
    )
}

/// The job's environment relative to the clean one, as ratios.
fn relative(pairs: &[Paired], modes: &[Pooled]) -> Table {
    let quantities = QUANTITIES.iter().chain(&MODES);
    let ratios: Vec<_> =
        pairs.iter().map(Paired::ratio).chain(modes.iter().map(Pooled::ratio)).collect();
    let of = |figure: fn(&Estimate) -> f64| -> Vec<Option<f64>> {
        ratios.iter().map(|ratio| ratio.as_ref().map(figure)).collect()
    };
    Table::new("startup_change", "This environment relative to the clean one")
        .text("quantity", "quantity", quantities.map(|quantity| quantity.name))
        .real("ratio", "ratio", Unit::Ratio, of(|ratio| ratio.middle))
        .real("ratio_low", "from", Unit::Ratio, of(|ratio| ratio.low))
        .real("ratio_high", "to", Unit::Ratio, of(|ratio| ratio.high))
        .real("change_percent", "change", Unit::Percent, of(|ratio| 100.0 * (ratio.middle - 1.0)))
        .note(
            "Median ratio of the pairs, which is not the ratio of the medians; for user and system \
             time the ratio of the means. Intervals as above. -: the value of a clean run was \
             zero, or there were too few ticks (20 needed in each environment, 5 of them in that \
             mode).",
        )
}

/// Directories in which one environment has more failed look-ups than the other.
fn directories(job: &[StartRun], clean: &[StartRun]) -> Option<Table> {
    let typical = |runs: &[StartRun], directory: &str| {
        let counts: Vec<f64> = runs
            .iter()
            .map(|run| run.by_directory.get(directory).copied().unwrap_or(0) as f64)
            .collect();
        median(&counts).unwrap_or(0.0)
    };
    let mut names: Vec<&String> =
        job.iter().chain(clean).flat_map(|run| run.by_directory.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut rows: Vec<(f64, f64, &str)> = names
        .into_iter()
        .map(|name| (typical(job, name), typical(clean, name), &**name))
        .filter(|(here, there, _)| here != there)
        .collect();
    rows.sort_by(|a, b| (b.0 - b.1).total_cmp(&(a.0 - a.1)).then(a.2.cmp(b.2)));
    let all = rows.len();
    rows.truncate(DIRECTORIES_MAX);
    if rows.is_empty() {
        return None;
    }
    let table = Table::new("startup_directories", "Failed look-ups that differ, per run")
        .real("job", "this one", Unit::Count, rows.iter().map(|row| row.0))
        .real("clean", "clean", Unit::Count, rows.iter().map(|row| row.1))
        .text("directory", "directory", rows.iter().map(|row| row.2));
    Some(if all > rows.len() {
        table.note(format!("The first {} of {all} directories.", rows.len()))
    } else {
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;

    const TICK_NS: u64 = 4_000_000;

    /// A run with this CPU time and these numbers of ticks in user mode and in the kernel.
    fn run(wall_ms: u64, cpu_ms: u64, ticks: (u64, u64), lookups: u64) -> StartRun {
        StartRun {
            wall_ns: wall_ms * 1_000_000,
            cpu_ns: cpu_ms * 1_000_000,
            user_ticks_ns: ticks.0 * TICK_NS,
            system_ticks_ns: ticks.1 * TICK_NS,
            lookups_failed: lookups,
            processes: 1,
            by_directory: BTreeMap::from([("/opt/a".into(), lookups), ("/etc".into(), 3)]),
            ..StartRun::default()
        }
    }

    fn named<'a>(tables: &'a [Table], name: &str) -> &'a Table {
        tables.iter().find(|table| table.name == name).unwrap()
    }

    fn real(table: &Table, column: &str, row: usize) -> Option<f64> {
        match table.named(column).unwrap().values.get(row) {
            Cell::Real(value) => Some(value),
            _ => None,
        }
    }

    /// The rows of user and of system CPU time in the table of ratios.
    const USER: usize = 5;
    const SYSTEM: usize = 6;

    #[test]
    fn the_papers_change_is_911_percent() {
        let job: Vec<_> = (0..9).map(|n| run(20 + n, 1011, (0, 250), 236)).collect();
        let clean: Vec<_> = (0..9).map(|n| run(10 + n, 100, (0, 25), 16)).collect();
        let tables = environments(&job, &clean, TICK_NS);
        let change = named(&tables, "startup_change");
        assert!((real(change, "change_percent", SYSTEM).unwrap() - 911.0).abs() < 1e-9);
        // Every pair differs by 10 ms.
        let medians = named(&tables, "startup");
        for row in 2..5 {
            assert_eq!(real(medians, "wall_ns", row), Some(10e6));
            assert_eq!(real(medians, "lookups_failed", row), Some(220.0));
        }
        assert_eq!(real(medians, "wall_ns", 0), Some(24e6));
        // No run has used user CPU time, so there is no ratio.
        assert_eq!(real(change, "ratio", USER), None);
        let directories = named(&tables, "startup_directories");
        assert_eq!(directories.height(), 1);
        assert_eq!(real(directories, "job", 0), Some(236.0));
    }

    #[test]
    fn user_time_does_not_vanish_for_want_of_ticks() {
        // Runs of 1 ms on either side, of which a tick of 4 ms hits every fourth, in this
        // environment always in the kernel: these were once reported as "user CPU 0.000 times, -100
        // %".
        let one = |n: u64, user: bool| {
            let hit = u64::from(n.is_multiple_of(4));
            run(2, 1, if user { (hit, 0) } else { (0, hit) }, 0)
        };
        let few = |user: bool| (0..40).map(|n| one(n, user)).collect::<Vec<_>>();
        let tables = environments(&few(false), &few(true), TICK_NS);
        let table = named(&tables, "startup_split");
        for column in ["user_ns", "system_ns"] {
            for row in 0..5 {
                assert_eq!(real(table, column, row), None, "10 ticks say nothing");
            }
        }
        assert_eq!(table.named("ticks").unwrap().values.get(0), Cell::Whole(10));
        assert_eq!(real(named(&tables, "startup_change"), "ratio", USER), None);

        // With enough ticks all CPU time is split by them, and the parts add up to the whole.
        let many: Vec<_> = (0..80).map(|n| one(n, n.is_multiple_of(16))).collect();
        let tables = environments(&many, &many, TICK_NS);
        let table = named(&tables, "startup_split");
        assert_eq!(real(table, "user_ns", 0), Some(0.25e6));
        assert_eq!(real(table, "system_ns", 1), Some(0.75e6));
        assert_eq!(real(named(&tables, "startup_change"), "ratio", USER), Some(1.0));
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        let tables = environments(&[], &[], TICK_NS);
        assert_eq!(real(&tables[0], "wall_ns", 0), None);
        assert_eq!(tables.len(), 3);
    }
}
