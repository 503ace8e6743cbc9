//! diff, metrics and gate on real recordings: planted changes are found and named, and everything
//! else passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{Recorder, payload, proctrace};
use serde_json::Value;
use tempfile::TempDir;

fn repository() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn says(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complains(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn assert_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", says(output), complains(output));
}

/// A committed recording of one of the ALICE payloads.
fn alice(which: &str) -> PathBuf {
    repository().join(format!("fixtures/traces/alice-o2-{which}.ptrace"))
}

#[test]
fn the_difference_is_that_of_the_paper() {
    let output = proctrace()
        .args(["diff", "--format", "json"])
        .args([alice("before"), alice("after")])
        .output()
        .unwrap();
    assert_code(&output, 0);
    let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Multicore workflow characterisation methodology for payloads running in the ALICE Grid, table
    // of results; here the runner and the program that starts it are included as well.
    for (metric, percent) in [
        ("total_tasks", -47.0),
        ("total_commands", -86.0),
        ("total_framework_processes", -23.0),
        ("total_threads", -16.0),
    ] {
        let row =
            diff["rows"].as_array().unwrap().iter().find(|row| row["metric"] == metric).unwrap();
        let found = row["numbers"]["change_percent"].as_f64().unwrap();
        assert!((found - percent).abs() < 0.5, "{metric}: {found}");
    }
    let detached =
        diff["rows"].as_array().unwrap().iter().find(|row| row["metric"] == "total_detached");
    assert_eq!(detached.unwrap()["numbers"]["change"], -1.0);
}

#[test]
fn a_difference_reads_as_text_markdown_csv_and_picture() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("waterfall.svg");
    for (format, part) in [
        ("text", "taskwrapper"),
        ("markdown", "| threads | 347 | 292 | \\-55 |"),
        ("csv", "threads,total_threads,,347,292,-55"),
    ] {
        let output = proctrace()
            .args(["diff", "--format", format, "--waterfall"])
            .arg(&picture)
            .args([alice("before"), alice("after")])
            .output()
            .unwrap();
        assert_code(&output, 0);
        let text = says(&output);
        assert!(text.replace("\\-", "-").contains(&part.replace("\\-", "-")), "{format}:\n{text}");
        if format == "text" {
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= 80, "{widest}:\n{text}");
        }
    }
    let svg = fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{}", &svg[..80]);
    assert!(svg.contains("before") && svg.contains("after") && svg.contains("pgrep"));
    let bitmap = directory.path().join("waterfall.png");
    let runs = [alice("before"), alice("after")];
    let output =
        proctrace().args(["diff", "--waterfall"]).arg(&bitmap).args(runs).output().unwrap();
    assert_code(&output, 0);
    assert!(fs::read(bitmap).unwrap().starts_with(b"\x89PNG"));
}

/// The project's own gate.
fn gate_alice(scenario: &str) -> Output {
    let work = tempfile::tempdir().unwrap();
    let recorded = Recorder::new().run(
        [payload().as_os_str(), "run".as_ref(), scenario.as_ref(), "--scale".as_ref()]
            .into_iter()
            .chain(["0.01".as_ref(), "--work".as_ref(), work.path().join("w").as_os_str()]),
    );
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let gates = repository().join("fixtures/gates");
    proctrace()
        .args(["gate", "--top", "1000", "--budget"])
        .arg(gates.join("alice-o2-after.toml"))
        .arg("--baseline")
        .arg(gates.join("alice-o2-after.json"))
        .arg(recorded.trace())
        .output()
        .unwrap()
}

#[test]
fn the_alice_payload_keeps_to_its_budget() {
    let output = gate_alice("alice-o2-after");
    assert_code(&output, 0);
    assert!(says(&output).starts_with("Pass"), "{}", says(&output));
}

