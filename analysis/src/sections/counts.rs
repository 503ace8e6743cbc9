//! How many processes and threads of which kind: what ALICE's multicore paper counts in its
//! figure 2.

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Class, Series, Table, Unit, counted};

use crate::classify::labels::{class_name, told_apart};
use crate::error::AnalysisError;
use crate::options::{Content, Options};
use crate::recording::Recording;
use crate::recording::split::columns;
use crate::recording::tally::{self, Tally};
use crate::stats::rate::Rate;

/// As many of a class have a bar of their own.
const BARS_MAX: usize = 16;
/// Axes whose largest value is so many times the median are logarithmic.
const LOGARITHMIC_FROM: f64 = 100.0;

pub(crate) fn section(recording: &Recording, options: &Options) -> Result<Content, AnalysisError> {
    let categories =
        ran(tally::by(recording, |program| Some((program.class, program.category().to_owned()))));
    let programs = ran(tally::by(recording, |program| {
        Some((program.class, program.category().to_owned(), program.name.clone()))
    }));
    let rate = Rate::of(recording, options);
    let total = sum(categories.iter().map(|(_, tally)| tally));
    let n = format!(
        "{} and {}. A process that never called exec counts where its parent \
         does, a thread where its process does.",
        counted(total.processes, "process", "processes"),
        counted(total.threads, "thread", "threads")
    );

    let table = Table::new("counts", "Processes and threads by category")
        .text("class", "class", categories.iter().map(|((class, _), _)| class_name(*class)))
        .text("category", "category", categories.iter().map(|((_, name), _)| &**name));
    let by_category =
        figures(recording, table, categories.iter().map(|(_, tally)| *tally), &rate).note(&n);
    let table = Table::new("programs", "Processes and threads by program")
        .text("category", "category", programs.iter().map(|((_, name, _), _)| &**name))
        .text("program", "program", programs.iter().map(|((.., name), _)| &**name));
    let by_program =
        figures(recording, table, programs.iter().map(|(_, tally)| *tally), &rate).note(&n);
    let tables = vec![by_category.note(rate.says()), by_program.note(rate.says())];

    let kinds = Chart::new("counts", "Processes and threads", bars(&kinds(recording))).note(
        "Commands of the system and other programs by name, an experiment's software by category.",
    );
    let names: Vec<_> =
        categories.iter().map(|((class, name), _)| [&**name, class_name(*class)]).collect();
    let rows: Vec<_> =
        told_apart(&names).into_iter().zip(categories.iter().map(|(_, tally)| *tally)).collect();
    let charts = vec![
        kinds.note(&n),
        Chart::new("categories", "Processes and threads by category", bars(&rows)).note(&n),
    ];
    Ok(Content { tables, charts })
}

/// Without what no process ran last: a program that only executed another.
fn ran<K>(mut rows: Vec<(K, Tally)>) -> Vec<(K, Tally)> {
    rows.retain(|(_, tally)| tally.processes > 0);
    rows
}

fn figures(
    recording: &Recording,
    table: Table,
    rows: impl Iterator<Item = Tally> + Clone,
    rate: &Rate,
) -> Table {
    let table = table
        .whole("processes", "processes", Unit::Count, rows.clone().map(|tally| tally.processes))
        .whole("forked", "no exec", Unit::Count, rows.clone().map(|tally| tally.forked))
        .whole("threads", "threads", Unit::Count, rows.clone().map(|tally| tally.threads))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            rows.clone().map(|tally| rate.per_second(tally.processes)),
        )
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, rows.clone().map(|tally| tally.cpu_ns()));
    columns(table, &recording.split, rows.map(|tally| tally.used))
}

/// The rows of the paper's figure: system commands by name, the experiment's software by what it
/// is for, everything else by name; what is rare comes together.
fn kinds(recording: &Recording) -> Vec<(String, Tally)> {
    let mut rows = Vec::new();
    for (class, rest) in [
        (Class::Framework, "other categories"),
        (Class::Command, "other commands"),
        (Class::Program, "other programs"),
    ] {
        let mut of_class = ran(tally::by(recording, |program| {
            let by_category = class == Class::Framework;
            let name = if by_category { program.category() } else { &*program.name };
            (program.class == class).then(|| name.to_owned())
        }));
        if of_class.len() > BARS_MAX + 1 {
            let tail = of_class.split_off(BARS_MAX);
            let name = format!("{} {rest}", tail.len());
            of_class.push((name, sum(tail.iter().map(|(_, tally)| tally))));
        }
        rows.extend(of_class.into_iter().map(|(name, tally)| (name, class_name(class), tally)));
    }
    let names: Vec<_> = rows.iter().map(|(name, class, _)| [&**name, class]).collect();
    told_apart(&names).into_iter().zip(rows.iter().map(|(.., tally)| *tally)).collect()
}

