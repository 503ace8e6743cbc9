//! Numbers of processes and threads by kind, as counted in figure 2 of ALICE's multicore paper.

use proctrace_classify::labels::{class_name, told_apart};
use proctrace_findings::{
    Axis, Bars, Category, Chart, ChartBody, Class, Figure, Series, Table, Unit, Values, counted,
};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::programs::NO_ONE;
use proctrace_overview::sums::{Label, Sum, Sums};
use proctrace_recording::split::columns;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;
use crate::shares::rate::Rate;

/// Maximum bars per class in the chart.
const BARS_MAX: usize = 16;
/// Minimum ratio of the largest value to the median with which axes are logarithmic.
const LOGARITHMIC_FROM: f64 = 100.0;

pub(crate) fn section(analysis: &Analysis<'_>, options: &Options) -> Content {
    let recording = analysis.recording;
    let sums = analysis.sums();
    let rate = Rate::of(recording, options);
    let categories = ran(sums.by([Label::Class, Label::Category]));
    let (processes, threads) =
        categories.iter().fold((0, 0), |all, sum| (all.0 + sum.processes, all.1 + sum.threads));
    let n = format!(
        "{} and {}. A process that never called exec is counted with its parent, a thread with its \
         process.",
        counted(processes, "process", "processes"),
        counted(threads, "thread", "threads")
    );

    let of = |label: usize| categories.iter().map(move |sum| &*sum.labels[label]);
    let all = || categories.iter();
    let table = Table::new("counts", "Processes and threads by category")
        .rows_need(&Quantity::WHO)
        .text("class", "class", of(0))
        .text("category", "category", of(1))
        .whole("processes", "processes", Unit::Count, all().map(|sum| sum.processes))
        .whole("forked", "no exec", Unit::Count, all().map(|sum| sum.forked))
        .whole("threads", "threads", Unit::Count, all().map(|sum| sum.threads))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            all().map(|sum| rate.per_second(sum.created())),
        )
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, all().map(Sum::cpu_ns))
        .needs(Figure::CpuNs.needs());
    let by_category =
        columns(table, recording.split(), all().map(|sum| sum.used)).note(&n).note(rate.says());
    let by_program = programs(analysis.categories(), &rate).note(&n).note(rate.says());

    let kinds = Chart::new("counts", "Processes and threads", bars(&kinds(sums)))
        .needs(&Quantity::WHO)
        .note("System commands and other programs by name, an experiment's software by category.");
    let names: Vec<_> = categories.iter().map(|sum| [&*sum.labels[1], &*sum.labels[0]]).collect();
    let rows: Vec<_> = told_apart(&names).into_iter().zip(all().map(Counted::of)).collect();
    let charts = vec![
        kinds.note(&n),
        Chart::new("categories", "Processes and threads by category", bars(&rows))
            .needs(&Quantity::WHO)
            .note(&n),
    ];
    Content { tables: vec![by_category, by_program], charts }
}

/// Removes programs that no process ran last: those that only executed another program.
fn ran(mut rows: Vec<Sum>) -> Vec<Sum> {
    rows.retain(|sum| sum.processes > 0);
    rows
}

/// All counts by program; interactive output shows what fits on a line.
fn programs(all: &[Category], rate: &Rate) -> Table {
    let of = || all.iter();
    let category = |program: &Category| match &*program.group {
        "" => "other".to_owned(),
        group => group.to_owned(),
    };
    let spawner =
        |program: &Category| (program.main_spawner != NO_ONE).then(|| program.main_spawner.clone());
    Table::new("programs", "Processes and threads by program")
        .rows_need(&Quantity::WHO)
        .text("class", "class", of().map(|program| class_name(program.class)))
        .detail()
        .text("category", "category", of().map(category))
        .text("program", "program", of().map(|program| &*program.name))
        .whole("processes", "processes", Unit::Count, of().map(|program| program.processes))
        .whole("forked", "no exec", Unit::Count, of().map(|program| program.forked))
        .detail()
        .whole("threads", "threads", Unit::Count, of().map(|program| program.threads))
        .whole("execs", "execs", Unit::Count, of().map(|program| program.execs))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            of().map(|program| {
                let created = program.processes?.saturating_sub(program.there_before.unwrap_or(0));
                rate.per_second(created)
            }),
        )
        .detail()
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|program| program.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .whole("user_ns", "user", Unit::Nanoseconds, of().map(|program| program.user_ns))
        .needs(Figure::UserNs.needs())
        .detail()
        .whole("system_ns", "system", Unit::Nanoseconds, of().map(|program| program.system_ns))
        .needs(Figure::SystemNs.needs())
        .detail()
        .real("system_percent", "system", Unit::Percent, of().map(|p| p.system_percent))
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
        .real(
            "system_low_percent",
            "system from",
            Unit::Percent,
            of().map(|p| p.system_low_percent),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
        .real(
            "system_high_percent",
            "system to",
            Unit::Percent,
            of().map(|p| p.system_high_percent),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
        .real("ticks", "ticks", Unit::Count, of().map(|program| program.ticks))
        .needs(&[Quantity::Cpu, Quantity::Split])
        .detail()
        .whole("life_median_ns", "life", Unit::Nanoseconds, of().map(|p| p.median_life_ns))
        .whole("failed_lookups", "misses", Unit::Count, of().map(|p| p.lookups_failed))
        .needs(Figure::FailedLookups.needs())
        .whole("peak_rss_bytes", "peak RSS", Unit::Bytes, of().map(|program| program.maxrss_bytes))
        .needs(Figure::PeakRssBytes.needs())
        .detail()
        .column("main_spawner", "started by", Unit::Text, Values::Text(of().map(spawner).collect()))
        .detail()
        .whole(
            "main_spawner_processes",
            "by that",
            Unit::Count,
            of().map(|program| program.main_spawner_processes),
        )
        .detail()
        .note("life: median lifetime; misses: failed look-ups.")
}

/// The counts of a bar.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    processes: u64,
    threads: u64,
}