#[test]
fn the_gate_fails_if_the_polling_comes_back() {
    let output = gate_alice("alice-o2-before");
    assert_code(&output, 3);
    let text = says(&output);
    for part in [
        "Regression",
        "total_commands",
        "spawns{parent=\"taskwrapper\",child=\"sed\"}",
        "execs{command=\"ps\"}",
        "total_detached",
        "the task wrapper used to poll",
        "alice-o2-after.toml:",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// A polling job: a number of ticks, with a number of commands each.
struct Poll {
    directory: TempDir,
}

impl Poll {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("front")).unwrap();
        let script = "#!/bin/sh\n\
            i=0\n\
            while [ $i -lt 15 ]; do\n\
                echo tick | grep -q tick || exit 1\n\
                n=0\n\
                while [ $n -lt \"$SEDS\" ]; do sed -n p /dev/null; n=$((n+1)); done\n\
                i=$((i+1))\n\
            done\n";
        let path = directory.path().join("poll.sh");
        fs::write(&path, script).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        fs::set_permissions(&path, permissions).unwrap();
        Self { directory }
    }

    fn script(&self) -> PathBuf {
        self.directory.path().join("poll.sh")
    }

    /// Records it.
    fn record(&self, name: &str, seds: u32, front: bool) -> PathBuf {
        let trace = self.directory.path().join(name);
        let mut command = proctrace();
        command.env("SEDS", seds.to_string());
        if front {
            command.env("LD_LIBRARY_PATH", self.directory.path().join("front"));
        }
        let output = command
            .args(["record", "--quiet", "--output"])
            .arg(&trace)
            .arg("--")
            .arg(self.script())
            .output()
            .unwrap();
        assert_code(&output, 0);
        trace
    }

    fn gate(&self) -> Command {
        let mut command = proctrace();
        command.current_dir(self.directory.path()).arg("gate");
        command
    }

    /// Writes a budget to this directory.
    fn budget(&self, text: &str) {
        fs::write(self.directory.path().join("gate.toml"), text).unwrap();
    }
}

const COUNTS: &str = "[limits]\n\
    'execs{command=\"*\"}' = \"0%\"\n\
    'directory_failed_lookups{directory=\"*\",kind=\"*\"}' = \"0%\"\n\
    total_processes = \"0%\"\n";

#[test]
fn one_more_sed_in_a_loop_is_found_and_named() {
    let poll = Poll::new();
    poll.budget(COUNTS);
    let baseline = poll.record("before.ptrace", 1, false);
    let candidate = poll.record("after.ptrace", 2, false);
    let output = poll.gate().arg("--baseline").arg(&baseline).arg(&candidate).output().unwrap();
    assert_code(&output, 3);
    let text = says(&output);
    for part in [
        "execs{command=\"sed\"}",
        "15 before, 30 after (+15, +100 %)",
        "spawns{parent=\"poll.sh\",child=\"sed\"}",
        "gate.toml:2",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // The other commands are unchanged.
    assert!(!text.contains("execs{command=\"grep\"}"), "{text}");
}

#[test]
fn one_more_directory_to_search_is_found_and_named() {
    let poll = Poll::new();
    poll.budget(COUNTS);
    let baseline = poll.record("before.ptrace", 1, false);
    let candidate = poll.record("after.ptrace", 1, true);
    let output = poll.gate().arg("--baseline").arg(&baseline).arg(&candidate).output().unwrap();
    assert_code(&output, 3);
    let text = says(&output);
    let front = poll.directory.path().join("front");
    let named = format!("directory_failed_lookups{{directory=\"{}", front.display());
    // The report wraps lines at 80 columns.
    let joined = text.replace('\n', " ");
    assert!(joined.contains(&named), "{named} is not in\n{text}");
    assert!(!text.contains("execs{"), "{text}");
}

#[test]
fn what_did_not_change_passes_twenty_times_of_twenty() {
    let poll = Poll::new();
    let good = poll.record("good.ptrace", 1, false);
    let budget = poll.gate().arg("init").arg(&good).output().unwrap();
    assert_code(&budget, 0);
    poll.budget(&says(&budget));
    for run in 0..20 {
        let candidate = poll.record("again.ptrace", 1, false);
        let output = poll.gate().arg(&candidate).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "run {run}\n{}", says(&output));
        // And compared with the other recording, exactly.
        let output = poll
            .gate()
            .args(["--limit", "total_processes=0%", "--limit", "execs{command=\"*\"}=0%"])
            .args(["--limit", "failed_lookups{kind=\"*\"}=0%", "--baseline"])
            .args([&good, &candidate])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "run {run}\n{}", says(&output));
    }
}