fn bars(rows: &[(String, Tally)]) -> ChartBody {
    let processes: Vec<u64> = rows.iter().map(|(_, tally)| tally.processes).collect();
    let threads: Vec<u64> = rows.iter().map(|(_, tally)| tally.threads).collect();
    let logarithmic = needs_logarithm(processes.iter().chain(&threads).copied());
    let series = |name: &str, counts: &[u64]| Series {
        name: name.to_owned(),
        // Nothing has no place on a logarithmic axis.
        values: counts.iter().map(|n| (*n > 0 || !logarithmic).then_some(*n as f64)).collect(),
    };
    ChartBody::Bars(Bars {
        rows: rows.iter().map(|(name, _)| name.clone()).collect(),
        axis: Axis { title: "number".into(), unit: Unit::Count, logarithmic },
        series: vec![series("processes", &processes), series("threads", &threads)],
        stacked: false,
    })
}

/// Whether the largest would leave nothing to see of the others.
fn needs_logarithm(counts: impl Iterator<Item = u64>) -> bool {
    let mut counts: Vec<u64> = counts.filter(|count| *count > 0).collect();
    let largest = counts.iter().max().copied().unwrap_or(0) as f64;
    let median = crate::stats::median(&mut counts).unwrap_or(0) as f64;
    largest > LOGARITHMIC_FROM * median
}

fn sum<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Tally {
    tallies.fold(Tally::default(), |mut sum, tally| {
        sum.add(tally);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{S, Scene, real};

    fn scene() -> Scene {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/o2/o2-sim", (0, 0));
        // A command, one that never calls exec and has a thread, and one that exits at once.
        scene.fork(S, 1, 2).exec(S, 2, "/bin/sed", (0, 0)).exit(2 * S, 2, (S / 4, S / 4));
        scene.fork(S, 1, 3).thread(S, 3, 4).exit(2 * S, 4, (S, 0)).exit(3 * S, 3, (S, 0));
        scene.fork(S, 1, 5).exec(S, 5, "/bin/sed", (0, 0)).exit(2 * S, 5, (S / 4, S / 4));
        scene.exit(4 * S, 1, (0, 0));
        scene
    }

    #[test]
    fn everything_counts_once() {
        let recording = scene().load(Some((4 * S, 0, 0)));
        let content = section(&recording, &Options::default()).unwrap();
        let counts = &content.tables[0];
        let of = |category: &str, column: &str| real(counts, "category", category, column);
        assert_eq!(of("text", "processes"), Some(2.0));
        assert_eq!(of("text", "per_second"), Some(0.5));
        assert_eq!(of("text", "system_percent"), Some(50.0));
        assert_eq!(of("o2 driver", "processes"), Some(2.0));
        assert_eq!(of("o2 driver", "forked"), Some(1.0));
        assert_eq!(of("o2 driver", "threads"), Some(1.0));
        assert_eq!(of("o2 driver", "cpu_ns"), Some(2e9));
        let native = Options { native_wall_ns: Some(2 * S), ..Options::default() };
        let content = section(&recording, &native).unwrap();
        assert_eq!(real(&content.tables[0], "category", "text", "per_second"), Some(1.0));
        let ChartBody::Bars(bars) = &content.charts[0].body else { panic!("no bars") };
        assert_eq!(bars.rows, ["o2 driver", "sed"]);
        assert_eq!(bars.series[1].values, [Some(1.0), Some(0.0)]);
    }

    #[test]
    fn a_name_in_two_classes_says_the_class() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/o2/o2-sim", (0, 0));
        // A command that bears the name of a category of the experiment's.
        scene.fork(0, 1, 2).exec(0, 2, "/opt/o2 driver", (0, 0));
        let content = section(&scene.load(None), &Options::default()).unwrap();
        let ChartBody::Bars(bars) = &content.charts[0].body else { panic!("no bars") };
        assert_eq!(bars.rows, ["o2 driver (framework)", "o2 driver (program)"]);
    }

    #[test]
    fn an_axis_is_logarithmic_where_it_must() {
        assert!(!needs_logarithm([].into_iter()));
        assert!(!needs_logarithm([100, 1, 0, 0].into_iter()));
        assert!(needs_logarithm([101, 1, 1, 0].into_iter()));
    }
}
