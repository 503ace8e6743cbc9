//! HTCondor's wrapper of jobs: the job comes first, whatever becomes of its recording.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::proctrace;
use serde_json::Value;

/// A slot of a node: a scratch directory, and a PATH with our program first.
struct Slot {
    scratch: tempfile::TempDir,
}

impl Slot {
    fn new() -> Self {
        Self { scratch: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The wrapper with a job that writes `ran` when it runs, and exits with 3.
    fn wrapper(&self) -> Command {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let wrapper = here.join("../node/batch/condor-job-wrapper.sh");
        let program = Path::new(env!("CARGO_BIN_EXE_proctrace")).parent().unwrap();
        let mut command = Command::new("sh");
        command.arg(wrapper).current_dir(self.scratch.path());
        command.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
        command.env("_CONDOR_SCRATCH_DIR", self.scratch.path());
        command.env_remove("LD_LIBRARY_PATH").env_remove("SUDO_UID");
        command.env("PROCTRACE_BROKER", self.path("no-broker"));
        command
    }

    fn run(&self, change: impl FnOnce(&mut Command)) -> Output {
        let mut command = self.wrapper();
        let ran = self.path("ran");
        let script = format!("echo ran >> {}; exit 3", ran.display());
        command.args(["sh", "-c", &script]);
        change(&mut command);
        let output = command.output().unwrap();
        let ran = fs::read_to_string(&ran).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr);
        // Once, not again after a failure of the recorder.
        assert_eq!((output.status.code(), &*ran), (Some(3), "ran\n"), "{said}");
        output
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_job_is_recorded_under_its_number() {
    let slot = Slot::new();
    let ad = slot.path(".job.ad");
    fs::write(&ad, "ClusterId = 4711\nProcId = 3\nOwner = \"alice\"\n").unwrap();
    let output = slot.run(|job| {
        job.env("_CONDOR_JOB_AD", &ad).env("_CONDOR_SLOT", "slot1_2");
    });
    assert_eq!(said(&output), "");
    let sql = "SELECT batch_system, batch_id, queue, exit_code FROM jobs";
    let mut fleet = proctrace();
    fleet.args(["fleet", sql, "--format", "json"]).arg(slot.path("proctrace"));
    let rows: Value = serde_json::from_slice(&fleet.output().unwrap().stdout).unwrap();
    let expected = serde_json::json!([
        {"batch_system": "condor", "batch_id": "4711.3", "queue": "slot1_2", "exit_code": 3}
    ]);
    assert_eq!(rows, expected);
    assert!(!slot.path(".job.ptrace").exists());
}

#[test]
fn a_job_runs_and_keeps_its_status_whatever_cannot_be_written() {
    // A file where a directory should be, which not even root can write into.
    let lake = Slot::new();
    fs::write(lake.path("file"), "").unwrap();
    let output = lake.run(|job| {
        job.env("PROCTRACE_LAKE", lake.path("file/lake"));
    });
    assert!(
        said(&output).contains("the recording failed, not the job, which exited with 3"),
        "{}",
        said(&output)
    );

    let scratch = Slot::new();
    let output = scratch.run(|job| {
        job.env("_CONDOR_SCRATCH_DIR", "/no/such/directory");
    });
    assert!(said(&output).contains("'/no/such/directory' cannot be written"), "{}", said(&output));

    let trace = Slot::new();
    fs::create_dir(trace.path(".job.ptrace")).unwrap();
    let output = trace.run(|_| {});
    assert!(said(&output).contains("this job is not recorded"), "{}", said(&output));

    let none = Slot::new();
    let output = none.run(|job| {
        job.env("PATH", "/usr/bin:/bin");
    });
    assert!(said(&output).contains("there is no proctrace"), "{}", said(&output));

    // No file may grow, not even the trace; and one descriptor more than the job needs is too many.
    for limit in ["ulimit -f 0", "ulimit -n 12"] {
        let slot = Slot::new();
        let wrapper = slot.wrapper();
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("{limit}; exec sh \"$@\""), "sh"]).args(wrapper.get_args());
        limited.args(["sh", "-c", "mkdir ran && exit 3"]).current_dir(slot.scratch.path());
        for (name, value) in wrapper.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let output = limited.output().unwrap();
        // A directory that is there already cannot be made again.
        assert_eq!(output.status.code(), Some(3), "{limit}: {}", said(&output));
        assert!(slot.path("ran").is_dir());
    }
}

#[test]
fn what_killed_a_job_is_passed_on_and_what_cannot_run_is_told_apart() {
    let slot = Slot::new();
    let run = |arguments: &[&str]| slot.wrapper().args(arguments).output().unwrap();
    let killed = run(&["sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.code(), Some(143), "{}", said(&killed));
    assert_eq!(run(&["/no/such/program"]).status.code(), Some(127));
    let file = slot.path("no-program");
    fs::write(&file, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(run(&[file.to_str().unwrap()]).status.code(), Some(126));
}