#[test]
fn recording_and_judging_go_in_one() {
    let poll = Poll::new();
    let baseline = poll.record("before.ptrace", 1, false);
    let file = |name: &str| poll.directory.path().join(name);
    let output = poll
        .gate()
        .args(["run", "--runs", "3", "--limit", "execs{command=\"sed\"}=0%", "--keep", "kept"])
        .args(["--junit", "gate.xml", "--markdown", "gate.md", "--json", "gate.json"])
        .args(["--annotations", "always", "--baseline"])
        .arg(&baseline)
        .arg("--")
        .arg(poll.script())
        .env("SEDS", "3")
        .output()
        .unwrap();
    assert_code(&output, 3);
    assert!(complains(&output).contains("run 3 of 3"), "{}", complains(&output));
    assert!(says(&output).contains("::error"), "{}", says(&output));
    let report: Value = serde_json::from_slice(&fs::read(file("gate.json")).unwrap()).unwrap();
    assert_eq!(report["verdict"], "regression");
    assert!(fs::read_to_string(file("gate.xml")).unwrap().contains("<failure"));
    assert!(fs::read_to_string(file("gate.md")).unwrap().contains("sed"));
    for run in 1..=3 {
        let trace = file(&format!("kept/run-{run}.ptrace"));
        let check = proctrace().args(["check", "--quiet"]).arg(trace).output().unwrap();
        assert_code(&check, 0);
    }

    // A failed command did not complete its work.
    let output = poll
        .gate()
        .args(["run", "--limit", "total_execs=|10", "--", "sh", "-c", "exit 7"])
        .output()
        .unwrap();
    assert_code(&output, 1);
    assert!(complains(&output).contains("exited with 7 in run 1"), "{}", complains(&output));
    // One that was recorded before is judged, and what it may have left out is said.
    let failed = file("failed.ptrace");
    let mut record = proctrace();
    record.args(["record", "-q", "-o"]).arg(&failed).args(["--", "sh", "-c", "exit 7"]);
    assert_code(&record.output().unwrap(), 7);
    let gate = |trace: &Path| poll.gate().args(["--limit", "total_execs=|100"]).arg(trace).output();
    let output = gate(&failed).unwrap();
    assert_code(&output, 0);
    let said = complains(&output);
    assert!(said.contains("failed.ptrace ended with exit 7: what it did not do is"), "{said}");
    assert!(!complains(&gate(&baseline).unwrap()).contains("ended with"));
}

