//! Sections on CPU time, for payloads with declared ground truth.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::records::{assert_agrees, exits};
use crate::common::{Recorder, cpus, fixture, proctrace, report, u64_of};
use serde_json::Value;

/// The tables of a section, by name.
fn section(trace: &Path, name: &str) -> Value {
    let output = proctrace()
        .args(["report", "--section", name, "--format", "json"])
        .arg(trace)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tables: Value = serde_json::from_slice(&output.stdout).unwrap();
    let by_name = tables
        .as_array()
        .unwrap()
        .iter()
        .map(|table| (table["name"].as_str().unwrap().to_owned(), table.clone()));
    Value::Object(by_name.collect())
}

/// The row with this value in this column.
fn row<'a>(table: &'a Value, column: &str, value: &str) -> &'a Value {
    let rows = table["rows"].as_array().unwrap();
    rows.iter()
        .find(|row| row[column] == value)
        .unwrap_or_else(|| panic!("no {value} in {table:#}"))
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn each_directory_searched_for_libraries_costs_the_same() {
    // glibc tries the same variants in each directory; their number depends on its version.
    let lookups = |directories: usize| {
        let path: Vec<String> = (0..directories).map(|at| format!("/nowhere/{at}")).collect();
        let recorded = Recorder::new()
            .env("LD_LIBRARY_PATH", &path.join(":"))
            .fixture("spawn", &["20", "/bin/true"]);
        recorded.sound(0);
        let tables = section(&recorded.trace(), "startup");
        let start = row(&tables["startup"], "program", "true");
        assert_eq!(start["execs"], 20);
        let total = row(&tables["startup_totals"], "program", "true");
        assert_eq!(total["loading_execs"], 20);
        (u64_of(&total["loading_lookups"]), u64_of(&total["lookups"]))
    };
    let (five, ten, twenty) = (lookups(5), lookups(10), lookups(20));
    assert!(ten.0 > five.0);
    assert_eq!(twenty.0 - ten.0, 2 * (ten.0 - five.0));
    // The whole cost of the path arises during loading.
    assert_eq!(five.1 - five.0, twenty.1 - twenty.0);
}

#[test]
fn what_more_cores_would_do_is_not_judged_by_the_cores_there_were() {
    // One fifth serial, then eight processes at once, all on one CPU.
    let burn = fixture("burn").display().to_string();
    let script = format!("{burn} 400; for i in 1 2 3 4 5 6 7 8; do {burn} 200 & done; wait");
    let recorded = Recorder::new().option(["--interval", "10ms"]).run([
        "taskset",
        "--cpu-list",
        &cpus()[0],
        "/bin/sh",
        "-c",
        &script,
    ]);
    recorded.sound(0);
    let tables = section(&recorded.trace(), "concurrency");
    let rows = tables["amdahl"]["rows"].as_array().unwrap();
    let of_128 = rows.iter().find(|row| row["cores"] == 128).unwrap();
    // 4.8 on an idle machine; other load lengthens the serial part. Bins reported 1.0.
    let speedup = real(&of_128["speedup"]);
    assert!((2.0..7.0).contains(&speedup), "{tables:#}");
    let by_bins = row(&tables["serial"], "by", "CPU time of bins");
    assert_eq!(by_bins["faster"], Value::Null, "{tables:#}");
}

/// The contents of /proc/PID/stat: the parent, and user and system time in ticks, of the process
/// itself and of its reaped children.
struct Stat {
    name: String,
    ended: bool,
    parent: u32,
    own: u64,
    waited: u64,
}

