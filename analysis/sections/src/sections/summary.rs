//! The summary figures, each under a stable name.

use std::cmp::Reverse;

use proctrace_findings::{Category, Figure, Table, Unit, Values, figure};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::programs::NO_ONE;
use proctrace_overview::summary::run;
use proctrace_wire::Quantity::{Execs, Forks};
use proctrace_wire::{Family, Quantity};

use crate::analysis::Analysis;
use crate::shares::share_percent;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let tables = vec![figures(analysis), programs(analysis.categories())];
    Content { tables, charts: Vec::new() }
}

/// A figure: its group, its name, and its value if known.
struct Row {
    group: &'static str,
    name: String,
    unit: Unit,
    number: Option<f64>,
    /// The value, if it is not a number.
    word: Option<String>,
}

/// Rows under construction.
#[derive(Default)]
struct Rows {
    group: &'static str,
    rows: Vec<Row>,
}

impl Rows {
    fn group(&mut self, group: &'static str) -> &mut Self {
        self.group = group;
        self
    }

    fn real(&mut self, name: &str, unit: Unit, number: Option<f64>) -> &mut Self {
        let number = number.filter(|number| number.is_finite());
        self.rows.push(Row { group: self.group, name: name.to_owned(), unit, number, word: None });
        self
    }

    fn whole(&mut self, name: &str, unit: Unit, number: Option<u64>) -> &mut Self {
        self.real(name, unit, number.map(|number| number as f64))
    }

    fn count(&mut self, name: &str, number: Option<u64>) -> &mut Self {
        self.whole(name, Unit::Count, number)
    }

    fn time(&mut self, name: &str, ns: Option<u64>) -> &mut Self {
        self.whole(name, Unit::Nanoseconds, ns)
    }

    fn bytes(&mut self, name: &str, bytes: Option<u64>) -> &mut Self {
        self.whole(name, Unit::Bytes, bytes)
    }

    fn percent(&mut self, name: &str, percent: Option<f64>) -> &mut Self {
        self.real(name, Unit::Percent, percent)
    }

    fn word(&mut self, name: &str, word: Option<String>) -> &mut Self {
        let name = name.to_owned();
        self.rows.push(Row { group: self.group, name, unit: Unit::Text, number: None, word });
        self
    }
}

fn figures(analysis: &Analysis<'_>) -> Table {
    let mut rows = Rows::default();
    cpu(&mut rows, analysis);
    tasks(&mut rows, analysis);
    resources(&mut rows, analysis);
    wasted(&mut rows, analysis);
    let rows = rows.rows;
    let of = || rows.iter();
    let value = |row: &Row| match row.number {
        Some(number) => Some(figure(number, row.unit)),
        None => row.word.clone(),
    };
    Table::new("summary", "Key figures")
        .rows_need(&[])
        .text("group", "group", of().map(|row| row.group))
        .text("figure", "figure", of().map(|row| &*row.name))
        .column("value", "value", Unit::Figure, Values::Text(of().map(value).collect()))
        .real("number", "number", Unit::Count, of().map(|row| row.number))
        .detail()
        .text("unit", "unit", of().map(|row| row.unit.name()))
        .detail()
        .in_whole()
        .note(
            "Names as in --json (summary, run), with the unit as suffix. -: not known, see \
             --section health. User and system time are estimates, see --section accounting.",
        )
}

fn cpu(rows: &mut Rows, analysis: &Analysis<'_>) {
    let (s, run) = (analysis.summary(), run(analysis.recording));
    let system_percent =
        s.system_ns.zip(s.cpu_ns).and_then(|(system, all)| share_percent(system, all));
    rows.group("Run")
        .time("wall_ns", run.wall_ns)
        .time("recorded_ns", run.recorded_ns)
        .count("cores", Some(u64::from(run.cores)).filter(|cores| *cores > 0));
    rows.group("CPU")
        .time("cpu_ns", s.cpu_ns)
        .time("user_ns", s.user_ns)
        .time("system_ns", s.system_ns)
        .percent("system_percent", system_percent)
        .percent("system_low_percent", s.system_low_percent)
        .percent("system_high_percent", s.system_high_percent)
        .real("ticks", Unit::Count, s.ticks)
        .percent("efficiency_percent", s.efficiency_percent)
        .percent("others_percent", s.others_percent)
        .time("waited_cpu_ns", s.waited_cpu_ns)
        .time("waited_system_ns", s.waited_system_ns)
        .time("unwaited_cpu_ns", s.unwaited_cpu_ns)
        .count("detached_processes", s.detached_processes)
        .time("detached_cpu_ns", s.detached_cpu_ns);
}

fn tasks(rows: &mut Rows, analysis: &Analysis<'_>) {
    let s = analysis.summary();
    rows.group("Tasks")
        .count("processes", s.processes)
        .count("threads", s.threads)
        .count("execs", s.execs)
        .count("execs_failed", s.execs_failed)
        .count("execs_searched", s.execs_searched)
        .count("peak_tasks", s.peak_tasks)
        .count("peak_processes", s.peak_processes)
        .count("peak_running", s.peak_running)
        .time("median_life_ns", s.median_life_ns)
        .count("alive_processes", s.alive_processes);
    let ends = analysis.recording.knows().some(&[Forks, Execs], analysis.ends());
    rows.group("Ends")
        .count("succeeded", ends.map(|ends| ends.succeeded))
        .count("failed", ends.map(|ends| ends.failed))
        .count("signalled", ends.map(|ends| ends.signalled))
        .count("core_dumps", ends.map(|ends| ends.core_dumps))
        .count("unknown", ends.map(|ends| ends.unknown));
}

