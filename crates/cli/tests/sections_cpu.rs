//! Sections on CPU time, of recordings whose truth is declared by what was run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{Recorder, fixture, proctrace, report, u64_of};
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

/// The row whose column says so.
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
fn only_the_recording_sees_what_a_daemon_uses() {
    let recorded = Recorder::new().option(["--grace", "120s"]).fixture("daemon", &["50", "1000"]);
    recorded.sound(0);
    let tables = section(&recorded.trace(), "accounting");
    let of = |method: &str| real(&row(&tables["accounting"], "method", method)["cpu_ns"]);
    // It stops when its own clock says 1 s.
    assert!(of("exact") >= 1e9, "{tables:#}");
    // The two that made it do nothing but fork.
    assert!(of("exact") - of("time") >= 1e9, "{tables:#}");
    for method in ["prmon-like, 30 s", "prmon-like, 1 s"] {
        assert_eq!(of(method), 0.0, "{tables:#}");
    }
    for method in ["ps-like, 30 s", "ps-like, 1 s"] {
        assert!(of(method) < 0.1 * of("exact"), "{tables:#}");
    }
    let why = row(&tables["accounting_why"], "method", "time");
    assert_eq!(why["processes"], 1);
    let detached = tables["accounting_detached"]["rows"].as_array().unwrap();
    assert_eq!(detached.len(), 1);
    assert_eq!(
        (&detached[0]["program"], &detached[0]["waited_for"]),
        (&"daemon".into(), &false.into())
    );
    assert!(u64_of(&detached[0]["cpu_ns"]) >= 1_000_000_000);
}

#[test]
fn what_is_missed_is_told_to_the_last_nanosecond() {
    let recorded = Recorder::new().fixture("spawn", &["1500", "/bin/true"]);
    recorded.sound(0);
    let tables = section(&recorded.trace(), "accounting");
    let of = |method: &str| real(&row(&tables["accounting"], "method", method)["cpu_ns"]);
    // All are waited for, so that time(1) is right but for wait4's own rounding.
    assert!((of("exact") - of("time")).abs() < 1e6 + 1e-3 * of("exact"), "{tables:#}");
    // A sampler that looks when the command begins, and then in half a minute, sees nothing.
    let looks = row(&tables["accounting_looks"], "method", "prmon-like, 30 s");
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

    // The states are the kernel's own sums.
    let summary = &report(&recorded.trace())["summary"];
    let states = &section(&recorded.trace(), "concurrency")["task_states"];
    let time = |state: &str| real(&row(states, "state", state)["time_ns"]);
    assert_eq!(time("running"), real(&summary["cpu_ns"]));
    assert_eq!(time("runnable"), real(&summary["run_delay_ns"]));
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
    // Names that readers of the JSON rely on.
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
    let found = signs.iter().find(|row| row["series"] == "system CPU" && row["other"] == "forks");
    assert_eq!(found.unwrap()["here"], "as there");
}

#[test]
fn each_directory_searched_for_libraries_costs_the_same() {
    // glibc asks each directory for the same variants; how many these are is its own business.
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
    // All that the path costs is paid while loading.
    assert_eq!(five.1 - five.0, twenty.1 - twenty.0);
}
