//! A job of real physics software: the recording matches its declaration, and recording does not
//! change its physics.
//!
//! Its wheels come from a package index: `cargo xtask test` installs them, as `cargo xtask payloads
//! --with pythia8` does.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Events, Recorded, Recorder, report, text, u64_of};
use serde_json::Value;

/// Arguments of the job: the events are no multiple of the number of workers, so that their shares differ.
const ARGUMENTS: &[&str] = &["--events", "62", "--workers", "3", "--seed", "7"];

/// Short, because a job declares the number of its failed look-ups along PATH.
const PATH: &str = "/usr/bin:/bin";

/// graphviz's message for an unknown format.
const DOT: &str =
    "#!/bin/sh\necho 'Format: \"12345679\" not recognized. Use one of: svg png' >&2\nexit 1\n";

#[test]
#[ignore = "needs a Python package index"]
fn a_job_of_real_physics_software_does_what_it_declares() {
    let job = Job::prepared();

    let recorder = Recorder::new();
    let declared = job.declared(PATH);
    let first = job.recorded(recorder, PATH);
    assert_as_declared(&first, &declared);

    // Again with the program they look for: `dot`, of graphviz.
    let recorder = Recorder::new();
    let tools = recorder.directory.path().join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("dot"), DOT).unwrap();
    fs::set_permissions(tools.join("dot"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("/no/tools:{}:{PATH}", tools.display());
    let declared = job.declared(&path);
    assert_eq!(declared["execs"]["dot"], 5, "{declared}");
    let second = job.recorded(recorder, &path);
    assert_as_declared(&second, &declared);

    let (jets, again) = (assert_books_of_jets(&first), assert_books_of_jets(&second));
    assert_eq!(jets, again, "the same seed gives the same jets");
    assert!(jets.iter().all(|jets| *jets > 0), "{jets:?}");
    let events =
        |recorded: &Recorded| fs::read(recorded.directory.path().join("events.hepmc")).unwrap();
    assert!(events(&first) == events(&second), "the same seed gives the same events");
}

/// Compares a recording with a declaration, exactly.
fn assert_as_declared(recorded: &Recorded, declared: &Value) {
    let events = recorded.sound(0);
    assert_eq!(events.forks(false).len() as u64 + 1, u64_of(&declared["processes"]));
    assert_eq!(events.forks(true).len() as u64, u64_of(&declared["threads"]));
    assert_eq!(events.count("exec_failed") as u64, u64_of(&declared["failed_execs"]));
    let execs: BTreeMap<String, u64> = serde_json::from_value(declared["execs"].clone()).unwrap();
    assert_eq!(programs(&events), execs);
    let summary = &report(&recorded.trace())["summary"];
    assert_eq!(summary["detached_processes"], declared["detached"]);

    let shares = declared["events_per_worker"].as_array().unwrap();
    assert_eq!(shares.iter().map(u64_of).sum::<u64>(), u64_of(&declared["events"]));
    for (rank, share) in shares.iter().enumerate() {
        let worker = recorded.directory.path().join(format!("worker_{rank}"));
        assert_eq!(events_logged(&worker), u64_of(share), "worker {rank}");
        assert_eq!(events_written(&worker), u64_of(share), "worker {rank}");
    }
    assert_eq!(events_written(recorded.directory.path()), u64_of(&declared["events"]));
}

/// Number of execs per program: scripts by their own names.
fn programs(events: &Events) -> BTreeMap<String, u64> {
    let mut programs = BTreeMap::new();
    for exec in events.kind("exec") {
        // the requested script, or the one that Python was asked to run
        let arguments = exec["argv"].as_array().unwrap().iter().map(text);
        let program =
            arguments.into_iter().find(|a| a.ends_with(".py")).unwrap_or(text(&exec["path"]));
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        *programs.entry(name.to_owned()).or_default() += 1;
    }
    programs
}

/// The number of events in a worker's log, in AthenaMP's format.
fn events_logged(worker: &Path) -> u64 {
    let log = fs::read_to_string(worker.join("AthenaMP.log")).unwrap();
    let rest = log.strip_prefix("Number of events processed: ").unwrap_or_else(|| panic!("{log}"));
    let (events, rest) = rest.split_once(", Event Loop Time: ").unwrap();
    let seconds = rest.strip_suffix("sec.\n").unwrap();
    assert!(seconds.parse::<f64>().unwrap() > 0.0, "{log}");
    events.parse().unwrap()
}

/// The events in a HepMC file: each begins with a line of type E.
fn events_written(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join("events.hepmc")).unwrap();
    text.lines().filter(|line| line.starts_with("E ")).count() as u64
}

/// The jets of each worker, after checking that the merged total and the summary agree.
fn assert_books_of_jets(recorded: &Recorded) -> Vec<u64> {
    let json =
        |path: PathBuf| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let directory = recorded.directory.path();
    let jets: Vec<u64> = (0..3)
        .map(|rank| u64_of(&json(directory.join(format!("worker_{rank}/jets.json")))["jets"]))
        .collect();
    let sum: u64 = jets.iter().sum();
    assert_eq!(json(directory.join("merged.json"))["jets"], sum);
    let says = String::from_utf8_lossy(&recorded.output.stdout).into_owned();
    let total =
        says.lines().find(|line| line.starts_with("all ")).unwrap_or_else(|| panic!("{says}"));
    let words: Vec<&str> = total.split_whitespace().collect();
    assert_eq!(words, ["all", "62", &sum.to_string()], "{says}");
    jets
}

/// The job, and a Python that has its wheels.
struct Job {
    program: PathBuf,
    python: PathBuf,
}

impl Job {
    /// Job that `cargo xtask payloads --with pythia8` has prepared.
    fn prepared() -> Self {
        // CARGO_TARGET_TMPDIR is the directory `tmp` of cargo's target directory.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let sources = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../fixtures/payloads/pythia8");
        let job = Self {
            program: sources.canonicalize().unwrap().join("job.py"),
            python: target.join("payloads/pythia8/bin/python"),
        };
        assert!(job.python.exists(), "run `cargo xtask payloads --with pythia8` first");
        job
    }

    /// Its declaration for this PATH.
    fn declared(&self, path: &str) -> Value {
        let output = Command::new(&self.python)
            .arg(&self.program)
            .args(ARGUMENTS)
            .args(["--declare", "json"])
            .env("PATH", path)
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn recorded(&self, recorder: Recorder, path: &str) -> Recorded {
        let mut recorder = recorder.env("PATH", path);
        // As root: the output directory belongs to root.
        recorder.command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        let command = [self.python.as_os_str(), self.program.as_os_str()];
        recorder.run(command.into_iter().chain(ARGUMENTS.iter().map(|argument| argument.as_ref())))
    }
}