fn stats() -> BTreeMap<u32, Stat> {
    let of = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // proc_pid_stat(5): the state is field 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ended = matches!(fields.first(), Some(&("Z" | "X")));
        let parent = u32::try_from(field(4)?).ok()?;
        let (own, waited) = (field(14)? + field(15)?, field(16)? + field(17)?);
        Some((pid, Stat { name: name.to_owned(), ended, parent, own, waited }))
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| of(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

/// CPU time of a tree as a once-per-second sampler of /proc reports it, in ticks.
struct Polled {
    /// As with `ps`: the last sample of each process that is still connected to the tree by its
    /// parent.
    ps: u64,
    /// As with prmon: the maximum of the total over all processes found and their reaped children.
    /// It finds those listed as children of main threads.
    prmon: u64,
    /// The longest time from one look to the next, in seconds.
    pause_s: f64,
}

/// The children of a main thread. The file requires CONFIG_PROC_CHILDREN, as prmon does.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.unwrap_or_default().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// All descendants of a process, with `children` as the parent relation.
fn tree(root: u32, children: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        tree.extend(children(parent));
        at += 1;
    }
    tree
}

/// Records and samples a command every second, the interval of both modelled tools, starting
/// immediately.
fn polled(recorder: Recorder, name: &str, command: &[&str]) -> (Value, Polled) {
    let trace = recorder.trace();
    let mut command_line = recorder.command;
    command_line.arg("--").args(command);
    let mut running = command_line.spawn().unwrap();
    let root = loop {
        let child = |(pid, stat): (u32, Stat)| {
            (stat.parent == running.id() && stat.name == name).then_some(pid)
        };
        if let Some(pid) = stats().into_iter().find_map(child) {
            break pid;
        }
        assert!(running.try_wait().unwrap().is_none(), "the recorder ended");
    };
    let (mut last, mut most, mut pause_s) = (BTreeMap::new(), 0, 1.0_f64);
    let mut looked = Instant::now();
    loop {
        let by_children = tree(root, children);
        let stats = stats();
        // A model of a sampler ends with the job. One that finds it before its recorder has reaped it sees all that
        // its children used.
        if stats.get(&root).is_none_or(|root| root.ended) {
            break;
        }
        let by_parent = tree(root, |pid| {
            stats.iter().filter(|(_, stat)| stat.parent == pid).map(|(pid, _)| *pid).collect()
        });
        last.extend(by_parent.iter().map(|pid| (*pid, stats[pid].own)));
        let found = by_children.iter().filter_map(|pid| stats.get(pid));
        most = most.max(found.map(|stat| stat.own + stat.waited).sum());
        std::thread::sleep(Duration::from_secs(1));
        pause_s = pause_s.max(looked.elapsed().as_secs_f64());
        looked = Instant::now();
    }
    assert!(running.wait().unwrap().success());
    let looks = section(&trace, "accounting")["accounting_looks"].clone();
    (looks, Polled { ps: last.values().sum(), prmon: most, pause_s })
}

/// The pause between our own looks is longer than a second by the time that it takes to read /proc and to wait for a CPU.
/// On a machine that others use that may be any time: it is measured. Less is not told from the phase of the looks.
const PAUSE_EXCESS: f64 = 0.15;
/// Error of the sum over some ten processes, each of which is read in ticks of 10 ms.
const TICKS_S: f64 = 0.1;

/// The phase of its samples is arbitrary, within the range of the computed phases. prmon would
/// print whole seconds of user and of system time.
fn assert_said(looks: &Value, polled: &Polled) {
    let tick = 0.01;
    let excess = PAUSE_EXCESS.max(polled.pause_s - 1.0);
    for (method, found, whole) in [
        ("ps-like, 1 s", polled.ps as f64 * tick, 0.0),
        ("prmon-like, -i 0", polled.prmon as f64 * tick, 2.0),
    ] {
        let row = row(looks, "method", method);
        assert_eq!(row["period_ns"], 1_000_000_000);
        let (least, most) = (real(&row["least_ns"]) / 1e9, real(&row["most_ns"]) / 1e9);
        let within = (least * (1.0 - excess) - TICKS_S)..=(most * (1.0 + excess) + TICKS_S + whole);
        assert!(
            within.contains(&found),
            "{method}: {found}, pauses of {} s, {row}",
            polled.pause_s
        );
    }
}

mod root {
    use super::*;

    #[test]
    fn a_sampler_of_main_threads_does_not_find_the_children_of_others() {
        // It counts the first child once that was waited for, and never the second. The job ends far from whole seconds,
        // at which samples are taken: one between the end of the second child and that of the job would count both.
        let program = fixture("thread_forks").display().to_string();
        let (looks, polled) = polled(Recorder::new(), "thread_forks", &[&program, "2", "3300"]);
        assert_said(&looks, &polled);
        assert!(polled.prmon < polled.ps, "{looks:#}");
        // prmon -i 1 sleeps 2 s instead of 1.
        for (method, pause_s) in [("prmon-like, -i 1", 2), ("prmon-like, -i 30", 31)] {
            assert_eq!(row(&looks, "method", method)["period_ns"], pause_s * 1_000_000_000_u64);
        }
    }

    #[test]
    fn a_sampler_of_proc_says_what_it_is_said_to_say() {
        // Its processes end 1.17, 2.67, 3.84, 5.34 and 6.5 s after the first look: never whole seconds apart, so that looks whose
        // pauses are some milliseconds longer than a second miss none together that a model with exact ones misses one by one.
        let burn = fixture("burn").display().to_string();
        let script = format!(
            "for i in 1 2; do {burn} 870 300; ({burn} 900 100 &) ; {burn} 1500 0; done; {burn} 1160 0"
        );
        let recorder = Recorder::new().option(["--grace", "120s"]);
        let (looks, polled) = polled(recorder, "sh", &["/bin/sh", "-c", &script]);
        assert_said(&looks, &polled);
    }

    #[test]
    fn only_the_recording_sees_what_a_daemon_uses() {
        let recorded =
            Recorder::new().option(["--grace", "120s"]).fixture("daemon", &["50", "1000"]);
        recorded.sound(0);
        let tables = section(&recorded.trace(), "accounting");
        let of = |method: &str| real(&row(&tables["accounting"], "method", method)["cpu_ns"]);
        // It stops when its own clock reads 1 s.
        assert!(of("exact") >= 1e9, "{tables:#}");
        // The two processes that started it only fork.
        assert!(of("exact") - of("time") >= 1e9, "{tables:#}");
        for method in ["prmon-like, -i 30", "prmon-like, -i 0"] {
            assert_eq!(of(method), 0.0, "{tables:#}");
        }
        for method in ["ps-like, 30 s", "ps-like, 1 s"] {
            assert!(of(method) < 0.1 * of("exact"), "{tables:#}");
        }
        let why = row(&tables["accounting_why"], "method", "time");
        assert_eq!(why["processes"], 1);
        let tables = section(&recorded.trace(), "detached");
        let detached = tables["detached"]["rows"].as_array().unwrap();
        assert_eq!(detached.len(), 1);
        assert_eq!(
            (&detached[0]["program"], &detached[0]["waited_for"]),
            (&"daemon".into(), &false.into())
        );
        assert!(u64_of(&detached[0]["cpu_ns"]) >= 1_000_000_000);
    }

    #[test]
    fn storms_show_the_signs_of_storms() {
        let (burn, spawn) = (fixture("burn"), fixture("spawn"));
        let script = format!(
            "for i in 1 2 3 4 5 6; do {} 400 0; {} 400 /bin/true; done",
            burn.display(),
            spawn.display()
        );
        let recorded = Recorder::new().run(["/bin/sh", "-c", &script]);
        recorded.sound(0);
        let correlations = &report(&recorded.trace())["correlations"];
        let names: Vec<&str> = correlations["series"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        let at = |name: &str| names.iter().position(|series| *series == name).unwrap();
        // Names that consumers of the JSON rely on.
        for name in ["system CPU", "user CPU", "forks", "switches", "running", "read", "write"] {
            let _ = at(name);
        }
        for (a, b) in [
            ("system CPU", "forks"),
            ("switches", "forks"),
            ("switches", "system CPU"),
            ("voluntary", "forks"),
            ("forks", "execs"),
            ("execs", "exits"),
        ] {
            let low = &correlations["r_low"][at(a)][at(b)];
            assert!(real(low) > 0.0, "{a} {b}: {low}");
        }
        let tables = section(&recorded.trace(), "correlations");
        let signs = tables["correlation_signs"]["rows"].as_array().unwrap();
        let found =
            signs.iter().find(|row| row["series"] == "system CPU" && row["other"] == "forks");
        assert_eq!(found.unwrap()["here"], "same");
    }

    #[test]
    fn what_is_said_and_what_is_missed_add_up() {
        let recorded = Recorder::new().fixture("spawn", &["1500", "/bin/true"]);
        recorded.sound(0);
        let tables = section(&recorded.trace(), "accounting");
        let of = |method: &str| real(&row(&tables["accounting"], "method", method)["cpu_ns"]);
        // All processes are waited for, so time(1) is correct, except for what wait4(2) may not see.
        assert_agrees(&recorded.trace(), |_| true, of("time") as u64);
        let run_ns: u64 = exits(&recorded.trace()).iter().map(|exit| exit.run_ns).sum();
        assert_eq!(of("exact"), run_ns as f64);
        // A sampler that samples at the start of the command, and then after half a minute, sees
        // nothing.
        let looks = row(&tables["accounting_looks"], "method", "prmon-like, -i 30");
        assert_eq!(looks["launched_ns"], 0.0);
        for row in tables["accounting"]["rows"].as_array().unwrap() {
            let missed: f64 = tables["accounting_why"]["rows"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|why| why["method"] == row["method"])
                .map(|why| real(&why["cpu_ns"]))
                .sum();
            assert!((missed - real(&row["missing_ns"])).abs() < 10_000.0, "{row} {missed}");
        }

        let startup = section(&recorded.trace(), "startup");
        assert_eq!(row(&startup["startup"], "program", "true")["execs"], 1500);
        let switches = section(&recorded.trace(), "switches");
        assert_eq!(row(&switches["switches_programs"], "program", "true")["processes"], 1500);

        // The totals of the states are the kernel's own.
        let summary = &report(&recorded.trace())["summary"];
        let states = &section(&recorded.trace(), "concurrency")["task_states"];
        let time = |state: &str| real(&row(states, "state", state)["time_ns"]);
        assert_eq!(time("running"), real(&summary["cpu_ns"]));
        assert_eq!(time("runnable"), real(&summary["run_delay_ns"]));
    }
}
