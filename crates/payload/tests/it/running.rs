//! The binary: the files and processes it leaves behind, and its messages on errors.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn payload(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctrace-payload"));
    command.args(arguments).env("TMPDIR", place).current_dir(place).env_remove("LD_LIBRARY_PATH");
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn entries(place: &Path) -> usize {
    std::fs::read_dir(place).unwrap().count()
}

#[test]
fn nothing_is_left_unless_it_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let small = ["run", "athena-mp", "--scale", "0.01", "--work-factor", "0"];
    let output = payload(place.path(), &small).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(entries(place.path()), 0);

    let keep = [&small[..], &["--keep", "--work", "here", "--declare", "declared.json"]].concat();
    let output = payload(place.path(), &keep).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("kept "), "{}", stderr(&output));
    let log = place.path().join("here/run/worker_1/AthenaMP.log");
    assert!(std::fs::read_to_string(log).unwrap().contains("Number of events processed: "));
    // 4 events of 256 KiB.
    let merged = place.path().join("here/run/merged.pool.root");
    assert_eq!(merged.metadata().unwrap().len(), 4 * (256 << 10));
    assert!(place.path().join("declared.json").is_file());

    // Existing files are not modified.
    let output = payload(place.path(), &keep).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not empty"), "{}", stderr(&output));
}

#[test]
fn only_a_marked_work_directory_is_used_again() {
    let place = tempfile::tempdir().unwrap();
    let run = ["run", "athena-mp", "--scale", "0.01", "--work-factor", "0", "--quiet"];
    let again = [&run[..], &["--work", "here", "--reuse"]].concat();
    let here = place.path().join("here");
    for _ in 0..2 {
        let output = payload(place.path(), &again).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let merged = here.join("run/merged.pool.root");
        assert_eq!(merged.metadata().unwrap().len(), 4 * (256 << 10));
        std::fs::write(here.join("run/left"), "").unwrap();
    }
    std::fs::remove_file(here.join("proctrace-payload-work")).unwrap();
    let output = payload(place.path(), &again).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not empty"), "{}", stderr(&output));
    assert!(here.join("run/left").is_file());
}

#[test]
fn a_signal_ends_all_of_it() {
    let place = tempfile::tempdir().unwrap();
    let long = ["run", "storm-cpu", "--scale", "100", "--quiet"];
    let child = payload(place.path(), &long).spawn().unwrap();
    let pid = Pid::from_raw(child.id().cast_signed());
    let storm = || processes_in(place.path());
    let begun = Instant::now();
    while storm().is_empty() {
        // Compiling its programs takes seconds on a busy machine; this only ends a hanging test.
        assert!(begun.elapsed() < Duration::from_secs(300), "the payload starts no program");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(pid, Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15), "{:?}", output.status.signal());
    assert_eq!(storm(), Vec::<u32>::new());
    assert_eq!(entries(place.path()), 0);
}

/// Processes that execute a program in this directory.
fn processes_in(place: &Path) -> Vec<u32> {
    let place = place.canonicalize().unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe.starts_with(&place))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[test]
fn mistakes_are_told() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("bad.toml"), "[scenario]\ntitle = 5\n").unwrap();
    for (arguments, code, says) in [
        (&["run", "bad.toml"][..], 1, "bad.toml:2:9: scenario.title: invalid type"),
        (&["run", "nothing"], 1, "proctrace-payload list"),
        (&["declare", "athena-mp", "--scale", "0"], 1, "scale is 0"),
        (&["declare", "alice-o2-before", "--scale", "100"], 1, "too many"),
        (&["run", "athena-mp", "--workers", "many"], 2, "--workers"),
        (&["run"], 2, "NAME|FILE"),
    ] {
        let output = payload(place.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
    let mut without = payload(place.path(), &["run", "alice-o2-before", "--scale", "0.01"]);
    let output = without.env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("in PATH"), "{}", stderr(&output));
    assert_eq!(entries(place.path()), 1);
}

/// A process that does not do what was planned is detected.
#[test]
fn a_failure_below_is_a_failure() {
    let place = tempfile::tempdir().unwrap();
    let text = "[scenario]\ntitle = \"t\"\npaper = \"p\"\nlook_for = \"l\"\ndefault_scale = 1\n\
                default_workers = 1\n[storm]\nof = { spawn = {} }\ncount = 3\n";
    std::fs::write(place.path().join("spawn.toml"), text).unwrap();
    // true(1) that fails.
    std::fs::create_dir(place.path().join("bin")).unwrap();
    let path = place.path().join("bin/true");
    std::os::unix::fs::symlink("/bin/false", path).unwrap();
    let mut run = payload(place.path(), &["run", "spawn.toml"]);
    let output = run.env("PATH", place.path().join("bin")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("ended with status"), "{}", stderr(&output));
    assert!(stderr(&output).contains("did not run as planned"), "{}", stderr(&output));
    assert_eq!(entries(place.path()), 2);
}