fn resources(rows: &mut Rows, analysis: &Analysis<'_>) {
    let s = analysis.summary();
    let memory = analysis.memory();
    rows.group("Memory")
        .bytes("maxrss_bytes", s.maxrss_bytes)
        .word("maxrss_program", s.maxrss_program.clone())
        .bytes("peak_pss_bytes", memory.map(|memory| memory.peak_pss_bytes))
        .count("faults_major", s.faults_major)
        .count("faults_minor", s.faults_minor);
    rows.group("Storage").bytes("read_bytes", s.read_bytes).bytes("write_bytes", s.write_bytes);
    rows.group("Switches")
        .count("switches_voluntary", s.switches_voluntary)
        .count("switches_involuntary", s.switches_involuntary)
        .time("run_delay_ns", s.run_delay_ns);
}

/// Look-ups are opens, stats, accesses and more; of the successful ones, only opens are counted.
fn wasted(rows: &mut Rows, analysis: &Analysis<'_>) {
    let s = analysis.summary();
    let by_family = |family: Family| {
        let failed = s.lookups_failed_by_family.get(family.name()).copied().unwrap_or(0);
        analysis.recording.knows().knows_family(family.name()).then_some(failed)
    };
    let per_exec = s.lookups_in_vain.zip(s.execs.filter(|execs| *execs > 0));
    let opens = by_family(Family::Open).zip(s.opens);
    rows.group("Wasted")
        .count("lookups_failed", s.lookups_failed)
        .count("lookups_of_no_link", s.lookups_of_no_link)
        .count("lookups_in_vain", s.lookups_in_vain)
        .time("lookups_in_vain_ns", s.lookups_in_vain_ns)
        .real(
            "lookups_per_exec",
            Unit::Count,
            per_exec.map(|(lookups, execs)| lookups as f64 / execs as f64),
        );
    // Failed execs are listed separately, with the execs.
    for family in Family::ALL.into_iter().filter(|family| *family != Family::Exec) {
        rows.count(&format!("lookups_failed_{}", family.name()), by_family(family));
    }
    rows.count("opens", s.opens).percent(
        "opens_failed_percent",
        opens.and_then(|(failed, opens)| share_percent(failed, failed.saturating_add(opens))),
    );
}

/// Table of programs, by CPU time, then by number of processes.
fn programs(all: &[Category]) -> Table {
    let mut rows: Vec<&Category> =
        all.iter().filter(|program| program.processes > Some(0)).collect();
    rows.sort_by_key(|program| Reverse((program.cpu_ns, program.processes)));
    let cpu_ns = rows.iter().filter_map(|program| program.cpu_ns).fold(0, u64::saturating_add);
    let of = || rows.iter();
    let spawner = |program: &&Category| {
        let (processes, spawned) = (program.processes?, program.main_spawner_processes?);
        let share = share_percent(spawned, processes)?;
        Some(match &*program.main_spawner {
            NO_ONE => return None,
            name if spawned == processes => name.to_owned(),
            name => format!("{name} ({share:.0} %)"),
        })
    };
    Table::new("programs_by_cpu", "Programs, by CPU time")
        .rows_need(&Quantity::WHO)
        .text("program", "program", of().map(|program| &*program.name))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|program| program.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .real(
            "cpu_percent",
            "of all",
            Unit::Percent,
            of().map(|program| share_percent(program.cpu_ns?, cpu_ns)),
        )
        .needs(&[Quantity::Cpu])
        .real("system_percent", "system", Unit::Percent, of().map(|p| p.system_percent))
        .needs(&[Quantity::Cpu, Quantity::Split])
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
        .whole("processes", "processes", Unit::Count, of().map(|program| program.processes))
        .whole("threads", "threads", Unit::Count, of().map(|program| program.threads))
        .column("main_spawner", "started by", Unit::Text, Values::Text(of().map(spawner).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{MS, S, Scene, real};

    #[test]
    fn figures_have_a_number_and_a_text() {
        let mut scene = Scene::new(2, S);
        scene.exec(0, 1, "/bin/make", (0, 0)).open_failed(MS, 1, "/no");
        scene.fork(0, 1, 2).exec(MS, 2, "/bin/sed", (0, 0)).exit(S, 2, (S, S / 2));
        let recording = scene.exit(2 * S, 1, (0, 0)).load(Some((2 * S, S, S / 2)));
        let content = section(&Analysis::of(&recording), &Options::default());
        let [figures, programs] = &content.tables[..] else { panic!("not two tables") };
        for (name, number, text) in [
            ("cpu_ns", Some(1.5e9), Cell::Text("1.50 s")),
            ("efficiency_percent", Some(37.5), Cell::Text("37.5 %")),
            ("processes", Some(2.0), Cell::Text("2")),
            ("succeeded", Some(2.0), Cell::Text("2")),
            ("lookups_failed_open", Some(1.0), Cell::Text("1")),
            // It was not recorded, so the value is missing rather than 0.
            ("peak_pss_bytes", None, Cell::Missing),
        ] {
            assert_eq!(real(figures, "figure", name, "number"), number, "{name}");
            let names = &figures.named("figure").unwrap().values;
            let row = (0..figures.height()).find(|row| names.get(*row) == Cell::Text(name));
            assert_eq!(figures.named("value").unwrap().values.get(row.unwrap()), text, "{name}");
        }
        assert_eq!(real(programs, "program", "sed", "cpu_percent"), Some(100.0));
        assert_eq!(programs.named("program").unwrap().values.get(0), Cell::Text("sed"));
        assert_eq!(programs.named("main_spawner").unwrap().values.get(1), Cell::Missing);
    }

    #[test]
    fn names_are_unique() {
        let recording = Scene::new(1, S).load(None);
        let table = figures(&Analysis::of(&recording));
        let Values::Text(mut names) = table.named("figure").unwrap().values.clone() else {
            panic!("no words")
        };
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
