//! Spawners: which program and command line forked, and what the child ran.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use proctrace_findings::{
    Axis, Bars, Chart, ChartBody, Class, Figure, Series, Spawner, Table, Unit,
};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::programs::child_name;
use proctrace_overview::sums::Edge;
use proctrace_recording::Recording;
use proctrace_recording::split::columns;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;
use crate::shares::rate::Rate;
use crate::shares::share_percent;

/// Maximum sources with a bar of their own.
const BARS_MAX: usize = 12;

/// The program and command line that forked a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Source {
    program: usize,
    /// Number of its command line's template, if it called exec.
    shape: Option<u32>,
}

/// The program of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Child {
    program: usize,
    /// It never called exec.
    forked: bool,
}

fn source(edge: &Edge) -> Source {
    Source { program: edge.spawner, shape: edge.shape }
}

pub(crate) fn section(analysis: &Analysis<'_>, options: &Options) -> Content {
    let recording = analysis.recording;
    let rate = Rate::of(recording, options);
    let edges = analysis.sums().edges();
    let started: u64 = edges.iter().map(|edge| edge.processes).sum();
    // A single wrapper may supervise a hundred tasks, each with its own command line.
    let programs = sums(recording, edges, |edge| &*recording.programs()[edge.spawner].name);
    let lines = sums(recording, edges, source);
    let chart = chart(&programs);
    let commands = "commands: system commands among the processes started; CPU: of all processes \
                    started.";
    let digits = "Digits and random characters in which command lines differ are written as #.";
    let texts = recording.lines_of_templates();
    let by_program = programs_table(recording, &programs, started, &rate).note(commands);
    let by_line = lines_table(recording, (&lines, &texts), &rate).note(commands).note(digits);
    let pairs = pairs_table(analysis.spawners(), &rate);
    let edges = edges_table(recording, (edges, &texts), &rate).note(digits);
    Content {
        tables: [by_program, by_line, edges, pairs].map(|table| table.note(rate.says())).into(),
        charts: vec![chart.note(format!("n = {started} processes forked during the recording."))],
    }
}

fn shape(lines: &[String], source: Source) -> &str {
    source.shape.and_then(|number| lines.get(number as usize)).map_or("", String::as_str)
}

/// A source with everything that it started.
#[derive(Debug)]
struct Sum<K> {
    source: K,
    processes: u64,
    /// Number of these that are system commands.
    commands: u64,
    cpu_ns: u64,
    children: BTreeMap<Child, u64>,
}

/// Sums over what each source started, the busiest first.
fn sums<K: Copy + Ord + Hash>(
    recording: &Recording,
    edges: &[Edge],
    key: impl Fn(&Edge) -> K,
) -> Vec<Sum<K>> {
    let mut sums: HashMap<K, Sum<K>> = HashMap::new();
    for edge in edges {
        let source = key(edge);
        let child = Child { program: edge.program, forked: edge.forked };
        let sum = sums.entry(source).or_insert_with(|| Sum {
            source,
            processes: 0,
            commands: 0,
            cpu_ns: 0,
            children: BTreeMap::new(),
        });
        sum.processes += edge.processes;
        if !child.forked && recording.programs()[child.program].class == Class::Command {
            sum.commands += edge.processes;
        }
        sum.cpu_ns = sum.cpu_ns.saturating_add(edge.used.cpu.total_ns());
        *sum.children.entry(child).or_default() += edge.processes;
    }
    let mut sums: Vec<Sum<K>> = sums.into_values().collect();
    sums.sort_by(|a, b| {
        (b.processes, b.cpu_ns).cmp(&(a.processes, a.cpu_ns)).then_with(|| a.source.cmp(&b.source))
    });
    sums
}

/// All children with their counts, most frequent first: the renderer knows how much room there is.
fn children<K>(recording: &Recording, sum: &Sum<K>) -> String {
    let mut children: Vec<(&Child, &u64)> = sum.children.iter().collect();
    children.sort_by(|a, b| b.1.cmp(a.1));
    let texts = children
        .iter()
        .map(|(child, n)| format!("{} {n}", child_name(recording, child.program, child.forked)));
    texts.collect::<Vec<_>>().join(", ")
}

fn programs_table(recording: &Recording, sums: &[Sum<&str>], started: u64, rate: &Rate) -> Table {
    Table::new("spawn_sources", "Processes started, by parent program")
        .rows_need(&Quantity::WHO)
        .whole("processes", "processes", Unit::Count, sums.iter().map(|sum| sum.processes))
        .real(
            "share_percent",
            "of all",
            Unit::Percent,
            sums.iter().map(|sum| share_percent(sum.processes, started)),
        )
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            sums.iter().map(|sum| rate.per_second(sum.processes)),
        )
        .whole("commands", "commands", Unit::Count, sums.iter().map(|sum| sum.commands))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, sums.iter().map(|sum| sum.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .text("parent", "parent", sums.iter().map(|sum| sum.source))
        .lists("children", "children", sums.iter().map(|sum| children(recording, sum)))
}

fn lines_table(
    recording: &Recording,
    (sums, texts): (&[Sum<Source>], &[String]),
    rate: &Rate,
) -> Table {
    Table::new("spawn_lines", "Processes started, by parent command line")
        .rows_need(&Quantity::WHO)
        .whole("processes", "processes", Unit::Count, sums.iter().map(|sum| sum.processes))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            sums.iter().map(|sum| rate.per_second(sum.processes)),
        )
        .whole("commands", "commands", Unit::Count, sums.iter().map(|sum| sum.commands))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, sums.iter().map(|sum| sum.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .text(
            "parent",
            "parent",
            sums.iter().map(|sum| &*recording.programs()[sum.source.program].name),
        )
        .text("command_line", "command line", sums.iter().map(|sum| shape(texts, sum.source)))
        .needs(&[Quantity::Argv])
}

