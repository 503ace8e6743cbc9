//! The accounting section: exact CPU time compared with what other tools would have reported.

use std::cmp::Reverse;

use proctrace_findings::{
    Axis, Bars, Chart, ChartBody, Figure, Series, Table, Unit, count as figure, counted,
};

use proctrace_overview::options::{Content, Options};
use proctrace_overview::processes::{cpu_columns, labels};
use proctrace_recording::Recording;
use proctrace_recording::books::waits::Accounting;
use proctrace_recording::process::Process;
use proctrace_recording::split::Divided;
use proctrace_recording::watch::PERIODS_NS;
use proctrace_replay::CpuTime;
use proctrace_trace::Knowledge;
use proctrace_wire::Quantity;

use crate::samplers::cpu::Cpu;
use crate::samplers::{Missed, Said, prmon_like, prmon_pause_ns, ps_like};

/// Values of prmon's `--interval`: its default, and the smallest in use.
const PRMON_INTERVALS_S: [u64; 3] = [30, 1, 0];
/// Maximum processes with a row of their own: those that used most CPU time.
const PROCESSES_MAX: usize = 1_000;

/// Report of one method.
struct Method {
    name: String,
    /// `None` where it reports nothing.
    cpu: Option<Cpu>,
    /// The wall time it covers.
    wall_ns: u64,
    missed: Vec<(&'static str, Option<u64>, f64)>,
    sampled: Option<(u64, Said)>,
}

pub(crate) fn section(recording: &Recording, options: &Options) -> Content {
    let methods = methods(recording);
    let cores = options.cores(recording);
    Content {
        tables: vec![
            compared(recording, &methods, cores),
            reasons(&methods),
            looks(&methods),
            processes(recording),
        ],
        charts: vec![chart(&methods)],
    }
}

fn methods(recording: &Recording) -> Vec<Method> {
    let books = Accounting::of(recording);
    let cpu: proctrace_replay::CpuTime =
        recording.processes().iter().map(|process| process.cpu).sum();
    let exact = Cpu { user_ns: cpu.user_ns as f64, system_ns: cpu.system_ns as f64 };
    let wall_ns = recording.wall_ns();
    let mut methods = vec![
        Method {
            name: "exact".into(),
            cpu: Some(exact),
            wall_ns: recording.recorded_ns().max(wall_ns),
            missed: Vec::new(),
            sampled: None,
        },
        time(recording, &books, exact),
    ];
    // A sampler's readings fall between our samples, and it reads time in ticks.
    let has_ticks = !matches!(recording.header().knows(Quantity::Split), Knowledge::Absent { .. });
    if !has_ticks || !recording.knows().all(&[Quantity::Samples]) {
        return methods;
    }
    let sampled = |name: String, period_ns: u64, said: Said| Method {
        name,
        cpu: Some(said.mean),
        wall_ns,
        missed: why(&said.missed),
        sampled: Some((period_ns, said)),
    };
    methods.extend(PRMON_INTERVALS_S.map(|interval_s| {
        let pause_ns = prmon_pause_ns(interval_s);
        let said = prmon_like(recording, &books, pause_ns);
        sampled(format!("prmon-like, -i {interval_s}"), pause_ns, said)
    }));
    methods.extend(PERIODS_NS.map(|period_ns| {
        let name = format!("ps-like, {} s", period_ns / 1_000_000_000);
        sampled(name, period_ns, ps_like(recording, period_ns))
    }));
    methods
}

/// The report of time(1): RUSAGE_CHILDREN of the process that started the command.
fn time(recording: &Recording, books: &Accounting, exact: Cpu) -> Method {
    let payload = recording.trailer().and_then(|trailer| trailer.payload.as_ref());
    let cpu = payload.map(|payload| Cpu {
        user_ns: payload.user_ns as f64,
        system_ns: payload.system_ns as f64,
    });
    let unwaited = recording
        .processes()
        .iter()
        .filter(|process| process.reaper().is_none() && !process.is_root())
        .count() as u64;
    let missed = cpu.map_or(Vec::new(), |cpu| {
        let unwaited_ns = books.unwaited_ns as f64;
        vec![
            ("never waited for in the tree", Some(unwaited), unwaited_ns),
            ("last time slices, rounding", None, exact.total_ns() - cpu.total_ns() - unwaited_ns),
        ]
    });
    Method { name: "time".into(), cpu, wall_ns: recording.wall_ns(), missed, sampled: None }
}

fn why(missed: &Missed) -> Vec<(&'static str, Option<u64>, f64)> {
    vec![
        ("lived between two readings", Some(missed.unseen.round() as u64), missed.unseen_ns),
        ("after the last reading", None, missed.late_ns),
        ("no longer in the tree", None, missed.outside_ns),
        ("live children of non-main threads", None, missed.hidden_ns),
        ("rounding to ticks or seconds", None, missed.rounding_ns),
    ]
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

fn exact_ns(methods: &[Method]) -> f64 {
    methods[0].cpu.map_or(0.0, Cpu::total_ns)
}

fn compared(recording: &Recording, methods: &[Method], cores: u32) -> Table {
    let exact_ns = exact_ns(methods);
    let cpu = |of: fn(Cpu) -> f64| methods.iter().map(move |method| method.cpu.map(of));
    // The user and system times of other methods are as they report them, and biased; see the note.
    let known = recording.knows().all(&[Quantity::Split]);
    let part = |of: fn(Cpu) -> f64| {
        let is_told = move |at: usize| at > 0 || known;
        let values = methods.iter().enumerate();
        values.map(move |(at, method)| method.cpu.filter(|_| is_told(at)).map(of))
    };
    let missing = || methods.iter().map(|method| Some(exact_ns - method.cpu?.total_ns()));
    let efficiency = methods
        .iter()
        .map(|method| percent(method.cpu?.total_ns(), method.wall_ns as f64 * f64::from(cores)));
    let mut table = Table::new("accounting", "CPU time by method")
        .rows_need(&[Quantity::Forks, Quantity::Cpu])
        .text("method", "method", methods.iter().map(|method| method.name.clone()))
        .real("cpu_ns", "CPU", Unit::Nanoseconds, cpu(Cpu::total_ns))
        .needs(Figure::CpuNs.needs())
        .real("user_ns", "user", Unit::Nanoseconds, part(|cpu| cpu.user_ns))
        .needs(Figure::UserNs.needs())
        .real("system_ns", "system", Unit::Nanoseconds, part(|cpu| cpu.system_ns))
        .needs(Figure::SystemNs.needs())
        .real("missing_ns", "missing", Unit::Nanoseconds, missing())
        .real(
            "missing_percent",
            "of all",
            Unit::Percent,
            missing().map(|ns| percent(ns?, exact_ns)),
        )
        .real("efficiency_percent", "efficiency", Unit::Percent, efficiency)
        .needs(&[Quantity::Cpu])
        .note(format!(
            "{}. efficiency: CPU time / (wall time x {cores} cores), with the wall time of the \
             recording for exact and of the command for the others.",
            counted(recording.processes().len() as u64, "process", "processes")
        ))
        .note(
            "prmon-like: sum over the processes of the tree and the children they waited for, at \
             the last reading, in whole seconds; it never decreases. The tree contains children of \
             main threads only, as prmon reads it, and prmon pauses one second longer than -i. \
             ps-like: CPU time used since the previous reading by each process found, in ticks of \
             10 ms; children that have ended are not counted. Both are computed from this \
             recording: means over readings that start with the command and a quarter, half and \
             three quarters of the pause later.",
        )
        .note(
            "CPU time is exact at each sample and at exit, and interpolated linearly in between; a \
             child is assumed to be waited for as soon as it ends. prmon's ticks are not modelled: \
             less than 10 ms for each process at its last reading.",
        );
    if known {
        table = table.note(division(recording, methods));
    }
    if methods[1].cpu.is_none() {
        table = table.note("No command was waited for: time would have reported nothing.");
    }
    table
}

/// Text on how user and system time are split, and why other methods are wrong.
fn division(recording: &Recording, methods: &[Method]) -> String {
    let split = recording.split();
    let all = methods[0].cpu.unwrap_or_default();
    let certain = split.certainty(&Divided {
        cpu: CpuTime { user_ns: all.user_ns as u64, system_ns: all.system_ns as u64 },
        ticks: split.ticks,
    });
    let (low, high) = certain.interval_percent.unwrap_or_default();
    let mut says = format!(
        "The user and system time of exact are estimates: {:.1} % system, 95 % interval {low:.1} \
         to {high:.1} %, from n = {} scheduler ticks ({} ms each), pooled by program.",
        percent(all.system_ns, all.total_ns()).unwrap_or_default(),
        figure(certain.ticks.round() as u64),
        split.tick_ns as f64 / 1e6,
    );
    if let Some(told) = methods[1].cpu {
        says.push_str(&format!(
            " time reports {:.1} %: the kernel splits the CPU time of each process by the ticks of \
             that process alone, and counts a process without a tick in kernel mode as all user \
             time (cputime_adjust). This is biased for processes shorter than a tick.",
            percent(told.system_ns, told.total_ns()).unwrap_or_default()
        ));
    }
    says
}

fn reasons(methods: &[Method]) -> Table {
    let rows: Vec<_> = methods
        .iter()
        .flat_map(|method| method.missed.iter().map(move |missed| (&method.name, missed)))
        // Less than a microsecond is rounding of sums.
        .filter(|(_, (_, _, ns))| ns.abs() >= 1_000.0)
        .collect();
    Table::new("accounting_why", "Why CPU time is missing")
        .rows_need(&[Quantity::Forks, Quantity::Cpu])
        .text("method", "method", rows.iter().map(|(name, _)| (*name).clone()))
        .text("why", "why", rows.iter().map(|(_, (why, _, _))| *why))
        .whole("processes", "processes", Unit::Count, rows.iter().map(|(_, (_, n, _))| *n))
        .real("cpu_ns", "CPU", Unit::Nanoseconds, rows.iter().map(|(_, (_, _, ns))| *ns))
        .needs(Figure::CpuNs.needs())
        .note("Means over the starting times of the readings, as above.")
}

fn looks(methods: &[Method]) -> Table {
    let rows: Vec<(&str, u64, &Said)> = methods
        .iter()
        .filter_map(|method| {
            let (period_ns, said) = method.sampled.as_ref()?;
            Some((method.name.as_str(), *period_ns, said))
        })
        .collect();
    let ns = |of: fn(&Said) -> f64| rows.iter().map(move |row| of(row.2));
    Table::new("accounting_looks", "Dependence on the time of the first reading")
        .rows_need(&[Quantity::Forks, Quantity::Cpu, Quantity::Samples])
        .text("method", "method", rows.iter().map(|row| row.0))
        .whole("period_ns", "pause", Unit::Nanoseconds, rows.iter().map(|row| row.1))
        .real("looks", "readings", Unit::Count, rows.iter().map(|row| row.2.looks))
        .real("least_ns", "min", Unit::Nanoseconds, ns(|said| said.least_ns))
        .real("mean_ns", "mean", Unit::Nanoseconds, ns(|said| said.mean.total_ns()))
        .real("most_ns", "max", Unit::Nanoseconds, ns(|said| said.most_ns))
        .real("launched_ns", "launched", Unit::Nanoseconds, ns(|said| said.launched_ns))
        .note(
            "launched: the first reading coincides with the start of the command, as with prmon -- \
             COMMAND. pause: for prmon one second longer than its -i.",
        )
}

fn life_ns(recording: &Recording, process: &Process) -> u64 {
    process.ended_ns().unwrap_or(recording.last_ns()).saturating_sub(process.born_ns)
}

fn efficiency_percent(recording: &Recording, process: &Process) -> Option<f64> {
    let life_ns = life_ns(recording, process);
    (life_ns > 0).then(|| 100.0 * process.cpu.total_ns() as f64 / life_ns as f64)
}

fn processes(recording: &Recording) -> Table {
    let all = recording.processes();
    let order = |at: &usize| (Reverse(all[*at].cpu.total_ns()), *at);
    let mut rows: Vec<usize> = (0..all.len()).collect();
    if rows.len() > PROCESSES_MAX {
        rows.select_nth_unstable_by_key(PROCESSES_MAX, order);
        rows.truncate(PROCESSES_MAX);
    }
    rows.sort_unstable_by_key(order);
    let of = || rows.iter().map(|at| &all[*at]);
    let sum = |cpu: &mut dyn Iterator<Item = u64>| cpu.fold(0, u64::saturating_add) as f64;
    let shown_ns = sum(&mut of().map(|process| process.cpu.total_ns()));
    let all_ns = sum(&mut all.iter().map(|process| process.cpu.total_ns()));
    let table = Table::new("accounting_processes", "Processes with the most CPU time")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu]);
    let table = labels(table, recording, &rows).whole(
        "life_ns",
        "life",
        Unit::Nanoseconds,
        of().map(|process| life_ns(recording, process)),
    );
    cpu_columns(table, recording, &rows)
        .real(
            "efficiency_percent",
            "CPU/life",
            Unit::Percent,
            of().map(|process| efficiency_percent(recording, process)),
        )
        .needs(&[Quantity::Cpu])
        .note(format!(
            "n = {} of {} processes, with {:.1} % of all CPU time. CPU/life can exceed 100 %: with \
             several threads, and for very short processes, because kernel work after the exit \
             counts as CPU time but not as lifetime.",
            figure(rows.len() as u64),
            figure(all.len() as u64),
            if all_ns > 0.0 { 100.0 * shown_ns / all_ns } else { 0.0 }
        ))
}

