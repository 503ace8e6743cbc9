//! The same command in two environments, by turns: what one costs more than the other.

use std::collections::BTreeMap;

use proctrace_findings::{Table, Unit};
use proctrace_wire::escape::to_text;

use crate::names::base;
use crate::paired::{Interval, Middle, Paired, median};
use crate::recording::Recording;

/// As many directories are listed.
const DIRECTORIES_MAX: usize = 20;

/// What one run of a command took, with all that it started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartRun {
    /// From its start to its exit.
    pub wall_ns: u64,
    /// CPU time, exact.
    pub cpu_ns: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Failed look-ups, without readlinks of what is no link.
    pub lookups_failed: u64,
    /// Successful opens.
    pub opens: u64,
    /// Processes.
    pub processes: u64,
    /// Failed look-ups by the directory that was searched.
    pub by_directory: BTreeMap<String, u64>,
}

impl StartRun {
    /// The figures of a recording.
    pub fn of(recording: &Recording) -> Self {
        let mut run = Self {
            wall_ns: recording.wall_ns(),
            processes: recording.processes.len() as u64,
            lookups_failed: recording
                .counts
                .lookups_failed
                .saturating_sub(recording.counts.not_links),
            opens: recording
                .tasks
                .iter()
                .filter_map(|task| Some(u64::from(task.end.as_ref()?.record.opens)))
                .fold(0, u64::saturating_add),
            ..Self::default()
        };
        for process in &recording.processes {
            run.cpu_ns = run.cpu_ns.saturating_add(process.cpu.total_ns());
            run.user_ns = run.user_ns.saturating_add(process.cpu.user_ns);
            run.system_ns = run.system_ns.saturating_add(process.cpu.system_ns);
        }
        for (miss, count) in &recording.misses {
            let directory = recording.directories.get(miss.directory as usize);
            let searched = without_variants(directory.map_or(b"", Vec::as_slice));
            let name = to_text(searched).into_owned();
            *run.by_directory.entry(name).or_default() += u64::from(*count);
        }
        run
    }
}

/// A figure that is compared.
struct Quantity {
    name: &'static str,
    column: &'static str,
    title: &'static str,
    unit: Unit,
    by: Middle,
    of: fn(&StartRun) -> u64,
}

const fn time(
    name: &'static str,
    column: &'static str,
    title: &'static str,
    by: Middle,
    of: fn(&StartRun) -> u64,
) -> Quantity {
    Quantity { name, column, title, unit: Unit::Nanoseconds, by, of }
}

const fn number(
    name: &'static str,
    column: &'static str,
    title: &'static str,
    of: fn(&StartRun) -> u64,
) -> Quantity {
    Quantity { name, column, title, unit: Unit::Count, by: Middle::Median, of }
}

/// The kernel splits CPU time by what its ticks hit, and a short run has a tick or none. Only the
/// mean of many runs tells the parts.
const QUANTITIES: [Quantity; 7] = [
    time("wall time", "wall_ns", "wall", Middle::Median, |run| run.wall_ns),
    time("CPU", "cpu_ns", "CPU", Middle::Median, |run| run.cpu_ns),
    time("user CPU", "user_ns", "user", Middle::Mean, |run| run.user_ns),
    time("system CPU", "system_ns", "system", Middle::Mean, |run| run.system_ns),
    number("failed look-ups", "lookups_failed", "misses", |run| run.lookups_failed),
    number("opens", "opens", "opens", |run| run.opens),
    number("processes", "processes", "processes", |run| run.processes),
];

/// Tables of runs in the job's environment and in a clean one; the n-th of one was made beside the
/// n-th of the other.
pub fn environments(job: &[StartRun], clean: &[StartRun]) -> Vec<Table> {
    let pairs: Vec<Paired> = QUANTITIES
        .iter()
        .map(|quantity| {
            let figures =
                |runs: &[StartRun]| runs.iter().map(|run| (quantity.of)(run) as f64).collect();
            Paired { by: quantity.by, job: figures(job), clean: figures(clean) }
        })
        .collect();
    let mut tables = vec![absolute(&pairs), relative(&pairs)];
    tables.extend(directories(job, clean));
    tables
}

