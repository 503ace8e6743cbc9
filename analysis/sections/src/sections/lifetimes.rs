//! Process lifetimes, and what a sampler would have missed.

use proctrace_findings::{
    Axis, Chart, ChartBody, Class, Histogram, Mark, Series, Table, Unit, counted,
};
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use proctrace_stats::lower_median;
use proctrace_wire::Quantity;

use crate::shares::share_percent;

/// Sampling periods: one second, as of `pidstat 1`; those of prmon(1) in production jobs, and of
/// Grid pilots.
const SAMPLERS_NS: [(u64, &str); 3] =
    [(1_000_000_000, "1 s"), (5_000_000_000, "5 s"), (30_000_000_000, "30 s")];

/// Bin edges of the histogram, times a power of ten.
const STEPS: [u64; 3] = [1, 2, 5];
/// Shorter lifetimes share the first bin.
const EDGE_MIN_NS: u64 = 100_000;

/// An ended process, with what this section needs.
#[derive(Debug, Clone, Copy)]
struct Life {
    ns: u64,
    cpu_ns: u64,
    program: usize,
}

pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let lives: Vec<Life> = recording
        .processes()
        .iter()
        .filter_map(|process| {
            Some(Life {
                ns: process.life_ns()?,
                cpu_ns: process.cpu.total_ns(),
                program: process.program(),
            })
        })
        .collect();
    let alive = recording.processes().len() - lives.len();
    let n = format!(
        "n = {} that ended; {} alive at the end, not included.",
        counted(lives.len() as u64, "process", "processes"),
        counted(alive as u64, "was", "were")
    );
    let tables = vec![samplers(&lives).note(&n), by_program(recording, &lives).note(&n)];
    Content { tables, charts: vec![histogram(recording, &lives).note(&n)] }
}

/// Table of what sampling at fixed intervals misses.
fn samplers(lives: &[Life]) -> Table {
    let all = lives.len() as u64;
    let all_cpu_ns = lives.iter().fold(0, |sum: u64, life| sum.saturating_add(life.cpu_ns));
    let rows: Vec<(u64, u64, u64, f64)> = SAMPLERS_NS
        .iter()
        .map(|(interval_ns, _)| {
            let shorter = || lives.iter().filter(|life| life.ns < *interval_ns);
            let cpu_ns = shorter().fold(0, |sum: u64, life| sum.saturating_add(life.cpu_ns));
            let unseen = shorter().map(|life| 1.0 - life.ns as f64 / *interval_ns as f64).sum();
            (*interval_ns, shorter().count() as u64, cpu_ns, unseen)
        })
        .collect();
    Table::new("lifetimes", "Short processes missed by samplers")
        .rows_need(&[Quantity::Forks, Quantity::Times])
        .whole("interval_ns", "interval", Unit::Nanoseconds, rows.iter().map(|row| row.0))
        .whole("shorter", "shorter", Unit::Count, rows.iter().map(|row| row.1))
        .real(
            "shorter_percent",
            "of all",
            Unit::Percent,
            rows.iter().map(|row| share_percent(row.1, all)),
        )
        .whole("shorter_cpu_ns", "their CPU", Unit::Nanoseconds, rows.iter().map(|row| row.2))
        .needs(&[Quantity::Cpu])
        .real(
            "shorter_cpu_percent",
            "of all CPU",
            Unit::Percent,
            rows.iter().map(|row| share_percent(row.2, all_cpu_ns)),
        )
        .needs(&[Quantity::Cpu])
        .real(
            "unseen_percent",
            "never seen",
            Unit::Percent,
            rows.iter().map(|row| (all > 0).then(|| 100.0 * row.3 / all as f64)),
        )
        .note(
            "shorter: processes that live less than the interval. never seen: expected share if \
             readings start at a random time; a process that lives half the interval is seen by \
             half of all samplers.",
        )
}

fn by_program(recording: &Recording, lives: &[Life]) -> Table {
    let mut of_program: Vec<(Vec<u64>, u64)> = vec![(Vec::new(), 0); recording.programs().len()];
    for life in lives {
        let (all, cpu_ns) = &mut of_program[life.program];
        all.push(life.ns);
        *cpu_ns = cpu_ns.saturating_add(life.cpu_ns);
    }
    let mut rows: Vec<_> = of_program
        .into_iter()
        .enumerate()
        .filter(|(_, (lives, _))| !lives.is_empty())
        .map(|(program, (mut lives, cpu_ns))| {
            let count = lives.len() as u64;
            let at = (lives.len() - 1) * 95 / 100;
            let most = *lives.select_nth_unstable(at).1;
            let longest = lives.iter().max().copied();
            (
                &recording.programs()[program],
                count,
                lower_median(&mut lives),
                most,
                longest,
                cpu_ns / count,
            )
        })
        .collect();
    rows.sort_by(|a, b| {
        b.1.cmp(&a.1).then_with(|| (&a.0.name, a.0.category()).cmp(&(&b.0.name, b.0.category())))
    });
    Table::new("lives", "Process lifetimes by program")
        .rows_need(&Quantity::WHO)
        .text("program", "program", rows.iter().map(|row| &*row.0.name))
        .text("category", "category", rows.iter().map(|row| row.0.category()))
        .whole("processes", "ended", Unit::Count, rows.iter().map(|row| row.1))
        .whole("life_median_ns", "median", Unit::Nanoseconds, rows.iter().map(|row| row.2))
        .whole("life_95_percent_ns", "p95", Unit::Nanoseconds, rows.iter().map(|row| row.3))
        .whole("life_longest_ns", "longest", Unit::Nanoseconds, rows.iter().map(|row| row.4))
        .whole("cpu_mean_ns", "mean CPU", Unit::Nanoseconds, rows.iter().map(|row| row.5))
        .needs(&[Quantity::Cpu])
}

