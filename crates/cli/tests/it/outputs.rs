//! The output file of a recording: existing files, and what readers see while it is written.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{Events, Recorder, copy, header, proctrace, report, text, u64_of};
use serde_json::Value;

/// Records `echo MESSAGE` to this file.
fn record(output: &Path, options: &[&str], message: &str) -> String {
    let run = proctrace()
        .args(["record", "--output"])
        .arg(output)
        .args(options)
        .args(["--", "echo", message])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{stderr}");
    stderr
}

/// The message echoed in that recording.
fn message(trace: &Path) -> String {
    text(&Events::of(trace).kind("exec").next().unwrap()["argv"][1]).to_owned()
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_earlier_trace_is_kept_and_that_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("job.ptrace");
    let old = directory.path().join("job.ptrace.old");
    let said = record(&trace, &[], "first");
    assert!(!said.contains("previous"), "{said}");
    fs::set_permissions(&trace, fs::Permissions::from_mode(0o644)).unwrap();
    let said = record(&trace, &[], "second");
    let renamed = format!("the previous {} was renamed to {}", trace.display(), old.display());
    assert!(said.contains(&renamed), "{said}");
    assert_eq!((message(&trace), message(&old)), ("second".into(), "first".into()));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // The permissions of the old file are left alone.
    assert_eq!((mode(&trace), mode(&old)), (0o600, 0o644));
    // The previously kept file is replaced; --quiet suppresses the message.
    assert_eq!(record(&trace, &["--quiet"], "third"), "");
    assert_eq!((message(&trace), message(&old)), ("third".into(), "second".into()));
    assert_eq!(names(directory.path()), set(&["job.ptrace", "job.ptrace.old"]));
}

#[test]
fn a_start_that_fails_leaves_earlier_traces_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("job.ptrace");
    record(&trace, &[], "first");
    record(&trace, &[], "second");
    let broken = directory.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let before = (fs::read(&trace).unwrap(), names(directory.path()));
    // Not found along PATH, and rejected only by execve(2).
    for program in [Path::new("no-such-command-here"), &broken] {
        let run = proctrace()
            .args(["record", "--output"])
            .arg(&trace)
            .arg("--")
            .arg(program)
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(127));
        assert_eq!((fs::read(&trace).unwrap(), names(directory.path())), before);
        assert_eq!(message(&directory.path().join("job.ptrace.old")), "first");
    }
}

#[test]
fn a_file_that_holds_nothing_is_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (empty, pipe) = (directory.path().join("empty"), directory.path().join("pipe"));
    fs::write(&empty, "").unwrap();
    let said = record(&empty, &[], "x");
    assert!(!said.contains("previous"), "{said}");
    assert_eq!(message(&empty), "x");
    let said = record(Path::new("/dev/null"), &[], "x");
    assert!(!said.contains("previous") && !Path::new("/dev/null.old").exists(), "{said}");

    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read(pipe).unwrap())
    };
    record(&pipe, &[], "through a pipe");
    let copy = directory.path().join("copy");
    fs::write(&copy, reader.join().unwrap()).unwrap();
    assert_eq!(message(&copy), "through a pipe");
    assert_eq!(names(directory.path()), set(&["copy", "empty", "pipe"]));
}

/// A recording of a command that waits until told to continue.
struct Held {
    recorder: Recorder,
    child: std::process::Child,
}