/// Medians of both, and the difference with its interval: a row each.
fn absolute(pairs: &[Paired]) -> Table {
    let n = pairs.first().map_or(0, Paired::len);
    let certainty = pairs.first().and_then(Paired::difference).map(|interval| interval.certainty);
    let column = |pair: &Paired| -> Vec<Option<f64>> {
        let difference = pair.difference();
        vec![
            pair.by.of(&pair.job),
            pair.by.of(&pair.clean),
            difference.map(|of| of.middle),
            difference.map(|of| of.low),
            difference.map(|of| of.high),
        ]
    };
    let mut table = Table::new("startup", "One run of the command").text(
        "environment",
        "environment",
        ["this one", "clean", "difference", "  at least", "  at most"],
    );
    for (quantity, pair) in QUANTITIES.iter().zip(pairs) {
        table = table.real(quantity.column, quantity.title, quantity.unit, column(pair));
    }
    let table = table.note(format!(
        "n = {n} runs in each environment, by turns; misses are failed look-ups of paths. Medians, and the median of \
         the {n} differences; of user and system time means, because ticks split a short run by chance.",
    ));
    match certainty {
        Some(certainty) => table.note(format!(
            "at least, at most: what holds the median difference with a probability of {:.1} %, whatever its \
             distribution (order statistics of the pairs); for means 95 % of the bootstrap over pairs, which is too narrow for few.",
            100.0 * certainty
        )),
        None => table,
    }
}

/// How many times as much the job's environment takes.
fn relative(pairs: &[Paired]) -> Table {
    let ratios: Vec<_> = pairs.iter().map(Paired::ratio).collect();
    let of = |figure: fn(&Interval) -> f64| -> Vec<Option<f64>> {
        ratios.iter().map(|ratio| ratio.as_ref().map(figure)).collect()
    };
    Table::new("startup_change", "This environment against the clean one")
        .text("quantity", "what", QUANTITIES.iter().map(|quantity| quantity.name))
        .real("ratio", "times", Unit::Ratio, of(|ratio| ratio.middle))
        .real("ratio_low", "at least", Unit::Ratio, of(|ratio| ratio.low))
        .real("ratio_high", "at most", Unit::Ratio, of(|ratio| ratio.high))
        .real("change_percent", "change", Unit::Percent, of(|ratio| 100.0 * (ratio.middle - 1.0)))
        .note(
            "The median ratio of the pairs, or for user and system time the ratio of the means, and \
             intervals as above. -: a clean run took nothing, or nothing bounds it.",
        )
}

/// The directory of a search path that the loader was at: for each it also tries directories below
/// for variants of the processor and, before glibc 2.37, for old ones (dl-hwcaps.c, dl-load.c).
fn without_variants(mut directory: &[u8]) -> &[u8] {
    loop {
        let (above, name) = (crate::names::directory(directory), base(directory));
        let variant = matches!(
            name,
            b"glibc-hwcaps" | b"tls" | b"x86_64" | b"haswell" | b"xeon_phi" | b"avx512_1"
        ) || name.starts_with(b"x86-64-v");
        if !variant || above == b"/" || above == b"." {
            return directory;
        }
        directory = above;
    }
}

/// Where one environment has look-ups fail more often than the other.
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
    let table = Table::new("startup_directories", "Failed look-ups that differ, in one run")
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

    fn run(wall_ms: u64, system_ms: u64, lookups: u64) -> StartRun {
        StartRun {
            wall_ns: wall_ms * 1_000_000,
            system_ns: system_ms * 1_000_000,
            lookups_failed: lookups,
            processes: 1,
            by_directory: BTreeMap::from([("/opt/a".into(), lookups), ("/etc".into(), 3)]),
            ..StartRun::default()
        }
    }

    fn real(table: &Table, column: &str, row: usize) -> Option<f64> {
        match table.named(column).unwrap().values.get(row) {
            Cell::Real(value) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn the_papers_change_is_911_percent() {
        let job: Vec<_> = (0..9).map(|n| run(20 + n, 1011, 236)).collect();
        let clean: Vec<_> = (0..9).map(|n| run(10 + n, 100, 16)).collect();
        let tables = environments(&job, &clean);
        assert!((real(&tables[1], "change_percent", 3).unwrap() - 911.0).abs() < 1e-9);
        // Every pair differs by 10 ms.
        for row in 2..5 {
            assert_eq!(real(&tables[0], "wall_ns", row), Some(10e6));
            assert_eq!(real(&tables[0], "lookups_failed", row), Some(220.0));
        }
        assert_eq!(real(&tables[0], "wall_ns", 0), Some(24e6));
        // No one has used user CPU, so there is no ratio.
        assert_eq!(real(&tables[1], "ratio", 2), None);
        let directories = &tables[2];
        assert_eq!(directories.height(), 1);
        assert_eq!(real(directories, "job", 0), Some(236.0));
    }

    #[test]
    fn variants_count_for_the_directory_they_lie_in() {
        for (searched, directory) in [
            ("/opt/a/glibc-hwcaps/x86-64-v3", "/opt/a"),
            ("/opt/a/tls/x86_64/x86_64", "/opt/a"),
            ("/opt/tls/lib", "/opt/tls/lib"),
            ("/tls", "/tls"),
            ("", ""),
        ] {
            let found = without_variants(searched.as_bytes());
            assert_eq!(found, directory.as_bytes());
        }
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        let tables = environments(&[], &[]);
        assert_eq!(real(&tables[0], "wall_ns", 0), None);
        assert_eq!(tables.len(), 2);
    }
}
