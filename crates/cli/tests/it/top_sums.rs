//! The figures of `top` by program are those of `report`, and those by process those of `query`: a replay of each committed trace through the
//! live state against both, and a recording of many short processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::proctrace;
use proctrace_analysis::{LiveClassifier, LiveSteps, Rules};
use proctrace_live::{Classify, ProgramName, StepName, View};
use proctrace_trace::Follower;
use proctrace_wire::Exec;
use serde_json::Value;

/// Upper bound of the serials in the committed traces, which begin with 1.
const SERIALS_MAX: u32 = 200_000;

/// Classifier by the built-in rules, as `top` names programs and steps.
struct ByRules(LiveClassifier, LiveSteps);

impl Classify for ByRules {
    fn classify(&mut self, exec: &Exec<'_>, spawner: Option<&ProgramName>) -> ProgramName {
        let spawner = spawner.map(|s| (s.category.as_deref().unwrap_or(""), s.name.as_str()));
        let program = self.0.classify(exec, spawner);
        ProgramName { category: Some(program.category().to_owned()), name: program.name }
    }

    fn environment(&mut self, id: u64, block: &[u8]) {
        self.1.environment(id, block);
    }

    fn born(&mut self, process: u32, forker: Option<u32>) {
        self.1.born(process, forker);
    }

    fn step(&mut self, exec: &Exec<'_>, process: u32, parent: Option<u32>, unix_ns: u64) {
        self.1.exec(exec, process, parent, unix_ns);
    }

    fn gone(&mut self, process: u32) {
        self.1.gone(process);
    }

    fn step_of(&self, process: u32) -> Option<u32> {
        self.1.of(process)
    }

    fn named(&self, step: u32) -> Option<StepName> {
        let step = self.1.all().get(step as usize)?;
        Some(StepName { name: step.named.name.clone(), parent: step.parent })
    }
}

fn traces() -> Vec<PathBuf> {
    let directory =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "ptrace")).collect();
    files.sort();
    files
}

fn live(path: &Path) -> View {
    let mut follower = Follower::open(path).unwrap();
    let rules = Arc::new(Rules::built_in());
    let classifier = ByRules(LiveClassifier::new((*rules).clone()), LiveSteps::new(rules));
    let mut view = View::new(follower.header().clone(), Box::new(classifier));
    follower.refresh().unwrap();
    while let Some((info, bytes)) = follower.next_block(View::wants).unwrap() {
        view.take(&info, bytes);
    }
    view.trailer = follower.trailer().cloned();
    view
}