fn histogram(recording: &Recording, lives: &[Life]) -> Chart {
    let longest = lives.iter().map(|life| life.ns).max().unwrap_or(0);
    let edges = edges(longest.max(SAMPLERS_NS[0].0));
    let classes = [
        (Class::Framework, "the experiment's software"),
        (Class::Command, "system commands"),
        (Class::Program, "other programs"),
    ];
    let mut counts = [const { Vec::new() }; 3].map(|_: Vec<f64>| vec![0.0; edges.len() - 1]);
    for life in lives {
        let bar = edges.partition_point(|edge| *edge <= life.ns).clamp(1, edges.len() - 1) - 1;
        let class = recording.programs()[life.program].class;
        let class = classes.iter().position(|(known, _)| *known == class).unwrap_or(0);
        counts[class][bar] += 1.0;
    }
    let last = edges.last().copied().unwrap_or(0);
    let body = Histogram {
        axis: Axis::logarithmic("life", Unit::Nanoseconds),
        count_axis: Axis::linear("processes", Unit::Count),
        series: classes
            .iter()
            .zip(counts)
            .filter(|(_, counts)| counts.iter().any(|count| *count > 0.0))
            .map(|((_, name), counts)| Series {
                name: (*name).to_owned(),
                values: counts.into_iter().map(Some).collect(),
            })
            .collect(),
        marks: SAMPLERS_NS
            .iter()
            .filter(|(at, _)| *at <= last)
            .map(|(at, name)| Mark { at: *at as f64, name: format!("{name} sampling") })
            .collect(),
        edges: edges.into_iter().map(|edge| edge as f64).collect(),
    };
    Chart::new("lifetimes", "Process lifetimes", ChartBody::Histogram(body))
        .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Times])
        .note("The first bar includes all shorter lifetimes.")
}

/// 1, 2, 5, 10… up to the first edge that is not below `longest_ns`.
fn edges(longest_ns: u64) -> Vec<u64> {
    let mut edges = Vec::new();
    let mut decade = EDGE_MIN_NS;
    loop {
        for step in STEPS {
            let edge = decade.saturating_mul(step);
            edges.push(edge);
            if edge > longest_ns || edge == u64::MAX {
                return edges;
            }
        }
        decade = decade.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{MS, S, Scene};

    #[test]
    fn what_is_shorter_is_counted_and_what_is_seen_expected() {
        let mut scene = Scene::new(1, S);
        for (child, life_ns, cpu_ns) in [(2, S / 2, S / 4), (3, 2 * S, S), (4, 40 * S, 3 * S)] {
            scene.fork(0, 1, child);
            scene.exit(life_ns, child, (cpu_ns, 0));
        }
        let recording = scene.load(None);
        let content = section(&recording, &Options::default());
        let table = &content.tables[0];
        let column = |name: &str| -> Vec<f64> {
            (0..3)
                .map(|row| match table.named(name).unwrap().values.get(row) {
                    Cell::Whole(number) => number as f64,
                    Cell::Real(number) => number,
                    _ => f64::NAN,
                })
                .collect()
        };
        assert_eq!(column("shorter"), [1.0, 2.0, 2.0]);
        assert_eq!(column("shorter_cpu_ns"), [0.25e9, 1.25e9, 1.25e9]);
        assert_eq!(column("shorter_cpu_percent")[0], 100.0 * 0.25 / 4.25);
        // Half of one of three; then nine tenths of one and six tenths of another.
        for (found, expected) in column("unseen_percent").into_iter().zip([
            50.0 / 3.0,
            150.0 / 3.0,
            100.0 * (59.0 / 60.0 + 28.0 / 30.0) / 3.0,
        ]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        let ChartBody::Histogram(chart) = &content.charts[0].body else { panic!("no histogram") };
        let total: f64 = chart.series.iter().flat_map(|s| s.values.iter().flatten()).sum();
        assert_eq!(total, 3.0);
        assert!(chart.edges.is_sorted());
        assert_eq!(chart.edges.len(), chart.series[0].values.len() + 1);
        assert_eq!(chart.marks.len(), 3);
    }

    #[test]
    fn edges_hold_every_life() {
        assert_eq!(edges(3 * MS), [100_000, 200_000, 500_000, MS, 2 * MS, 5 * MS]);
        assert!(*edges(u64::MAX).last().unwrap() == u64::MAX);
        assert!(*edges(5 * MS).last().unwrap() > 5 * MS);
    }
}
