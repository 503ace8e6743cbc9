//! User and system time compared with references that do not share our sources of error: samples of
//! an hrtimer (perf), the cgroup's cpu.stat and /proc/stat. wait4(2) is not a valid reference here:
//! it shares the kernel's bias for short processes.
//!
//! The split by ticks is an estimate, so a reference must lie within three points of our 95 %
//! interval. /proc/stat covers the whole machine, and ticks are more accurate with less concurrent load.

#![expect(clippy::print_stderr, reason = "the figures side by side are what it is about")]

use std::collections::HashMap;
use std::process::Command;

use crate::common::records::exits;
use crate::common::{Recorded, Recorder, fixture, header, proctrace, report, u64_of};
use proctrace_wire::layout::Exit;
use serde_json::Value;

const POINTS: f64 = 3.0;

/// Ticks and samples are drawn by chance, and from a virtual CPU that its host takes away both lack a part, not the same
/// one: what is wrong by more than that is wrong each time.
fn in_one_of_three(test: fn()) {
    for _ in 1..3 {
        if std::panic::catch_unwind(test).is_ok() {
            return;
        }
    }
    test();
}

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

/// The same, worked out from the ticks of each process by the rule of the kernel's `cputime_adjust()`
/// (kernel/sched/cputime.c).
fn adjusted(recorded: &Recorded) -> f64 {
    let exits = exits(&recorded.trace());
    let system = |exit: &Exit| match (exit.utime_ns, exit.stime_ns) {
        (_, 0) => 0.0,
        (user, system) => exit.run_ns as f64 * system as f64 / (user + system) as f64,
    };
    let run_ns: u64 = exits.iter().map(|exit| exit.run_ns).sum();
    100.0 * exits.iter().map(system).sum::<f64>() / run_ns as f64
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
fn record_under_perf(programs: &[&str], payload: &[&str]) -> (Recorded, Perf) {
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
    let mut perf = Perf::default();
    for line in String::from_utf8(script.stdout).unwrap().lines() {
        let Some((comm, address)) = line.trim().rsplit_once(' ') else { continue };
        if !programs.contains(&comm.trim()) {
            continue;
        }
        let (user, system) = perf.0.entry(comm.trim().to_owned()).or_default();
        // Kernel addresses are in the upper half.
        match u64::from_str_radix(address, 16).unwrap() >> 63 {
            0 => *user += 1,
            _ => *system += 1,
        }
    }
    let samples: u32 = perf.0.values().map(|(user, system)| user + system).sum();
    assert!(samples > 1_000, "{samples}");
    (Recorded { directory: recorder.directory, output }, perf)
}

/// Samples in user and kernel mode, by the name of the program.
#[derive(Default)]
struct Perf(HashMap<String, (u32, u32)>);

impl Perf {
    /// The system share of the programs that are wanted, in percent.
    fn share(&self, wanted: impl Fn(&str) -> bool) -> f64 {
        let of = self.0.iter().filter(|(name, _)| wanted(name));
        let (user, system) =
            of.fold((0, 0), |sum, (_, (user, system))| (sum.0 + user, sum.1 + system));
        100.0 * f64::from(system) / f64::from(user + system)
    }

    fn all(&self) -> f64 {
        self.share(|_| true)
    }
}

#[test]
fn short_processes_are_divided_as_they_are() {
    in_one_of_three(short_processes);
}

fn short_processes() {
    let spawn = fixture("spawn").display().to_string();
    let (recorded, perf) = record_under_perf(&["spawn", "true"], &[&spawn, "3000", "/bin/true"]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf.all());
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));
    // The kernel's per-process values are farther off, and this is reported with the reason: that all CPU time of a
    // process is taken to be like the ticks that hit it, or user time if none did.
    let told = wait4(&recorded);
    let (ours_off, told_off) = ((perf.all() - ours.middle).abs(), (perf.all() - told).abs());
    eprintln!("wait4 {told:.1} %, by cputime_adjust {:.1} %", adjusted(&recorded));
    assert!(told_off > ours_off, "wait4 says {told}, perf {}", perf.all());
    assert!((adjusted(&recorded) - told).abs() < 2.0, "{} {told}", adjusted(&recorded));
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
    in_one_of_three(the_machine);
}