fn report(path: &Path) -> Value {
    let output = proctrace().args(["report", "--json"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The figures of a program; of a report those that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Figures {
    processes: Option<u64>,
    threads: Option<u64>,
    execs: Option<u64>,
    cpu_ns: Option<u64>,
    lookups_failed: Option<u64>,
    system_percent: Option<f64>,
}

/// Figures of programs by category and name.
type Programs = BTreeMap<(String, String), Figures>;

fn reported(report: &Value) -> Programs {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = report["categories"].as_array().unwrap().iter().map(|row| {
        let number = |key: &str| row[key].as_u64();
        let figures = Figures {
            processes: number("processes"),
            threads: number("threads"),
            execs: number("execs"),
            cpu_ns: number("cpu_ns"),
            lookups_failed: number("lookups_failed"),
            system_percent: row["system_percent"].as_f64(),
        };
        let group = Some(text(row, "group")).filter(|group| !group.is_empty());
        ((group.unwrap_or("other".to_owned()), text(row, "name")), figures)
    });
    rows.collect()
}

fn shown(view: &View) -> Programs {
    let divided = view.divided();
    let rows = view.programs.iter().map(|program| {
        let (cpu, ticks) = (divided.of(program), program.used.ticks());
        assert_eq!(cpu.total_ns(), program.used.run_ns);
        let figures = Figures {
            processes: Some(program.processes),
            threads: Some(program.threads),
            execs: Some(program.execs),
            cpu_ns: Some(program.used.run_ns),
            lookups_failed: Some(program.lookups_failed),
            system_percent: divided.system_percent(cpu, ticks),
        };
        let category = program.name.category.clone().unwrap_or("other".to_owned());
        ((category, program.name.name.clone()), figures)
    });
    rows.collect()
}

/// Compares all programs of a trace; returns how many figures were.
fn compare(path: &Path) -> usize {
    let (view, report) = (live(path), report(path));
    let (shown, reported) = (shown(&view), reported(&report));
    let names = |programs: &Programs| programs.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&shown), names(&reported), "{}", path.display());
    let mut compared = 0;
    for (name, reported) in &reported {
        let shown = &shown[name];
        let seen = format!("{} {name:?}: {shown:?}, in the report {reported:?}", path.display());
        for (shown, reported) in [
            (shown.processes, reported.processes),
            (shown.threads, reported.threads),
            (shown.execs, reported.execs),
            (shown.cpu_ns, reported.cpu_ns),
            (shown.lookups_failed, reported.lookups_failed),
        ] {
            // What a report does not know, it leaves out.
            if reported.is_some() {
                assert_eq!(shown, reported, "{seen}");
                compared += 1;
            }
        }
        // Neither shows a share of few ticks. Where the end of a task comes before its last sample in the
        // file, its last ticks belong to its own stretch and not to those of all; the view has whole
        // percents.
        assert_eq!(shown.system_percent.is_some(), reported.system_percent.is_some(), "{seen}");
        if let Some((shown, reported)) = shown.system_percent.zip(reported.system_percent) {
            assert!((shown - reported).abs() < 0.5, "{seen}");
            compared += 1;
        }
    }
    // None is counted for no program.
    let failed: u64 = view.programs.iter().map(|program| program.lookups_failed).sum();
    assert_eq!(failed + view.lookups_of_unborn(), view.totals.lookups_failed);
    if let Some(reported) = report["summary"]["lookups_in_vain"].as_u64() {
        assert_eq!(view.totals.lookups_failed, reported, "{}", path.display());
    }
    let cpu_ns: u64 = view.programs.iter().map(|program| program.used.run_ns).sum();
    assert_eq!(cpu_ns, view.totals.cpu_ns, "{}", path.display());
    compared
}

/// Compares the processes of a trace that are still kept at its end; returns how many there are.
fn compare_processes(path: &Path) -> usize {
    let view = live(path);
    // Of a pid that several had, it is not clear which is meant.
    let sql = "SELECT pid, count(*) AS n, sum(cpu_ns) AS cpu_ns, sum(failed_lookups) AS failed_lookups \
               FROM processes GROUP BY pid";
    let output = proctrace().args(["query", "--format", "json", sql]).arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let unique = rows.iter().filter(|row| row["n"] == 1);
    let known: BTreeMap<i64, &Value> =
        unique.map(|row| (row["pid"].as_i64().unwrap(), row)).collect();
    let mut compared = 0;
    for process in (0..SERIALS_MAX).filter_map(|serial| view.process(serial)) {
        let Some(row) = known.get(&process.pid.into()) else { continue };
        let seen = format!("{}: {row}, in the view {}", path.display(), process.title());
        assert_eq!(row["cpu_ns"].as_u64(), Some(process.used.run_ns), "{seen}");
        // Not known of a program that calls as one of 32 bits does.
        if let Some(failed) = row["failed_lookups"].as_u64() {
            assert_eq!(failed, process.lookups_failed, "{seen}");
            compared += 1;
        }
    }
    compared
}

/// Compares name, processes and CPU time of all steps of a trace; returns how many there are.
fn compare_steps(path: &Path) -> usize {
    let section = ["report", "--json", "--section", "steps"];
    let output = proctrace().args(section).arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let steps = tables.iter().find(|table| table["name"] == "steps").unwrap();
    let rows = steps["rows"].as_array().unwrap();
    let mut told: Vec<(String, u64, Option<u64>)> = rows
        .iter()
        .map(|row| {
            let name = row["step"].as_str().unwrap().to_owned();
            (name, row["processes"].as_u64().unwrap(), row["cpu_ns"].as_u64())
        })
        .collect();
    let view = live(path);
    // What a report does not know, it leaves out.
    let knows = told.iter().all(|(.., cpu_ns)| cpu_ns.is_some());
    let mut shown: Vec<(String, u64, Option<u64>)> = view
        .steps
        .iter()
        .map(|step| (step.name.clone(), step.processes, knows.then_some(step.cpu_ns)))
        .collect();
    told.sort();
    shown.sort();
    assert_eq!(shown, told, "{}", path.display());
    assert!(view.trailer.is_none() || view.steps.iter().all(|step| step.alive == 0));
    told.len()
}

#[test]
fn steps_have_the_figures_of_the_tables() {
    let compared: usize = traces().iter().map(|path| compare_steps(path)).sum();
    assert!(compared > 20, "{compared}");
}

#[test]
fn processes_have_the_figures_of_the_tables() {
    let compared: Vec<usize> = traces().iter().map(|path| compare_processes(path)).collect();
    assert!(compared.iter().sum::<usize>() > 1000, "{compared:?}");
}

#[test]
fn programs_have_the_figures_of_the_report() {
    let traces = traces();
    assert!(traces.len() >= 10);
    let compared: usize = traces.iter().map(|path| compare(path)).sum();
    assert!(compared > 1000, "{compared}");
}

#[test]
fn look_ups_of_processes_that_end_at_once_are_counted() {
    // By ptrace, user and system time are not known, and are not shown.
    for backend in ["auto", "ptrace"] {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("job.ptrace");
        let script = "i=0; while [ $i -lt 2000 ]; do cat /proctrace-missing/$i; i=$((i+1)); done \
                      2>/dev/null; true";
        let status = proctrace()
            .args(["record", "-q", "--backend", backend, "--output"])
            .arg(&trace)
            .args(["--", "sh", "-c", script])
            .status()
            .unwrap();
        assert!(status.success());
        compare(&trace);
        let view = live(&trace);
        let cat = view.programs.iter().find(|program| program.name.name == "cat").unwrap();
        assert_eq!((cat.processes, cat.alive, cat.execs), (2000, 0, 2000));
        assert!(cat.lookups_failed >= 2000, "{}", cat.lookups_failed);
        let searched = view.directories.most();
        let (_, missing) = searched.iter().find(|(path, _)| path == "/proctrace-missing").unwrap();
        assert_eq!(*missing, 2000);
    }
}
