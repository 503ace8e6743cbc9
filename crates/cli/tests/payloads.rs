//! The simulation payloads: the recording of each matches its declaration exactly.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use common::stage::{Broker, Stage};
use common::{Recorded, Recorder, payload, proctrace, text, u64_of};
use proctrace_payload::catalog;
use serde_json::{Value, json};

/// The contents of a recording, in the form of a declaration.
fn recorded(trace: &Path, work: &Path) -> Value {
    let mut dump = proctrace()
        .args(["dump", "--kind", "attach", "--kind", "fork", "--kind", "exec"])
        .args(["--kind", "exit", "--kind", "lookup_failed"])
        .arg(trace)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The live processes by pid: index into `processes`.
    let mut alive: HashMap<u64, usize> = HashMap::new();
    // For each process: its program, its threads, its forker.
    let mut processes: Vec<(String, u64, u64)> = Vec::new();
    let mut execs: BTreeMap<String, u64> = BTreeMap::new();
    let mut misses: BTreeMap<String, u64> = BTreeMap::new();
    let mut detached = 0;
    for line in BufReader::new(dump.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // Most of the trace consists of misses by the machine's own programs.
        let ours = line.contains("/libO2") || line.contains("/libMissing");
        if line.contains("\"lookup_failed\"") && !ours {
            continue;
        }
        let event: Value = serde_json::from_str(&line).unwrap();
        let pid = u64_of(&event["pid"]);
        match text(&event["kind"]) {
            "attach" => {
                alive.insert(pid, processes.len());
                processes.push((String::new(), 0, 0));
            }
            "fork" if event["thread"] == true => processes[alive[&pid]].1 += 1,
            "fork" => {
                let program = processes[alive[&pid]].0.clone();
                alive.insert(u64_of(&event["child_pid"]), processes.len());
                processes.push((program, 0, pid));
            }
            "exec" => {
                let program = base_name(text(&event["argv"][0])).to_owned();
                *execs.entry(program.clone()).or_default() += 1;
                processes[alive[&pid]].0 = program;
            }
            "exit" if event["process"] == true => {
                let forker = processes[alive[&pid]].2;
                detached += u64::from(forker != 0 && forker != u64_of(&event["parent_pid"]));
            }
            "lookup_failed" => {
                let (directory, name) = text(&event["path"]).rsplit_once('/').unwrap();
                let own = Path::new(directory).strip_prefix(work);
                let prefix = ["libO2", "libMissing"].into_iter().find(|p| name.starts_with(p));
                if let (Ok(own), Some(_)) = (own, prefix) {
                    assert_eq!(event["errno"], 2, "{event}");
                    assert!(text(&event["call"]).starts_with("open"), "{event}");
                    *misses.entry(own.to_str().unwrap().to_owned()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    assert!(dump.wait().unwrap().success());
    let mut programs: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for (program, threads, _) in &processes {
        let counts = programs.entry(program.clone()).or_default();
        counts[0] += 1;
        counts[1] += threads;
    }
    for (program, count) in &execs {
        programs.entry(program.clone()).or_default()[2] += count;
    }
    json!({
        "processes": processes.len(),
        "threads": processes.iter().map(|process| process.1).sum::<u64>(),
        "execs": execs.values().sum::<u64>(),
        "detached": detached,
        "programs": programs.into_iter().map(|(program, [processes, threads, execs])| {
            (program, json!({ "processes": processes, "threads": threads, "execs": execs }))
        }).collect::<BTreeMap<_, _>>(),
        "failed_lookups": misses,
    })
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// The part of a declaration that is observable in a recording.
fn declared(declaration: &Value) -> Value {
    let mut shown = serde_json::Map::new();
    for key in ["processes", "threads", "execs", "detached", "programs"] {
        shown.insert(key.to_owned(), declaration[key].clone());
    }
    let misses: BTreeMap<String, u64> = declaration["failed_lookups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|misses| misses["count"] != 0)
        .map(|misses| (text(&misses["directory"]).to_owned(), u64_of(&misses["count"])))
        .collect();
    shown.insert("failed_lookups".into(), json!(misses));
    Value::Object(shown)
}

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
fn ordinary_users_see_the_same_through_a_broker() {
    for name in catalog::names() {
        compare_as_user("broker", name);
    }
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
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
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