/// Part of the machine's time that is always used by others, the recorder for one.
const LITTLE: f64 = 0.15;

fn the_machine() {
    // It includes the recorder, and whatever else the machine does: as little as possible.
    let other = (0..4).map(|_| {
        let before = machine();
        let recorded = Recorder::new().fixture("spawn", &["3000", "/bin/true"]);
        let after = machine();
        let (user, system) = (after.0 - before.0, after.1 - before.1);
        let cpu_ns = u64_of(&report(&recorded.trace())["summary"]["cpu_ns"]);
        // Ticks of proc_stat(5) are hundredths of a second.
        let other = 1.0 - cpu_ns as f64 / 1e7 / (user + system);
        (other, recorded, 100.0 * system / (user + system))
    });
    let (other, recorded, truth) =
        other.min_by(|(one, ..), (another, ..)| one.total_cmp(another)).unwrap();
    eprintln!("{:.1} % of the machine's CPU time is that of others", 100.0 * other);
    let ours = Ours::of(&recorded);
    if other < LITTLE {
        return ours.agrees_with("/proc/stat", truth);
    }
    // What others do may be all user time, or all system time.
    let Ours { low, high, middle } = ours;
    let own = 1.0 - other;
    let range = own * (low - POINTS)..=own * (high + POINTS) + 100.0 * other;
    assert!(range.contains(&truth), "/proc/stat: {truth} not {middle} in {range:?}");
}

#[test]
fn two_spawners_and_a_long_neighbour_are_divided_as_they_are() {
    in_one_of_three(two_spawners_and_a_long_neighbour);
}

fn two_spawners_and_a_long_neighbour() {
    let (spawn, burn) = (fixture("spawn").display().to_string(), fixture("burn"));
    let script = format!("{spawn} 1500 /bin/true & {spawn} 1500 /bin/true & wait");
    let (recorded, perf) = record_under_perf(&["spawn", "true", "sh"], &["sh", "-c", &script]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf.all());
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));

    let script = format!("{} 1500 0 & {spawn} 2000 /bin/true & wait", burn.display());
    let (recorded, perf) =
        record_under_perf(&["spawn", "true", "sh", "burn"], &["sh", "-c", &script]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf.all());
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));
    // Separately: burning is nearly all user time, spawning is not.
    let findings = report(&recorded.trace());
    let of = |name: &str| {
        let rows = findings["categories"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["system_percent"].as_f64().unwrap()
    };
    let burning = perf.share(|name| name == "burn");
    eprintln!("burn: ours {:.1} % system, perf {burning:.1} %", of("burn"));
    assert!((of("burn") - burning).abs() < 6.0, "{} {burning}", of("burn"));
    // A process has the name of its spawner until it calls exec. How much of a start the kernel takes depends on the
    // machine: 21 % on an Intel Xeon, 60 % on an AMD EPYC.
    let rows = findings["categories"].as_array().unwrap();
    let rows = rows.iter().filter(|row| row["name"] != "burn");
    let [user, system] = ["user_ns", "system_ns"]
        .map(|name| rows.clone().filter_map(|row| row[name].as_u64()).sum::<u64>() as f64);
    let (starting, truth) = (100.0 * system / (user + system), perf.share(|name| name != "burn"));
    eprintln!("spawning: ours {starting:.1} % system, perf {truth:.1} %");
    assert!((starting - truth).abs() < 10.0, "{starting} {truth}");
    assert!(truth < burning + 6.0 || of("true") > of("burn"), "{} {}", of("true"), of("burn"));
    let parts = findings["categories"].as_array().unwrap();
    let sum = |name: &str| parts.iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
    assert_eq!(Value::from(sum("system_ns")), findings["summary"]["system_ns"]);
    assert_eq!(Value::from(sum("user_ns")), findings["summary"]["user_ns"]);
}

#[test]
fn threads_are_divided_as_they_are() {
    in_one_of_three(threads);
}

fn threads() {
    let threads = fixture("threads").display().to_string();
    let (recorded, perf) = record_under_perf(&["threads"], &[&threads, "40000"]);
    let ours = Ours::of(&recorded);
    ours.agrees_with("perf", perf.all());
    ours.agrees_with("cpu.stat", cpu_stat(&recorded));
}

#[test]
fn few_ticks_are_no_answer() {
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
