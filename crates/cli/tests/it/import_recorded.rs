//! The same deterministic payload recorded by eBPF, and logged by strace and imported: the same facts.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::{Events, Recorder, fixture, proctrace, report, text};
use serde_json::Value;

const ROUNDS: &str = "200";

/// Events without pids and times, each with its number.
fn facts(events: &Events) -> BTreeMap<String, u64> {
    let mut facts = BTreeMap::new();
    for event in &events.0 {
        let keys: &[&str] = match text(&event["kind"]) {
            "fork" => &["thread", "call", "flags", "exit_signal"],
            "exec" => &["path", "argv", "env"],
            "exec_failed" | "lookup_failed" => &["call", "path", "errno", "dirfd", "flags"],
            "exit" => &["code", "signal", "process", "opens", "lookups_failed", "execs_failed"],
            "rename" => &["comm"],
            _ => continue,
        };
        let mut fact = text(&event["kind"]).to_owned();
        for key in keys {
            // A thread's status is that of its process only at its end.
            let is_thread = event["kind"] == "exit" && event["process"] == false;
            if !(is_thread && (*key == "code" || *key == "signal")) {
                fact.push_str(&format!(" {key}={}", event[*key]));
            }
        }
        *facts.entry(fact).or_default() += 1;
    }
    facts
}

#[test]
fn an_imported_log_says_what_a_recording_says() {
    let program = fixture("mixed");
    let recorded = Recorder::new().run([program.as_os_str(), ROUNDS.as_ref()]);
    let events = recorded.sound(0);
    let directory = tempfile::tempdir().unwrap();
    let (log, trace) = (directory.path().join("log"), directory.path().join("imported.ptrace"));
    let output = Command::new("strace")
        .args(["-f", "-ttt", "-v", "-s", "65535", "-o"])
        .arg(&log)
        .arg(&program)
        .arg(ROUNDS)
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .expect("strace is here: cargo xtask setup");
    assert!(output.status.success());
    let import =
        proctrace().args(["import", "strace", "-o"]).arg(&trace).arg(&log).output().unwrap();
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    let (recorded_facts, imported_facts) = (facts(&events), facts(&Events::of(&trace)));
    let differences: Vec<String> = recorded_facts
        .keys()
        .chain(imported_facts.keys())
        .filter(|fact| recorded_facts.get(*fact) != imported_facts.get(*fact))
        .map(|fact| {
            format!(
                "{fact}: {:?}, imported {:?}",
                recorded_facts.get(fact),
                imported_facts.get(fact)
            )
        })
        .collect();
    assert!(differences.is_empty(), "{:#?}", &differences[..differences.len().min(20)]);
    let (one, other) = (report(&recorded.trace()), report(&trace));
    for key in [
        "processes",
        "threads",
        "execs",
        "execs_failed",
        "lookups_failed",
        "opens",
        "detached_processes",
    ] {
        assert_eq!(one["summary"][key], other["summary"][key], "{key}");
        assert_ne!(one["summary"][key], Value::Null, "{key}");
    }
}