impl Counted {
    fn of(sum: &Sum) -> Self {
        Self { processes: sum.processes, threads: sum.threads }
    }
}

/// The rows of the paper's figure: system commands by name, the experiment's software by purpose,
/// everything else by name; rare entries are merged.
fn kinds(sums: &Sums<'_>) -> Vec<(String, Counted)> {
    let (by_category, by_name) =
        (ran(sums.by([Label::Class, Label::Category])), ran(sums.by([Label::Class, Label::Name])));
    let mut rows = Vec::new();
    for (class, sums, rest) in [
        (Class::Framework, by_category, "other categories"),
        (Class::Command, by_name.clone(), "other commands"),
        (Class::Program, by_name, "other programs"),
    ] {
        let class = class_name(class);
        let mut of_class: Vec<(String, Counted)> = sums
            .iter()
            .filter(|sum| sum.labels[0] == class)
            .map(|sum| (sum.labels[1].clone(), Counted::of(sum)))
            .collect();
        if of_class.len() > BARS_MAX + 1 {
            let tail = of_class.split_off(BARS_MAX);
            let name = format!("{} {rest}", tail.len());
            let all = tail.iter().fold(Counted::default(), |all, (_, row)| Counted {
                processes: all.processes + row.processes,
                threads: all.threads + row.threads,
            });
            of_class.push((name, all));
        }
        rows.extend(of_class.into_iter().map(|(name, row)| (name, class, row)));
    }
    let names: Vec<_> = rows.iter().map(|(name, class, _)| [&**name, class]).collect();
    told_apart(&names).into_iter().zip(rows.iter().map(|(.., row)| *row)).collect()
}

fn bars(rows: &[(String, Counted)]) -> ChartBody {
    let processes: Vec<u64> = rows.iter().map(|(_, row)| row.processes).collect();
    let threads: Vec<u64> = rows.iter().map(|(_, row)| row.threads).collect();
    let logarithmic = needs_logarithm(processes.iter().chain(&threads).copied());
    let series = |name: &str, counts: &[u64]| Series {
        name: name.to_owned(),
        // A logarithmic axis cannot show zero.
        values: counts.iter().map(|n| (*n > 0 || !logarithmic).then_some(*n as f64)).collect(),
    };
    ChartBody::Bars(Bars {
        rows: rows.iter().map(|(name, _)| name.clone()).collect(),
        axis: Axis { title: "number".into(), unit: Unit::Count, logarithmic },
        series: vec![series("processes", &processes), series("threads", &threads)],
        stacked: false,
    })
}

/// True if the largest value would make the others invisible.
fn needs_logarithm(counts: impl Iterator<Item = u64>) -> bool {
    let mut counts: Vec<u64> = counts.filter(|count| *count > 0).collect();
    let largest = counts.iter().max().copied().unwrap_or(0) as f64;
    let median = proctrace_stats::lower_median(&mut counts).unwrap_or(0) as f64;
    largest > LOGARITHMIC_FROM * median
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{S, Scene, real};

    fn scene() -> Scene {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/o2/o2-sim", (0, 0));
        // A command, a process that never calls exec and has a thread, and one that exits at once.
        scene.fork(S, 1, 2).exec(S, 2, "/bin/sed", (0, 0)).exit(2 * S, 2, (S / 4, S / 4));
        scene.fork(S, 1, 3).thread(S, 3, 4).exit(2 * S, 4, (S, 0)).exit(3 * S, 3, (S, 0));
        scene.fork(S, 1, 5).exec(S, 5, "/bin/sed", (0, 0)).exit(2 * S, 5, (S / 4, S / 4));
        scene.exit(4 * S, 1, (0, 0));
        scene
    }

    #[test]
    fn everything_counts_once() {
        let recording = scene().load(Some((4 * S, 0, 0)));
        let content = section(&Analysis::of(&recording), &Options::default());
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
        let content = section(&Analysis::of(&recording), &native);
        assert_eq!(real(&content.tables[0], "category", "text", "per_second"), Some(1.0));
        let ChartBody::Bars(bars) = &content.charts[0].body else { panic!("no bars") };
        assert_eq!(bars.rows, ["o2 driver", "sed"]);
        assert_eq!(bars.series[1].values, [Some(1.0), Some(0.0)]);
    }

    #[test]
    fn a_name_in_two_classes_says_the_class() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/o2/o2-sim", (0, 0));
        // A command with the same name as a category of the experiment.
        scene.fork(0, 1, 2).exec(0, 2, "/opt/o2 driver", (0, 0));
        let content = section(&Analysis::of(&scene.load(None)), &Options::default());
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