fn chart(methods: &[Method]) -> Chart {
    let exact_ns = exact_ns(methods);
    let series = |name: &str, of: fn(Cpu, f64) -> f64| Series {
        name: name.into(),
        values: methods.iter().map(|method| Some(of(method.cpu?, exact_ns).max(0.0))).collect(),
    };
    let body = Bars {
        rows: methods.iter().map(|method| method.name.clone()).collect(),
        axis: Axis::linear("CPU time", Unit::Nanoseconds),
        series: vec![
            series("user", |cpu, _| cpu.user_ns),
            series("system", |cpu, _| cpu.system_ns),
            series("missing", |cpu, exact_ns| exact_ns - cpu.total_ns()),
        ],
        stacked: true,
    };
    Chart::new("accounting", "CPU time by method", ChartBody::Bars(body))
        .needs(&[Quantity::Forks, Quantity::Cpu, Quantity::Split])
        .note("prmon-like and ps-like are computed from the same recording.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{MS, S, Scene, daemon, real};

    #[test]
    fn a_detached_child_is_seen_by_none_but_us() {
        let options = Options { cores: Some(2), ..Options::default() };
        let content = section(&daemon(), &options);
        let table = &content.tables[0];
        let of = |method: &str, column: &str| real(table, "method", method, column).unwrap();
        assert_eq!(of("exact", "cpu_ns"), 3_002e6);
        assert_eq!(of("time", "cpu_ns"), 2e6);
        assert_eq!(of("time", "missing_ns"), 3e9);
        for method in ["prmon-like, -i 0", "prmon-like, -i 30", "ps-like, 1 s", "ps-like, 30 s"] {
            assert_eq!(of(method, "cpu_ns"), 0.0, "{method}");
            assert_eq!(of(method, "missing_percent"), 100.0);
        }
        // 3.002 s of 4 s on 2 cores
        assert!((of("exact", "efficiency_percent") - 37.525).abs() < 1e-9);
        let busiest = &content.tables[3];
        assert_eq!(busiest.named("cpu_ns").unwrap().values.get(0), Cell::Whole(3 * S));
        let share = 100.0 * 3.0 / 3.98;
        let Cell::Real(found) = busiest.named("efficiency_percent").unwrap().values.get(0) else {
            panic!("no efficiency")
        };
        assert!((found - share).abs() < 1e-9);
    }

    #[test]
    fn what_is_said_and_what_is_missing_add_up() {
        for recording in [daemon(), Scene::new(1, 100 * MS).exit(S, 1, (MS, 0)).load(None)] {
            let methods = methods(&recording);
            let exact_ns = exact_ns(&methods);
            for method in &methods[1..] {
                let Some(cpu) = method.cpu else { continue };
                let missed: f64 = method.missed.iter().map(|(_, _, ns)| ns).sum();
                let sum = cpu.total_ns() + missed;
                assert!((sum - exact_ns).abs() < 1e3, "{}: {sum} {exact_ns}", method.name);
            }
        }
    }

    #[test]
    fn an_empty_recording_has_rows_and_no_numbers_that_are_none() {
        let recording = Scene::new(1, 100 * MS).load(None);
        let content = section(&recording, &Options::default());
        assert_eq!(real(&content.tables[0], "method", "time", "cpu_ns"), None);
        assert_eq!(real(&content.tables[0], "method", "exact", "cpu_ns"), Some(0.0));
    }
}
