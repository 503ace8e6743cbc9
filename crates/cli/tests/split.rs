//! User and system time compared with references that do not share our sources of error: samples of
//! an hrtimer (perf), the cgroup's cpu.stat and /proc/stat. wait4(2) is not a valid reference here:
//! it shares the kernel's bias for short processes.
//!
//! The split by ticks is an estimate, so a reference must lie within three points of our 95 %
//! interval.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "the figures side by side are what it is about")]

mod common;

use std::process::Command;
use std::sync::Mutex;

use common::{Recorded, Recorder, fixture, header, proctrace, report, u64_of};
use serde_json::Value;

/// /proc/stat covers the whole machine, and ticks are more accurate with less concurrent load.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const POINTS: f64 = 3.0;

/// The estimate for a recording: lower bound, estimate and upper bound, in percent.
struct Ours {
    low: f64,
    middle: f64,
    high: f64,
}

impl Ours {
    fn of(recorded: &Recorded) -> Self {
        let summary = report(&recorded.trace())["summary"].clone();
        let number = |name: &str| summary[name].as_f64().unwrap();
        assert_eq!(number("cpu_ns"), number("user_ns") + number("system_ns"));
        let middle = 100.0 * number("system_ns") / number("cpu_ns");
        Self { low: number("system_low_percent"), middle, high: number("system_high_percent") }
    }

    fn agrees_with(&self, name: &str, truth: f64) {
        let Self { low, middle, high } = *self;
        eprintln!("ours {middle:.1} % system ({low:.1} to {high:.1}), {name} {truth:.1} %");
        assert!((low - POINTS..=high + POINTS).contains(&truth), "{name}: {truth} not {middle}");
    }
}

/// The system share of the kernel's accounting for the recording's cgroup.
fn cpu_stat(recorded: &Recorded) -> f64 {
    let cgroup = header(&recorded.trace())["trailer"]["cgroup"].clone();
    100.0 * u64_of(&cgroup["system_ns"]) as f64 / u64_of(&cgroup["usage_ns"]) as f64
}

/// The system share by wait4(2).
fn wait4(recorded: &Recorded) -> f64 {
    let usage = header(&recorded.trace())["trailer"]["payload"].clone();
    let (user, system) = (u64_of(&usage["user_ns"]) as f64, u64_of(&usage["system_ns"]) as f64);
    100.0 * system / (user + system)
}

/// User and system ticks of the whole machine: user, nice and system of proc_stat(5).
fn machine() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .skip(1)
        .map(|n| n.parse().unwrap())
        .collect();
    (fields[0] + fields[1], fields[2] + fields[5] + fields[6])
}

/// Records a payload in a cgroup of its own, sampled by perf at 2 kHz. Returns the fraction of
/// perf's samples of these programs that are in the kernel.
fn record_under_perf(programs: &[&str], payload: &[&str]) -> (Recorded, f64) {
    let directory = tempfile::tempdir().unwrap();
    let samples = directory.path().join("perf.data");
    let recorder = Recorder::new().option(["--own-cgroup"]);
    let mut command = Command::new("perf");
    // System-wide: a per-task event restarts its period with each task, and so never samples the
    // start of a short process.
    command.args(["record", "--quiet", "-a", "-e", "cpu-clock", "-F", "1999", "-o"]).arg(&samples);
    command.arg("--").arg(recorder.command.get_program()).args(recorder.command.get_args());
    command.arg("--").args(payload).current_dir(recorder.directory.path());
    command.env_remove("LD_LIBRARY_PATH");
    let output = command.output().expect("perf is there: `cargo xtask test` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = Command::new("perf")
        .args(["script", "-F", "comm,ip", "-G", "-i"])
        .arg(&samples)
        .output()
        .unwrap();
    let (mut user, mut system) = (0_u32, 0_u32);
    for line in String::from_utf8(script.stdout).unwrap().lines() {
        let Some((comm, address)) = line.trim().rsplit_once(' ') else { continue };
        if !programs.contains(&comm.trim()) {
            continue;
        }
        // Kernel addresses are in the upper half.
        match u64::from_str_radix(address, 16).unwrap() >> 63 {
            0 => user += 1,
            _ => system += 1,
        }
    }
    assert!(user + system > 1_000, "{user} {system}");
    let share = 100.0 * f64::from(system) / f64::from(user + system);
    (Recorded { directory: recorder.directory, output }, share)
}

#[test]
fn short_processes_are_divided_as_they_are() {
    let _turn = ONE_AT_A_TIME.lock();
    let spawn = fixture("spawn").display().to_string();
    let (recorded, perf) = record_under_perf(&["spawn", "true"], &[&spawn, "3000", "/bin/true"]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf);
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));
    // The kernel's per-process values are far off, and this is reported.
    let told = wait4(&recorded);
    assert!(ours.middle - told > 15.0, "wait4 says {told}, {} is true", ours.middle);
    let said = proctrace()
        .args(["report", "--section", "accounting"])
        .arg(recorded.trace())
        .output()
        .unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("cputime_adjust") && text.contains(&format!("time reports {told:.1} %")));
}

