//! Failed look-ups by every call, and those that cannot be observed.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Events, Recorder, report, text, u64_of};
use serde_json::Value;

/// Calls that every architecture has, and those only on older ones.
const CALLS: &[&str] =
    &["openat", "openat2", "newfstatat", "statx", "faccessat", "faccessat2", "readlinkat", "chdir"];
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[&str] = &["open", "stat", "lstat", "access", "readlink"];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[&str] = &[];

/// Number of failures of each call on the fixture's paths.
fn by_call(events: &Events) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for miss in events.kind("lookup_failed").chain(events.kind("exec_failed")) {
        if miss["path"].as_str().is_some_and(|path| path.starts_with("/no/such/place/")) {
            assert_eq!(miss["errno"], 2, "{miss}");
            *calls.entry(text(&miss["call"]).to_owned()).or_default() += 1;
        }
    }
    calls
}

fn all_of(calls: &[&[&str]], count: usize) -> BTreeMap<String, usize> {
    calls.iter().copied().flatten().map(|call| ((*call).to_owned(), count)).collect()
}

#[test]
fn every_call_is_told_with_path_and_errno() {
    let recorded = Recorder::new().fixture("lookups", &["25"]);
    let events = recorded.sound(0);
    assert_eq!(by_call(&events), all_of(&[CALLS, OLD_CALLS, &["execve", "execveat"]], 25));
    let find = |call: &str| -> &Value {
        events
            .kind("lookup_failed")
            .find(|miss| miss["call"] == call && miss["path"] == "/no/such/place/3")
            .unwrap()
    };
    assert_eq!(find("newfstatat")["flags"], 0x100); // AT_SYMLINK_NOFOLLOW
    assert_eq!(find("faccessat2")["dirfd"], -100); // AT_FDCWD
    let families = report(&recorded.trace())["summary"]["lookups_failed_by_family"].clone();
    let names: BTreeSet<&str> = families.as_object().unwrap().keys().map(|name| &**name).collect();
    assert_eq!(names, BTreeSet::from(["access", "chdir", "open", "readlink", "stat"]));
}

#[test]
fn families_can_be_chosen() {
    let with = |list: &str| -> (Events, Value) {
        let recorded = Recorder::new().option(["--misses", list]).fixture("lookups", &["10"]);
        (recorded.sound(0), report(&recorded.trace()))
    };
    let (events, findings) = with("readlink,exec");
    let mut expected = all_of(&[&["readlinkat", "execve", "execveat"]], 10);
    if OLD_CALLS.contains(&"readlink") {
        expected.insert("readlink".into(), 10);
    }
    assert_eq!(by_call(&events), expected);
    // Anything excluded from the recording is reported as missing.
    assert_eq!(findings["blind_spots"][0]["what"], "misses");

    let (events, findings) = with("none");
    assert_eq!(events.count("lookup_failed") + events.count("exec_failed"), 0);
    // Unknown rather than 0; and a law about it cannot be checked.
    assert!(findings["summary"]["lookups_failed"].is_null());
    assert!(findings["summary"]["lookups_in_vain"].is_null());
    assert!(findings["summary"]["execs_failed"].is_null());
    let laws = findings["health"]["laws"].as_array().unwrap();
    let law = laws.iter().find(|law| law["name"] == "lookups").unwrap();
    assert!(law["holds"].is_null() && law["not_checked"].is_string(), "{law}");

    let (_, findings) = with("all");
    assert_eq!(findings["blind_spots"].as_array().unwrap().len(), 0);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_program_is_a_blind_spot() {
    let recorded = Recorder::new().fixture("compat32", &[]);
    let events = recorded.sound(7);
    let exec = events.kind("exec").next().unwrap();
    assert_eq!(exec["compat"], true);
    let findings = report(&recorded.trace());
    // It missed one file, which nothing saw: that is not 0.
    assert_eq!(findings["summary"]["lookups_failed"], Value::Null);
    let spots = findings["blind_spots"].clone();
    assert_eq!(spots[0]["what"], "compat");
    assert_eq!(spots[0]["programs"][0], "compat32");
}

#[test]
fn an_io_uring_is_a_blind_spot() {
    let recorded = Recorder::new().fixture("uring", &[]);
    let events = recorded.sound(0);
    let blind: Vec<&Value> = events.kind("blind").collect();
    assert_eq!(blind.len(), 1);
    assert_eq!(blind[0]["what"], "io_uring");
    assert_eq!(blind[0]["pid"], events.root()["pid"]);
    assert_eq!(report(&recorded.trace())["blind_spots"][0]["what"], "io_uring");
}

#[test]
fn what_systemd_is_asked_for_runs_elsewhere() {
    let recorder = Recorder::new();
    // Only the program's name matters: no systemd runs here.
    let program = recorder.directory.path().join("systemd-run");
    std::fs::copy("/bin/true", &program).unwrap();
    let recorded = recorder.run([program.to_str().unwrap(), "--user", "sleep", "1"]);
    recorded.sound(0);
    let findings = report(&recorded.trace());
    assert_eq!(findings["blind_spots"][0]["what"], "systemd_run");
    let _ = u64_of(&findings["blind_spots"][0]["processes"]);
}

mod root {
    use super::*;

    #[test]
    fn results_that_seccomp_fakes_are_what_the_payload_saw() {
        // The hooked functions that serve the calls do not run if seccomp supplies the result.
        let recorder = Recorder::new().option(["--lookup-hook", "tracepoint"]);
        let events = recorder.fixture("faked", &[]).sound(3);
        let faked: Vec<&Value> = events
            .kind("lookup_failed")
            .filter(|miss| miss["path"] == "/faked/by/seccomp")
            .collect();
        assert_eq!(faked.len(), 1);
        assert_eq!(faked[0]["errno"], 13);
        // An exec that reports success but did not happen is not counted.
        assert_eq!(events.count("exec"), 1);
    }

    #[test]
    fn what_a_signal_interrupts_has_not_failed() {
        for hook in ["auto", "sys-exit"] {
            let recorder = Recorder::new().option(["--lookup-hook", hook]);
            let events = recorder.fixture("interrupted", &["5"]).sound(0);
            let root = &events.root()["pid"];
            let failed: Vec<&Value> =
                events.kind("lookup_failed").filter(|miss| miss["pid"] == *root).collect();
            assert!(
                failed.iter().all(|miss| miss["errno"] != 512 && miss["path"] != "fifo"),
                "{hook}"
            );
            assert_eq!(failed.iter().filter(|miss| miss["path"] == "/no/such/file").count(), 1);
        }
    }
}
