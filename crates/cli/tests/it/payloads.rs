//! The simulation payloads: the recording of each matches its declaration exactly.

use std::path::Path;
use std::process::Command;

use crate::common::declared::{declared, recorded};
use crate::common::stage::{Broker, Stage};
use crate::common::{Recorded, Recorder, payload, proctrace, u64_of};
use proctrace_payload::catalog;
use serde_json::Value;

/// Records a scenario with little CPU work, which is not compared, and compares the rest.
fn compare(name: &str, scale: &str, workers: &str) {
    let recorder = Recorder::new();
    let work = recorder.directory.path().canonicalize().unwrap().join("work");
    let declaration = recorder.directory.path().join("declared.json");
    let arguments = ["run", name, "--scale", scale, "--workers", workers, "--seed", "3"];
    let run = recorder.run(
        [payload().as_os_str()]
            .into_iter()
            .chain(arguments.map(AsRef::as_ref))
            .chain(["--work-factor", "0.02", "--work"].map(AsRef::as_ref))
            .chain([work.as_os_str(), "--declare".as_ref(), declaration.as_os_str()]),
    );
    assert_as_declared(&format!("{name} at scale {scale}"), &run, &work, &declaration);
}

fn assert_as_declared(what: &str, run: &Recorded, work: &Path, declaration: &Path) {
    assert_eq!(run.code(), 0, "{what}: {}", run.stderr());
    assert!(!work.exists(), "{what}: the work directory is still there");
    let check = proctrace().arg("check").arg(run.trace()).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&check.stdout));
    let declaration: Value = serde_json::from_slice(&std::fs::read(declaration).unwrap()).unwrap();
    let (declared, recorded) = (declared(&declaration), recorded(&run.trace(), work));
    for (key, declared) in declared.as_object().unwrap() {
        assert_eq!(*declared, recorded[key], "{what}: {key} as declared, and as recorded");
    }
    assert_events(what, &declaration["events"], &String::from_utf8_lossy(&run.output.stdout));
}

/// Records a scenario as an ordinary user, at a small scale.
fn compare_as_user(backend: &str, name: &str) {
    let mut stage = Stage::new();
    let broker = (backend == "broker").then(|| Broker::start(&stage, &[]));
    if let Some(broker) = &broker {
        stage.socket.clone_from(&broker.socket);
    }
    let program = stage.copy(&payload(), "proctrace-payload", 0o755);
    let work = stage.directory.path().canonicalize().unwrap().join("work");
    let declaration = stage.path("declared.json");
    let mut recorder = stage.recorder(backend, &["--quiet"]);
    recorder.arg(program).args(["run", name, "--scale", "0.01", "--workers", "2", "--seed", "3"]);
    recorder
        .args(["--work-factor", "0.02", "--work"])
        .arg(&work)
        .arg("--declare")
        .arg(&declaration);
    let output = recorder.output().unwrap();
    let run = Recorded { directory: stage.directory, output };
    assert_as_declared(&format!("{name} by {backend}"), &run, &work, &declaration);
}

/// Compares the workers' logs, which the payload prints at its end.
fn assert_events(what: &str, declared: &Value, printed: &str) {
    const BEFORE: &str = "Number of events processed: ";
    let each: Vec<u64> = printed
        .lines()
        .filter_map(|line| line.split_once(BEFORE))
        .map(|(_, rest)| {
            let (count, rest) = rest.split_once(", Event Loop Time: ").unwrap();
            let seconds = rest.strip_suffix("sec.").unwrap();
            assert!(seconds.parse::<f64>().unwrap() >= 0.0);
            count.parse().unwrap()
        })
        .collect();
    if declared.is_null() {
        assert!(each.is_empty(), "{what}: {printed}");
        return;
    }
    let total = u64_of(&declared["total"]);
    assert!(printed.contains(&format!("\n{total} events in ")), "{what}: {printed}");
    if let Some(expected) = declared["per_worker"].as_array() {
        let expected: Vec<u64> = expected.iter().map(u64_of).collect();
        assert_eq!(each, expected, "{what}: events of each worker");
        // With late forking the mother processes the first event.
        assert!(total - each.iter().sum::<u64>() <= 1, "{what}: {printed}");
    } else {
        assert_eq!(each.iter().sum::<u64>(), total, "{what}: {printed}");
    }
}