fn edges_table(recording: &Recording, (edges, texts): (&[Edge], &[String]), rate: &Rate) -> Table {
    let of = || edges.iter();
    let parent = |edge: &Edge| &*recording.programs()[edge.spawner].name;
    let table = Table::new("spawners", "Processes started, by parent command line and child")
        .rows_need(&Quantity::WHO)
        .whole("processes", "processes", Unit::Count, of().map(|edge| edge.processes))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            of().map(|edge| rate.per_second(edge.processes)),
        )
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|edge| edge.used.cpu.total_ns()))
        .needs(Figure::CpuNs.needs());
    // A line has no room for both the system time fraction and complete names.
    columns(table, recording.split(), of().map(|edge| edge.used))
        .detail_of("system_percent")
        .whole("life_median_ns", "life", Unit::Nanoseconds, of().map(|edge| edge.life_median_ns))
        .text("parent", "parent", of().map(parent))
        .text("child", "child", of().map(|e| child_name(recording, e.program, e.forked)))
        .text("command_line", "command line", of().map(|edge| shape(texts, source(edge))))
        .needs(&[Quantity::Argv])
        .note("life: median lifetime.")
}

/// The same without command lines.
fn pairs_table(pairs: &[Spawner], rate: &Rate) -> Table {
    let of = || pairs.iter();
    Table::new("spawn_pairs", "Processes started, by parent and child program")
        .rows_need(&Quantity::WHO)
        .whole("processes", "processes", Unit::Count, of().map(|pair| pair.processes))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            of().map(|pair| rate.per_second(pair.processes)),
        )
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|pair| pair.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .text("parent", "parent", of().map(|pair| &*pair.parent))
        .text("child", "child", of().map(|pair| &*pair.child))
}

fn chart(sums: &[Sum<&str>]) -> Chart {
    let mut rows: Vec<(String, u64, u64)> =
        sums.iter().map(|sum| (sum.source.to_owned(), sum.processes, sum.commands)).collect();
    if rows.len() > BARS_MAX + 1 {
        let tail = rows.split_off(BARS_MAX);
        let (processes, commands) =
            tail.iter().fold((0, 0), |sum, row| (sum.0 + row.1, sum.1 + row.2));
        rows.push((format!("{} others", tail.len()), processes, commands));
    }
    let series = |name: &str, values: Vec<u64>| Series {
        name: name.to_owned(),
        values: values.into_iter().map(|value| Some(value as f64)).collect(),
    };
    let body = ChartBody::Bars(Bars {
        rows: rows.iter().map(|row| row.0.clone()).collect(),
        axis: Axis::linear("processes started", Unit::Count),
        series: vec![
            series("system commands", rows.iter().map(|row| row.2).collect()),
            series("others", rows.iter().map(|row| row.1 - row.2).collect()),
        ],
        stacked: true,
    });
    Chart::new("spawners", "Processes started, by parent program", body).needs(&Quantity::WHO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{MS, S, Scene, real};

    #[test]
    fn the_wrapper_that_polls_is_named() {
        let mut scene = Scene::new(2, S);
        scene.exec_with(
            0,
            1,
            "/bin/bash",
            &["bash", "-c", ". x; taskwrapper sim_1.log o2-sim"],
            (0, 0),
        );
        scene.fork(0, 1, 2).exec(0, 2, "/o2/o2-sim", (0, 0));
        for tick in 0..10u32 {
            let at_ns = u64::from(tick) * 100 * MS;
            for (child, path) in [(10, "/bin/ps"), (30, "/bin/grep")] {
                let child = child + tick;
                scene.fork(at_ns, 1, child).exec(at_ns, child, path, (0, 0));
                scene.exit(at_ns + 10 * MS, child, (3 * MS, MS));
            }
        }
        scene.fork(S, 2, 50).exec(S, 50, "/bin/grep", (0, 0)).exit(S + MS, 50, (0, MS));
        scene.exit(2 * S, 2, (S, 0)).exit(2 * S, 1, (0, 0));
        let content = section(&Analysis::of(&scene.load(Some((2 * S, S, 0)))), &Options::default());

        let sources = &content.tables[0];
        assert_eq!(sources.named("parent").unwrap().values.get(0), Cell::Text("taskwrapper"));
        assert_eq!(real(sources, "parent", "taskwrapper", "processes"), Some(21.0));
        assert_eq!(real(sources, "parent", "taskwrapper", "commands"), Some(20.0));
        assert_eq!(real(sources, "parent", "taskwrapper", "per_second"), Some(10.5));
        assert_eq!(
            sources.named("children").unwrap().values.get(0),
            Cell::Text("ps 10, grep 10, o2-sim 1")
        );
        let line = content.tables[1].named("command_line").unwrap().values.get(0);
        assert_eq!(line, Cell::Text("bash -c . x; taskwrapper sim_1.log o2-sim"));

        let edges = &content.tables[2];
        assert_eq!(edges.height(), 4);
        assert_eq!(real(edges, "child", "ps", "processes"), Some(10.0));
        assert_eq!(real(edges, "child", "ps", "cpu_ns"), Some(4e7));
        assert_eq!(real(edges, "child", "ps", "system_percent"), Some(25.0));
        assert_eq!(real(edges, "child", "ps", "life_median_ns"), Some(1e7));
        let ChartBody::Bars(bars) = &content.charts[0].body else { panic!("no bars") };
        assert_eq!(bars.rows, ["taskwrapper", "o2-sim"]);
        assert_eq!(bars.series[0].values, [Some(20.0), Some(1.0)]);
        assert_eq!(bars.series[1].values, [Some(1.0), Some(0.0)]);
    }
}