#[test]
fn the_machine_agrees() {
    let _turn = ONE_AT_A_TIME.lock();
    let before = machine();
    let recorded = Recorder::new().fixture("spawn", &["3000", "/bin/true"]);
    let after = machine();
    let (user, system) = (after.0 - before.0, after.1 - before.1);
    // It includes the recorder, and any other load.
    Ours::of(&recorded).agrees_with("/proc/stat", 100.0 * system / (user + system));
}

#[test]
fn two_spawners_and_a_long_neighbour_are_divided_as_they_are() {
    let _turn = ONE_AT_A_TIME.lock();
    let (spawn, burn) = (fixture("spawn").display().to_string(), fixture("burn"));
    let script = format!("{spawn} 1500 /bin/true & {spawn} 1500 /bin/true & wait");
    let (recorded, perf) = record_under_perf(&["spawn", "true", "sh"], &["sh", "-c", &script]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf);
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));

    let script = format!("{} 1500 0 & {spawn} 2000 /bin/true & wait", burn.display());
    let (recorded, perf) =
        record_under_perf(&["spawn", "true", "sh", "burn"], &["sh", "-c", &script]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf);
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));
    // Separately: burning is nearly all user time, spawning is not.
    let findings = report(&recorded.trace());
    let of = |name: &str| {
        let rows = findings["categories"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["system_percent"].as_f64().unwrap()
    };
    assert!(of("burn") < 12.0, "{}", of("burn"));
    assert!(of("true") > 35.0, "{}", of("true"));
    let parts = findings["categories"].as_array().unwrap();
    let sum = |name: &str| parts.iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
    assert_eq!(Value::from(sum("system_ns")), findings["summary"]["system_ns"]);
    assert_eq!(Value::from(sum("user_ns")), findings["summary"]["user_ns"]);
}

#[test]
fn threads_are_divided_as_they_are() {
    let _turn = ONE_AT_A_TIME.lock();
    let threads = fixture("threads").display().to_string();
    let (recorded, perf) = record_under_perf(&["threads"], &[&threads, "40000"]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf);
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));
}

#[test]
fn few_ticks_are_no_answer() {
    let _turn = ONE_AT_A_TIME.lock();
    let recorded = Recorder::new().run(["true"]);
    recorded.sound(0);
    let findings = report(&recorded.trace());
    let summary = &findings["summary"];
    assert!(u64_of(&summary["cpu_ns"]) > 0);
    assert!(summary["user_ns"].is_null() && summary["system_ns"].is_null(), "{summary}");
    let known = findings["known"].as_array().unwrap();
    let split = known.iter().find(|known| known["quantity"] == "split").unwrap();
    assert_eq!(split["state"], "absent", "{split}");
    let metrics = proctrace().args(["metrics", "--format", "json"]).arg(recorded.trace()).output();
    let metrics: Value = serde_json::from_slice(&metrics.unwrap().stdout).unwrap();
    let named = |list: &str, name: &str| {
        metrics[list].as_array().unwrap().iter().any(|metric| metric["name"] == name)
    };
    assert!(!named("metrics", "total_cpu_system_seconds"));
    assert!(named("unknown", "total_cpu_system_seconds"));
    assert!(named("metrics", "total_cpu_seconds"));
}