#[test]
fn figures_do_as_well_as_traces() {
    let poll = Poll::new();
    let trace = poll.record("good.ptrace", 1, false);
    let figures = poll.directory.path().join("good.json");
    let metrics = |format: &str| {
        let output =
            proctrace().args(["metrics", "--format", format]).arg(&trace).output().unwrap();
        assert_code(&output, 0);
        output
    };
    fs::write(&figures, metrics("json").stdout).unwrap();
    let output = poll
        .gate()
        .args(["--limit", "execs{command=\"*\"}=0%", "--baseline"])
        .args([&figures, &trace])
        .output()
        .unwrap();
    assert_code(&output, 0);
    let text = says(&metrics("openmetrics"));
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains("execs{command=\"sed\"} 15"), "{text}");
    assert!(says(&metrics("table")).contains("execs{command=\"sed\"}"));
    // Names are a public interface.
    let names = proctrace().args(["metrics", "--names"]).output().unwrap();
    let published = fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    assert!(published.ends_with(&says(&names)), "docs/metrics.md is not what --names prints");
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let poll = Poll::new();
    let trace = poll.record("good.ptrace", 1, false);
    poll.budget("[limits]\ntotal_exces = \"0%\"\n");
    let output = poll.gate().arg(&trace).output().unwrap();
    assert_code(&output, 2);
    let error = complains(&output);
    assert!(error.contains("gate.toml:2:1") && error.contains("total_execs"), "{error}");

    for (arguments, code, part) in [
        (&["--limit", "total_execs=-5%"][..], 2, "total_execs"),
        (&["--limit", "total_execs=5%"], 2, "--baseline"),
        (&["--limit", "total_execs=|99", "--baseline", "absent.json"], 1, "absent.json"),
        (&["--limit", "total_cpu_seconds=5%", "--baseline", "good.ptrace"], 4, "Inconclusive"),
        (
            &["--limit", "total_cpu_seconds=5%", "--baseline", "good.ptrace", "--inconclusive-ok"],
            0,
            "warn",
        ),
    ] {
        let output = poll.gate().args(arguments).arg("good.ptrace").output().unwrap();
        assert_code(&output, code);
        let text = says(&output) + &complains(&output);
        assert!(text.contains(part), "{arguments:?}: {part} is not in\n{text}");
    }

    for (code, status) in [("PT001", 0), ("pt002", 0), ("PT999", 2)] {
        assert_code(&poll.gate().args(["explain", code]).output().unwrap(), status);
    }
}

#[test]
fn a_recording_with_losses_is_refused() {
    let poll = Poll::new();
    let trace = poll.record("good.ptrace", 1, false);
    // Truncated, as if the recorder had been killed.
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 200]).unwrap();
    let gate = |more: &[&str]| {
        poll.gate().args(["--limit", "total_execs=|1000"]).args(more).arg(&trace).output().unwrap()
    };
    let refused = gate(&[]);
    assert_code(&refused, 1);
    assert!(complains(&refused).contains("cannot be trusted"), "{}", complains(&refused));
    assert_code(&gate(&["--allow-doubts"]), 0);
}

#[test]
fn a_reader_that_has_enough_does_not_change_the_verdict() {
    // More than the capacity of a pipe, whose reader has exited.
    let all = "spawns{parent=\"*\",child=\"*\"}=|0";
    let mut gate = proctrace()
        .args(["gate", "--top", "100000", "--limit", "execs{command=\"*\"}=|0"])
        .args(["--limit", "directory_failed_lookups{directory=\"*\",kind=\"*\"}=|0"])
        .args(["--limit", all])
        .arg(alice("before"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(gate.stdout.take());
    assert_eq!(gate.wait().unwrap().code(), Some(3));
    // A full disk is an error of the gate itself.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = proctrace()
        .args(["gate", "--limit", "total_execs=|99999"])
        .arg(alice("after"))
        .stdout(full)
        .output()
        .unwrap();
    assert_code(&output, 1);
    assert!(complains(&output).contains("standard output"), "{}", complains(&output));
}

#[test]
fn what_is_not_whole_is_no_measure() {
    let poll = Poll::new();
    let cut = poll.directory.path().join("cut.ptrace");
    let bytes = fs::read(alice("after")).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let output = poll.gate().arg("init").arg(&cut).output().unwrap();
    assert_code(&output, 1);
    assert!(complains(&output).contains("cannot be trusted"), "{}", complains(&output));
    for arguments in [&["diff"][..], &["metrics"]] {
        let mut command = proctrace();
        command.args(arguments).arg(&cut);
        if arguments == ["diff"] {
            command.arg(alice("before"));
        }
        let output = command.output().unwrap();
        assert_code(&output, 0);
        assert!(complains(&output).contains("cannot be trusted"), "{}", complains(&output));
        assert!(!says(&output).contains("exact"), "{}", says(&output));
    }
}