impl Held {
    fn begin() -> Self {
        let mut recorder = Recorder::new();
        let mut child = recorder
            .command
            .args(["--", "sh", "-c", "ls /; echo ready; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.as_mut().unwrap());
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert_ne!(out.read_line(&mut line).unwrap(), 0);
        }
        let held = Self { recorder, child };
        // The first records are flushed within about a second; until then there is only a header.
        while header(&held.trace())["streams"]["lifecycle"].is_null() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        held
    }

    fn trace(&self) -> PathBuf {
        self.recorder.trace()
    }

    /// Lets the command run to its end; returns the path of the trace, and the recorder that owns
    /// it.
    fn end(mut self) -> Recorder {
        drop(self.child.stdin.take());
        assert!(self.child.wait_with_output().unwrap().status.code().is_some());
        self.recorder
    }
}

fn read(arguments: &[&str], trace: &Path) -> Output {
    proctrace().args(arguments).arg(trace).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_trace_that_is_being_written_is_not_called_cut_short() {
    let held = Held::begin();
    let trace = held.trace();

    let output = read(&["report"], &trace);
    let shown = said(&output.stdout);
    assert!(output.status.success(), "{}", said(&output.stderr));
    assert!(shown.contains("STILL RECORDING"), "{shown}");
    for wrong in ["INCOMPLETE", "CHECK FAILED", "DAMAGED", "end not recorded"] {
        assert!(!shown.contains(wrong), "{shown}");
    }
    let health = &report(&trace)["health"];
    assert_eq!((&health["complete"], &health["recording_now"]), (&false.into(), &true.into()));

    let check = read(&["check"], &trace);
    assert_eq!(check.status.code(), Some(3));
    assert!(said(&check.stdout).contains("BAD it is being recorded right now"));

    assert_eq!(header(&trace)["recording_now"], true);
    let now = "being recorded right now";
    for arguments in [&["dump"][..], &["metrics"], &["report", "--section", "counts"]] {
        let output = read(arguments, &trace);
        let warned = said(&output.stderr);
        assert!(output.status.success() && warned.contains(now), "{arguments:?}: {warned}");
        assert!(!warned.contains("incomplete") && !warned.contains("cut short"), "{warned}");
    }
    // A growing value must not be judged.
    let gate = read(&["gate", "--limit", "total_processes=|1000"], &trace);
    assert_eq!(gate.status.code(), Some(1), "{}", said(&gate.stdout));
    assert!(said(&gate.stderr).contains(now), "{}", said(&gate.stderr));

    let recorder = held.end();
    let finished = read(&["report"], &recorder.trace());
    assert!(said(&finished.stdout).contains("no records lost"), "{}", said(&finished.stdout));
    assert_eq!(header(&recorder.trace())["recording_now"], false);
    assert_eq!(report(&recorder.trace())["health"]["recording_now"], false);
}

#[test]
fn a_copy_of_a_trace_that_is_being_written_is_cut_short() {
    let held = Held::begin();
    let copy = held.recorder.directory.path().join("copy.ptrace");
    fs::copy(held.trace(), &copy).unwrap();
    let shown = said(&read(&["report"], &copy).stdout);
    assert!(shown.contains("INCOMPLETE") && !shown.contains("STILL RECORDING"), "{shown}");
    let findings = report(&copy);
    assert_eq!(findings["health"]["recording_now"], false);
    // It extends to its last sample, though nothing has happened since `ready`.
    let events = Events::of(&copy);
    let time_ns = |event: &Value| u64_of(&event["time_ns"]);
    let (first, last) = (&events.0[0], events.0.last().unwrap());
    assert!(["sample", "tick"].contains(&text(&last["kind"])), "{last}");
    assert_eq!(u64_of(&findings["run"]["recorded_ns"]), time_ns(last) - time_ns(first));
    held.end();
}

/// Records a command that leaves a process behind, which runs until it is told to end; returns
/// stderr. That process is released once a line of stderr contains `until`.
fn straggle(options: &[&str], until: Option<&str>) -> String {
    let recorder = Recorder::new().option(options);
    // It looks for a file that must be there, so that it ends if the directory is deleted first.
    let held = recorder.directory.path().join("held");
    fs::write(&held, "").unwrap();
    let mut command = recorder.command;
    let mut child = command
        .args([
            "--",
            "sh",
            "-c",
            "(while [ -e held ]; do sleep 0.02; done) > /dev/null 2>&1 & exit 0",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    if let Some(until) = until {
        while !text.contains(until) {
            assert_ne!(stderr.read_line(&mut text).unwrap(), 0, "{text}");
        }
        fs::remove_file(&held).unwrap();
    }
    stderr.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    text
}

#[test]
fn waiting_for_what_the_command_left_is_told() {
    let waits = "the command has exited; waiting up to ";
    let said = straggle(&["--grace", "10m"], Some(waits));
    let line = said.lines().find(|line| line.contains(waits)).unwrap();
    assert!(line.contains("10m for ") && line.contains("still running"), "{line}");
    assert_eq!(said.matches(waits).count(), 1, "{said}");
    // Neither with --quiet, nor where no one waits.
    assert!(!straggle(&["--quiet", "--grace", "1s"], None).contains(waits));
    assert!(!straggle(&["--wait", "root"], None).contains(waits));
}

#[test]
fn times_of_failed_look_ups_say_how_coarse_they_are() {
    let recorded = Recorder::new().run(["ls", "/no/such/file"]);
    // From 100 to 1000 ticks a second: CONFIG_HZ.
    let resolution = u64_of(&header(&recorded.trace())["lookup_time_resolution_ns"]);
    assert!((1_000_000..=10_000_000).contains(&resolution), "{resolution}");
    let events = Events::of(&recorded.trace());
    assert!(events.count("lookup_failed") > 0);
    for event in &events.0 {
        let is_coarse = event.get("time_is_coarse").is_some();
        let is_lookup = event["kind"] == "lookup_failed" || event["kind"] == "lookup_time";
        assert_eq!(is_coarse, is_lookup, "{event}");
    }
}

mod root {
    use super::*;

    #[test]
    fn whoever_may_read_a_trace_sees_that_it_is_being_written() {
        let held = Held::begin();
        let directory = held.recorder.directory.path();
        let binary = directory.join("proctrace");
        copy(Path::new(env!("CARGO_BIN_EXE_proctrace")), &binary, 0o755);
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(held.trace(), fs::Permissions::from_mode(0o644)).unwrap();
        let check = || {
            Command::new("setpriv")
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .arg(&binary)
                .arg("check")
                .arg(directory.join("test.ptrace"))
                .output()
                .expect("setpriv(1) comes with util-linux")
        };
        let shown = said(&check().stdout);
        assert!(shown.contains("it is being recorded right now"), "{shown}");
        held.end();
    }
}
