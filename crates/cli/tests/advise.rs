//! The advice of real recordings, as text and JSON, and compared with recordings of changed jobs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Events, Recorded, Recorder, proctrace, text, u64_of};
use serde_json::Value;

fn record(script: &str) -> Recorded {
    let recorded = Recorder::new().run(["bash", "-c", script]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    recorded
}

fn of_kind<'a>(advised: &'a Value, kind: &str) -> Option<&'a Value> {
    advised["advice"].as_array().unwrap().iter().find(|advice| text(&advice["kind"]) == kind)
}

#[test]
fn a_healthy_job_needs_no_advice() {
    // One process that computes.
    let recorded = record("for ((i = 0; i < 300000; i++)); do :; done");
    let output = proctrace().arg("advise").arg(recorded.trace()).output().unwrap();
    assert!(output.status.success());
    let says = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(says, "Nothing here pays more than 1 %.\n");
}

#[test]
fn the_gain_is_compared_with_a_recording_of_the_changed_job() {
    let before = record("for i in {1..100}; do a=$(basename /x/$i); done");
    let after = record("for i in {1..100}; do a=$i; done");
    let run = |json: &[&str]| {
        let mut command = proctrace();
        command.args(["advise", "--against"]).arg(before.trace()).args(json).arg(after.trace());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let observed: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let advice = of_kind(&observed, "short-commands").unwrap();
    assert!(advice["left"].is_null(), "{advice}");
    let concerned = &advice["concerned"];
    let number = |name: &str| u64_of(&concerned[name]);
    // $(…) forks a shell, which executes the command.
    assert_eq!((number("processes_before"), number("processes_after")), (100, 0));
    // The advice is about all processes but the command itself.
    let events = Events::of(&before.trace());
    let shell = &events.root()["pid"];
    let children = events.kind("exit").filter(|exit| exit["pid"] != *shell);
    let cpu_ns: u64 = children.map(|exit| u64_of(&exit["run_ns"])).sum();
    assert_eq!((number("cpu_before_ns"), number("cpu_after_ns")), (cpu_ns, 0));
    assert!(run(&[]).contains("observed   not found any more"), "{}", run(&[]));
    assert!(run(&[]).contains("processes  100 -> 0, with all"), "{}", run(&[]));

    // What is left of it, and what is not about processes that go.
    let after = record("for i in {1..20}; do a=$(basename /x/$i); done");
    let mut command = proctrace();
    command.args(["advise", "--json", "--against"]).arg(before.trace()).arg(after.trace());
    let observed: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let advice = of_kind(&observed, "short-commands").unwrap();
    assert_eq!(u64_of(&advice["concerned"]["processes_after"]), 20);
    assert!(u64_of(&advice["left"]["cpu_ns"]["middle"]) > 0, "{advice}");
}

#[test]
fn the_screen_has_the_best_advice_whole() {
    let summary = |script: &str| {
        let recorded = record(script);
        let output =
            proctrace().args(["report", "--summary"]).arg(recorded.trace()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let fault = summary("for i in {1..100}; do a=$(basename /x/$i); done");
    assert!(fault.contains("\n\n  Advice   -"), "{fault}");
    let (_, advice) = fault.split_once("\n  Advice ").unwrap();
    assert!(advice.lines().nth(1).unwrap().contains("basename → ${path##*/}"), "{fault}");
    assert!(fault.lines().count() <= 24, "{fault}");
    assert!(fault.lines().all(|line| line.chars().count() <= 80), "{fault}");
    let cure = summary("for i in {1..100}; do a=$i; done");
    assert!(!cure.contains("Advice"), "{cure}");
}

#[test]
fn cures_of_the_user_are_looked_for() {
    let recorded = record("for i in {1..20}; do getconf ARG_MAX $i; done > /dev/null 2>&1; true");
    let cures = recorded.directory.path().join("cures.toml");
    let rule = "[[cure]]\nname = 'ours'\ncommand = ['getconf']\nat-least = 5\n\
                saves-percent = [10, 50, 100]\nwhat = 'Ask once'\nrisk = 'none'\n";
    std::fs::write(&cures, rule).unwrap();
    let mut command = proctrace();
    command.args(["advise", "--json", "--cures"]).arg(&cures).arg(recorded.trace());
    let output = command.output().unwrap();
    let advised: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(text(&of_kind(&advised, "known-cure").unwrap()["what"]), "Ask once");
    std::fs::write(&cures, "[[cure]]\nname = 1\n").unwrap();
    let mut command = proctrace();
    let output = command.args(["advise", "--cures"]).arg(&cures).arg(recorded.trace()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(says.contains("cures.toml:2:"), "{says}");
}
