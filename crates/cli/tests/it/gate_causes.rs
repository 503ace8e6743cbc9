//! The gate on real regressions: one finding for each cause, which names the program, with the advice
//! about it; and limits of CPU time that good runs keep and a program that computes more does not.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common::{fixture, proctrace, text};
use serde_json::Value;
use tempfile::TempDir;

#[track_caller]
fn assert_code(output: &Output, code: i32) {
    let says = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = says(&output.stdout) + &says(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{all}");
}

/// A job in a directory of its own.
struct Job {
    directory: TempDir,
}

impl Job {
    /// A shell script, which finds its parameter in $N.
    fn of(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("job.sh");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        fs::set_permissions(&path, permissions).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn record(&self, name: &str, n: u32) -> PathBuf {
        let trace = self.path(name);
        let output = proctrace()
            .env("N", n.to_string())
            .args(["record", "--quiet", "--output"])
            .arg(&trace)
            .arg("--")
            .arg(self.path("job.sh"))
            .output()
            .unwrap();
        assert_code(&output, 0);
        trace
    }

    fn gate(&self) -> Command {
        let mut command = proctrace();
        command.current_dir(self.directory.path()).arg("gate");
        command
    }

    /// A budget of these recordings, as gate.toml.
    fn init(&self, traces: &[PathBuf]) -> String {
        let output = self.gate().arg("init").args(traces).output().unwrap();
        assert_code(&output, 0);
        fs::write(self.path("gate.toml"), &output.stdout).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// The report of a regression, as text and as JSON.
    fn fails(&self, arguments: &[&str], candidates: &[PathBuf]) -> (String, Value) {
        let output = self
            .gate()
            .args(["--json", "report.json", "--annotations", "always"])
            .args(arguments)
            .args(candidates)
            .output()
            .unwrap();
        assert_code(&output, 3);
        let json = fs::read_to_string(self.path("report.json")).unwrap();
        (String::from_utf8(output.stdout).unwrap(), serde_json::from_str(&json).unwrap())
    }
}

/// Every finding is in one group; the texts of the causes.
fn causes(report: &Value) -> Vec<String> {
    let groups = report["groups"].as_array().unwrap();
    let mut grouped: Vec<u64> = groups
        .iter()
        .flat_map(|group| group["findings"].as_array().unwrap())
        .map(|at| at.as_u64().unwrap())
        .collect();
    grouped.sort_unstable();
    let all = report["findings"].as_array().unwrap().len() as u64;
    assert_eq!(grouped, (0..all).collect::<Vec<_>>());
    groups.iter().map(|group| text(&group["cause"]["text"]).to_owned()).collect()
}

/// Twelve steps, which start sed N times each, in a subshell.
fn steps() -> Job {
    Job::of(
        "for step in 1 2 3 4 5 6 7 8 9 10 11 12; do\n\
             n=0\n\
             while [ $n -lt \"$N\" ]; do x=$(echo step | sed s/s/S/); n=$((n+1)); done\n\
         done",
    )
}

const COUNTS: [&str; 6] = [
    "total_processes=0%",
    "total_execs=0%",
    "total_commands=0%",
    "execs{command=\"*\"}=0%",
    "command_processes{command=\"*\"}=0%",
    "spawns{parent=\"*\",child=\"*\"}=0%",
];

#[test]
fn one_more_sed_per_step_is_one_finding() {
    let job = steps();
    let (before, after) = (job.record("before.ptrace", 1), job.record("after.ptrace", 2));
    let mut arguments = vec!["--baseline", before.to_str().unwrap()];
    arguments.extend(COUNTS.iter().flat_map(|limit| ["--limit", limit]));
    let (text, report) = job.fails(&arguments, &[after]);
    // The script, and twice twelve subshells and twelve times sed.
    assert_eq!(causes(&report), ["+12 sed, started by job.sh: 37 -> 73 processes"], "{text}");
    assert!(report["findings"].as_array().unwrap().len() >= 8, "{text}");
    assert!(text.starts_with("Regression: 1 failure ("), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("::error ")).count(), 1, "{text}");
    assert_eq!(text.matches("PT001 failure: +12 sed, started by job.sh").count(), 1, "{text}");
    let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with("::")).collect();
    assert!(plain.iter().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_first_budget_alone_finds_the_same_cause() {
    let job = steps();
    let before = job.record("before.ptrace", 1);
    job.init(&[before]);
    let (text, report) = job.fails(&[], &[job.record("after.ptrace", 2)]);
    assert_eq!(
        causes(&report),
        ["12 sed too many, started by job.sh: 73 processes, at most 37"],
        "{text}"
    );
}

#[test]
fn advice_is_that_of_advise() {
    let job = steps();
    let (before, after) = (job.record("before.ptrace", 1), job.record("after.ptrace", 9));
    let baseline = ["--limit", "execs{command=\"sed\"}=0%", "--baseline", before.to_str().unwrap()];
    let (text, report) = job.fails(&baseline, std::slice::from_ref(&after));
    let output = proctrace().args(["advise", "--json"]).arg(&after).output().unwrap();
    assert_code(&output, 0);
    let advised: Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_about_sed =
        |advice: &&Value| advice["commands"].as_array().unwrap().iter().any(|one| *one == "sed");
    let wanted: Vec<&Value> =
        advised["advice"].as_array().unwrap().iter().filter(is_about_sed).collect();
    assert!(wanted.iter().any(|advice| advice["kind"] == "short-commands"), "{advised:#}");
    let found = report["groups"][0]["advice"].as_array().unwrap();
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        // Only `advise` looks at scripts.
        let keys = wanted.as_object().unwrap().iter().filter(|(key, _)| *key != "place");
        for (key, value) in keys {
            assert_eq!(&found[key], value, "{key}");
        }
        assert!(text.contains(found["kind"].as_str().unwrap()), "{text}");
        // The same line as `proctrace advise` prints.
        let output = proctrace().arg("advise").arg(&after).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(
            printed.contains(&format!("CPU     {}", found["cpu"].as_str().unwrap())),
            "{printed}"
        );
    }
    // Figures alone have no advice.
    let output = proctrace().args(["metrics", "--format", "json"]).arg(&after).output().unwrap();
    fs::write(job.path("after.json"), output.stdout).unwrap();
    let (_, report) = job.fails(&baseline, &[job.path("after.json")]);
    assert_eq!(report["groups"][0]["advice"].as_array().unwrap().len(), 0);
}

#[test]
fn a_doubled_pool_names_its_program() {
    let threads = fixture("threads");
    let job = Job::of(&format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do {} $N; done; {} 3",
        threads.display(),
        fixture("thread_forks").display()
    ));
    let (before, after) = (job.record("before.ptrace", 8), job.record("after.ptrace", 16));
    let limits = ["--limit", "total_threads=0%", "--limit", "command_threads{command=\"*\"}=0%"];
    let after = [after];
    let baseline = ["--baseline", before.to_str().unwrap()];
    let (text, report) = job.fails(&[&limits[..], &baseline].concat(), &after);
    let cause = "program threads: threads per process 8 -> 16 (80 -> 160 threads)";
    assert_eq!(causes(&report), [cause], "{text}");
    assert!(text.contains("total_threads"), "{text}");
    // By the total alone as well, and with the limits of a first budget.
    let (text, report) = job.fails(&[&limits[..2], &baseline].concat(), &after);
    assert_eq!(causes(&report), [cause], "{text}");
    job.init(&[before]);
    let (text, report) = job.fails(&[], &after);
    let cause = "program threads: threads per process 16 (160 threads, at most 80)";
    assert_eq!(causes(&report), [cause], "{text}");
}

/// N milliseconds of computing in one program, among other commands.
fn computing() -> Job {
    Job::of(&format!(
        "{} $N\nfor i in 1 2 3 4 5 6 7 8 9 10; do sed -n p /dev/null; echo x | grep -q x; done",
        fixture("burn").display()
    ))
}

#[test]
fn good_runs_keep_the_limits_of_good_runs_and_a_tenth_of_a_second_does_not() {
    let job = computing();
    let good: Vec<PathBuf> =
        (1..=5).map(|run| job.record(&format!("good{run}.ptrace"), 300)).collect();
    let budget = job.init(&good);
    assert!(budget.contains("the spread of 5 recordings"), "{budget}");
    assert!(budget.contains("'command_cpu_seconds{command=\"burn\"}'"), "{budget}");
    let again: Vec<PathBuf> =
        (1..=10).map(|run| job.record(&format!("again{run}.ptrace"), 300)).collect();
    for runs in again.chunks(1).chain(again.chunks(3)).chain([&again[..]]) {
        let output = job.gate().args(runs).output().unwrap();
        let says = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{runs:?}\n{says}\n{budget}");
    }
    let more: Vec<PathBuf> =
        (1..=3).map(|run| job.record(&format!("more{run}.ptrace"), 400)).collect();
    let (text, report) = job.fails(&[], &more);
    let causes = causes(&report);
    assert_eq!(causes.len(), 1, "{text}");
    assert!(causes[0].starts_with("program burn: CPU time 40"), "{text}");
    // The limit of the whole job is not exceeded.
    let metrics: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| crate::common::text(&one["metric"]))
        .collect();
    assert_eq!(metrics, ["command_cpu_seconds{command=\"burn\"}"]);
    // A single run is not enough to fail, but it is reported.
    let output = job.gate().arg(&more[0]).output().unwrap();
    assert_code(&output, 0);
    let says = String::from_utf8(output.stdout).unwrap();
    assert!(says.contains("PT005 warning") && says.contains("1 run is too few"), "{says}");
}

#[test]
fn limits_of_a_single_recording_say_so() {
    let job = computing();
    let budget = job.init(&[job.record("good.ptrace", 300)]);
    assert!(budget.contains("A single recording does not show how it varies"), "{budget}");
    // 1.5 times 300 ms and 100 ms.
    let line = budget.lines().find(|line| line.contains("command=\"burn\"}' = { absolute = 0.5"));
    assert!(line.is_some_and(|line| line.contains("# recorded: 30")), "{budget}");
    let runs = |n: u32| [1, 2, 3].map(|run| job.record(&format!("{n}-{run}.ptrace"), n));
    let output = job.gate().args(runs(400)).output().unwrap();
    assert_code(&output, 0);
    let (_, report) = job.fails(&[], &runs(700));
    assert!(causes(&report)[0].starts_with("program burn: CPU time 70"), "{report:#}");
}
