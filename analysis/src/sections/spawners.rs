//! Who starts what: from the program and command line that forked to what the child came to run.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use proctrace_findings::{Axis, Bars, Chart, ChartBody, Class, Series, Table, Unit};

use crate::error::AnalysisError;
use crate::options::{Content, Options};
use crate::recording::Recording;
use crate::recording::process::Process;
use crate::recording::split::{Divided, columns};
use crate::stats::median;
use crate::stats::rate::Rate;
use crate::stats::share_percent;

/// As many sources have a bar of their own.
const BARS_MAX: usize = 12;

/// What was at work when a process was forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Source {
    program: usize,
    /// Number of the shape of its command line, if it called exec.
    template: Option<u32>,
}

/// What a child came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Child {
    program: usize,
    /// It never called exec.
    forked: bool,
}

#[derive(Debug, Default)]
struct Edge {
    processes: u64,
    used: Divided,
    lives_ns: Vec<u64>,
}

impl Edge {
    fn add(&mut self, process: &Process) {
        self.processes += 1;
        self.used.add(&process.divided());
        let ended_ns = process.ended_ns;
        self.lives_ns.extend(ended_ns.map(|ended_ns| ended_ns.saturating_sub(process.born_ns)));
    }

    fn cpu_ns(&self) -> u64 {
        self.used.cpu.total_ns()
    }
}

pub(crate) fn section(recording: &Recording, options: &Options) -> Result<Content, AnalysisError> {
    let rate = Rate::of(recording, options);
    let mut edges: HashMap<(Source, Child), Edge> = HashMap::new();
    for process in &recording.processes {
        let Some(program) = process.spawned_by() else { continue };
        let run = process.spawned_in.and_then(|run| recording.runs.get(run as usize));
        let source = Source { program, template: run.map(|run| run.template) };
        let child = Child { program: process.program, forked: process.execs == 0 };
        edges.entry((source, child)).or_default().add(process);
    }
    let mut edges: Vec<((Source, Child), Edge)> = edges.into_iter().collect();
    edges.sort_by(|(a_key, a), (b_key, b)| {
        (b.processes, b.cpu_ns()).cmp(&(a.processes, a.cpu_ns())).then_with(|| a_key.cmp(b_key))
    });
    let started: u64 = edges.iter().map(|(_, edge)| edge.processes).sum();
    // One wrapper may watch over a hundred tasks, each with a command line of its own.
    let programs = sums(recording, &edges, |source| &*recording.programs[source.program].name);
    let lines = sums(recording, &edges, |source| source);
    let chart = chart(&programs);
    let commands = "Commands are those of the system among what was started, CPU is what all that \
                    used.";
    let digits = "Digits and random characters of command lines are written as #.";
    let by_program = programs_table(recording, &programs, started, &rate).note(commands);
    let by_line = lines_table(recording, &lines, &rate).note(commands).note(digits);
    let edges = edges_table(recording, edges, &rate).note(digits);
    Ok(Content {
        tables: [by_program, by_line, edges].map(|table| table.note(rate.says())).into(),
        charts: vec![chart.note(format!("{started} processes that were forked while recording."))],
    })
}

fn template(recording: &Recording, source: Source) -> &str {
    let template = source.template.and_then(|number| recording.templates.get(number as usize));
    template.map_or("", String::as_str)
}

fn child_name(recording: &Recording, child: Child) -> String {
    let name = &recording.programs[child.program].name;
    if child.forked { format!("{name} (fork)") } else { name.clone() }
}

/// A source with all that it started.
#[derive(Debug)]
struct Sum<K> {
    source: K,
    processes: u64,
    /// Of them, commands of the system.
    commands: u64,
    cpu_ns: u64,
    children: BTreeMap<Child, u64>,
}

