//! Recording without privileges, by whoever runs the tests: declared numbers, and CPU time as wait4(2) has it.

use std::collections::BTreeMap;

use crate::common::report;
use crate::common::{Events, Recorded, Recorder, header, u64_of};

fn record(options: &[&str], name: &str, arguments: &[&str]) -> Recorded {
    Recorder::new().option(["--backend", "ptrace"]).option(options).fixture(name, arguments)
}

/// The events of a recording, whose counts agree with each other.
fn events(recorded: &Recorded, code: i32) -> Events {
    recorded.sound(code)
}

#[test]
fn processes_and_threads_are_counted() {
    let spawned = events(&record(&["--misses", "none"], "spawn", &["300", "/bin/true", "3"]), 0);
    assert_eq!((spawned.forks(false).len(), spawned.count("exit")), (300, 301));
    assert_eq!(spawned.count("exec"), 301);
    let threads = events(&record(&["--misses", "none"], "threads", &["200"]), 0);
    assert_eq!((threads.forks(true).len(), threads.forks(false).len()), (200, 0));
    let detached = events(&record(&[], "daemon", &["50", "10"]), 0);
    assert_eq!(detached.count("exit"), detached.count("fork") + 1);
}

#[test]
fn failed_lookups_are_counted_by_error() {
    let events = events(&record(&["--misses", "open"], "misses", &["100"]), 0);
    let mut errors: BTreeMap<u64, usize> = BTreeMap::new();
    for miss in events.kind("lookup_failed") {
        *errors.entry(u64_of(&miss["errno"])).or_default() += 1;
    }
    let enoent = events
        .kind("lookup_failed")
        // A path that is not in memory is null.
        .filter(|miss| miss["path"].as_str().is_some_and(|path| path.starts_with("/no/such/dir-")))
        .count();
    assert_eq!(enoent, 100);
    // ENOTDIR, ELOOP and EFAULT.
    for errno in [20, 40, 14] {
        assert_eq!(errors.get(&errno), Some(&1), "{errors:?}");
    }
}

#[test]
fn cpu_time_is_that_of_wait4() {
    let recorded = record(&["--misses", "none"], "spawn", &["1000", "/bin/true"]);
    let events = events(&recorded, 0);
    let run_ns: u64 = events.kind("exit").map(|exit| u64_of(&exit["run_ns"])).sum();
    let payload = &header(&recorded.trace())["trailer"]["payload"];
    let kernel_ns = u64_of(&payload["user_ns"]) + u64_of(&payload["system_ns"]);
    let ratio = run_ns as f64 / kernel_ns as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{run_ns} of {kernel_ns} ns: {ratio}");
}

#[test]
fn how_it_ended_is_passed_on() {
    let recorded = Recorder::new().option(["--backend", "ptrace"]).run([
        "sh",
        "-c",
        "sh -c 'kill -9 $$'; exit 7",
    ]);
    let events = events(&recorded, 7);
    let killed = events.kind("exit").filter(|exit| exit["signal"] == 9).count();
    assert_eq!(killed, 1);
}

#[test]
fn a_report_says_what_is_not_known() {
    let recorded = record(&["--misses", "none"], "burn", &["50", "0"]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let findings = report(&recorded.trace());
    let summary = &findings["summary"];
    assert!(u64_of(&summary["cpu_ns"]) >= 50_000_000, "{summary}");
    for unknown in ["user_ns", "system_ns", "switches_voluntary"] {
        assert!(summary[unknown].is_null(), "{unknown}: {}", summary[unknown]);
    }
}