/// Every scenario of a kind, at two scales and with two numbers of workers.
fn compare_all(kind: &str) {
    let names: Vec<&str> = catalog::names().filter(|name| name.starts_with(kind)).collect();
    assert!(!names.is_empty());
    for name in names {
        compare(name, "0.01", "2");
        compare(name, "0.02", "3");
    }
}

#[test]
fn o2_workflows_before() {
    compare_all("alice-o2-before");
}

#[test]
fn o2_workflows_after() {
    compare_all("alice-o2-after");
}

#[test]
fn event_loops_in_processes() {
    compare_all("athena-");
}

#[test]
fn writers() {
    compare_all("shared-writer-");
}

#[test]
fn event_loops_in_threads() {
    compare_all("cmssw-");
}

#[test]
fn storms() {
    compare_all("storm-");
}

#[test]
fn ordinary_users_see_the_same_by_ptrace() {
    for name in catalog::names() {
        compare_as_user("ptrace", name);
    }
}

#[test]
fn every_scenario_is_compared() {
    let kinds =
        ["alice-o2-before", "alice-o2-after", "athena-", "shared-writer-", "cmssw-", "storm-"];
    for name in catalog::names() {
        assert!(kinds.iter().any(|kind| name.starts_with(kind)), "{name}");
    }
}

/// Committed recordings: their contents as analysed do not change.
#[test]
fn kept_recordings_show_what_they_showed() {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    for (name, processes, threads, execs, detached, misses) in [
        ("alice-o2-before.ptrace", 380, 347, 377, 1, 47 * 57 * 30),
        ("alice-o2-after.ptrace", 93, 292, 91, 0, 0),
    ] {
        let shown = recorded(&traces.join(name), Path::new("/tmp/alice/work"));
        assert_eq!(shown["processes"], processes, "{name}");
        assert_eq!(shown["threads"], threads, "{name}");
        assert_eq!(shown["execs"], execs, "{name}");
        assert_eq!(shown["detached"], detached, "{name}");
        let places = shown["failed_lookups"].as_object().unwrap();
        assert_eq!(places.values().map(u64_of).sum::<u64>(), misses, "{name}");
    }
}

/// The declaration compared with an independent tracer.
#[test]
fn strace_counts_what_is_declared() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let declaration = place.path().join("declared.json");
    let status = Command::new("strace")
        .args(["-ff", "-qq", "-e", "trace=fork,vfork,clone,clone3,execve", "-e", "signal=none"])
        .args(["--seccomp-bpf", "-o"])
        .arg(&log)
        .arg(payload())
        .args(["run", "alice-o2-before", "--scale", "0.01", "--work-factor", "0.02", "--quiet"])
        .arg("--declare")
        .arg(&declaration)
        .env_remove("LD_LIBRARY_PATH")
        .status()
        .expect("strace is here: cargo xtask setup");
    assert!(status.success());
    let (mut tasks, mut threads, mut execs) = (0, 0, 0);
    for file in std::fs::read_dir(place.path()).unwrap().flatten() {
        // One log per task.
        let name = file.file_name().into_string().unwrap();
        if !name.starts_with("log.") {
            continue;
        }
        tasks += 1;
        for line in std::fs::read_to_string(file.path()).unwrap().lines() {
            execs += u64::from(line.starts_with("execve(") && line.ends_with(" = 0"));
            let made = !line.contains(" = -1 ") && !line.contains(" = ? ");
            threads += u64::from(line.contains("CLONE_THREAD") && made);
        }
    }
    let declaration: Value = serde_json::from_slice(&std::fs::read(declaration).unwrap()).unwrap();
    assert_eq!(threads, u64_of(&declaration["threads"]));
    assert_eq!(tasks, u64_of(&declaration["processes"]) + threads);
    assert_eq!(execs, u64_of(&declaration["execs"]));
}

mod root {
    use super::*;

    #[test]
    fn ordinary_users_see_the_same_through_a_broker() {
        for name in catalog::names() {
            compare_as_user("broker", name);
        }
    }
}