/// What is started by each, the busiest first.
fn sums<K: Copy + Ord + Hash>(
    recording: &Recording,
    edges: &[((Source, Child), Edge)],
    key: impl Fn(Source) -> K,
) -> Vec<Sum<K>> {
    let mut sums: HashMap<K, Sum<K>> = HashMap::new();
    for ((source, child), edge) in edges {
        let source = key(*source);
        let sum = sums.entry(source).or_insert_with(|| Sum {
            source,
            processes: 0,
            commands: 0,
            cpu_ns: 0,
            children: BTreeMap::new(),
        });
        sum.processes += edge.processes;
        if !child.forked && recording.programs[child.program].class == Class::Command {
            sum.commands += edge.processes;
        }
        sum.cpu_ns = sum.cpu_ns.saturating_add(edge.cpu_ns());
        *sum.children.entry(*child).or_default() += edge.processes;
    }
    let mut sums: Vec<Sum<K>> = sums.into_values().collect();
    sums.sort_by(|a, b| {
        (b.processes, b.cpu_ns).cmp(&(a.processes, a.cpu_ns)).then_with(|| a.source.cmp(&b.source))
    });
    sums
}

/// All children with their numbers, the most frequent first: whoever prints them knows the room.
fn children<K>(recording: &Recording, sum: &Sum<K>) -> String {
    let mut children: Vec<(&Child, &u64)> = sum.children.iter().collect();
    children.sort_by(|a, b| b.1.cmp(a.1));
    let texts = children.iter().map(|(child, n)| format!("{} {n}", child_name(recording, **child)));
    texts.collect::<Vec<_>>().join(", ")
}

fn programs_table(recording: &Recording, sums: &[Sum<&str>], started: u64, rate: &Rate) -> Table {
    Table::new("spawn_sources", "Who starts most")
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
        .text("parent", "started by", sums.iter().map(|sum| sum.source))
        .lists("children", "what", sums.iter().map(|sum| children(recording, sum)))
}

fn lines_table(recording: &Recording, sums: &[Sum<Source>], rate: &Rate) -> Table {
    Table::new("spawn_lines", "Which command lines start most")
        .whole("processes", "processes", Unit::Count, sums.iter().map(|sum| sum.processes))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            sums.iter().map(|sum| rate.per_second(sum.processes)),
        )
        .whole("commands", "commands", Unit::Count, sums.iter().map(|sum| sum.commands))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, sums.iter().map(|sum| sum.cpu_ns))
        .text(
            "parent",
            "started by",
            sums.iter().map(|sum| &*recording.programs[sum.source.program].name),
        )
        .text(
            "command_line",
            "its command line",
            sums.iter().map(|sum| template(recording, sum.source)),
        )
}

fn edges_table(recording: &Recording, edges: Vec<((Source, Child), Edge)>, rate: &Rate) -> Table {
    let parent = |source: Source| &*recording.programs[source.program].name;
    let edges: Vec<(Source, Child, Edge, Option<u64>)> = edges
        .into_iter()
        .map(|((source, child), mut edge)| {
            let life_ns = median(&mut edge.lives_ns);
            (source, child, edge, life_ns)
        })
        .collect();
    let table = Table::new("spawners", "Who starts what")
        .whole("processes", "processes", Unit::Count, edges.iter().map(|edge| edge.2.processes))
        .real(
            "per_second",
            "rate",
            Unit::PerSecond,
            edges.iter().map(|edge| rate.per_second(edge.2.processes)),
        )
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, edges.iter().map(|edge| edge.2.cpu_ns()));
    columns(table, &recording.split, edges.iter().map(|edge| edge.2.used))
        .whole("life_median_ns", "half <", Unit::Nanoseconds, edges.iter().map(|edge| edge.3))
        .text("parent", "by", edges.iter().map(|edge| parent(edge.0)))
        .text("child", "what", edges.iter().map(|edge| child_name(recording, edge.1)))
        .text("command_line", "command line", edges.iter().map(|edge| template(recording, edge.0)))
        .note("Half of them lived less than the time given.")
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
    Chart::new("spawners", "Who starts most", body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene, real};
    use proctrace_findings::Cell;

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
        let content = section(&scene.load(Some((2 * S, S, 0))), &Options::default()).unwrap();

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
        assert_eq!(line, Cell::Text("bash -c . x; taskwrapper sim_#.log o#-sim"));

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
