//! A job notices nothing of its recorder: what programs print about how they are run is the same without one, by each
//! backend. Where ptrace(2) cannot be hidden, what differs is listed here, and nowhere else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::stage::{Broker, Stage};
use proctrace_fixtures::programs;

/// Programs with the checks of these sanitizers: leaks, a read behind a block, a sum that is too large.
const SANITIZED: &str = "
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	volatile int most = INT_MAX;
	char *volatile block = malloc(16);

	if (argc > 1 && !strcmp(argv[1], \"overrun\"))
		return block[16];
	if (argc > 1 && !strcmp(argv[1], \"leak\")) {
		block = 0;
		return 0;
	}
	if (argc == 1)
		most = most + 1;
	free(block);
	return 0;
}
";

/// Differences by ptrace, and why they must be.
const BY_PTRACE: &[(&str, &str)] = &[
    // A task that a tracer has stopped is shown so: task_state_array in fs/proc/array.c.
    ("letter_of_a_stopped_child", "'t'"),
    // LSAN_OPTIONS: LeakSanitizer is a tracer, too. `record` says so at its start.
    ("the_environment", ""),
    ("a_program_with_a_leak", "(0, False, False)"),
    // seccomp(2) wants it of ordinary users for a filter.
    ("privileges_can_be_gained", "'1'"),
    ("seccomp_filters", "'2'"),
    ("a_tracer", "True"),
];

/// Minimum number of behaviours that are compared.
const BEHAVIOURS_MIN: usize = 55;

struct Job {
    stage: Stage,
}

impl Job {
    fn new() -> Self {
        let stage = Stage::new();
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/root/unharmed/behaviours.py");
        stage.copy(&script, "behaviours.py", 0o644);
        fs::write(stage.path("sanitized.c"), SANITIZED).unwrap();
        for sanitizer in ["address", "undefined"] {
            let compiled = Command::new("gcc")
                .arg(format!("-fsanitize={sanitizer}"))
                .arg("-o")
                .args([stage.path(sanitizer), stage.path("sanitized.c")])
                .output()
                .unwrap();
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        }
        // Where every user may execute them.
        let fixtures = stage.path("fixtures");
        fs::create_dir(&fixtures).unwrap();
        for entry in fs::read_dir(programs()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = format!("fixtures/{}", path.file_name().unwrap().to_str().unwrap());
                stage.copy(&path, &name, 0o755);
            }
        }
        Self { stage }
    }

    /// The same for all, without what differs between users' shells.
    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(self.stage.directory.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.stage.directory.path())
            .env("HERE", fs::canonicalize(self.stage.directory.path()).unwrap())
            .env("FIXTURES", self.stage.path("fixtures"))
            .env("ASAN", self.stage.path("address"))
            .env("UBSAN", self.stage.path("undefined"))
            .env("PROCTRACE_BROKER", &self.stage.socket)
            .stdin(Stdio::null())
    }

    fn bare(&self, as_root: bool) -> BTreeMap<String, String> {
        let program = "/usr/bin/python3";
        let mut command = if as_root { Command::new(program) } else { self.stage.as_user(program) };
        let output = self.prepare(&mut command).arg("behaviours.py").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        lines(&output)
    }

    fn recorded(&self, backend: &str) -> (BTreeMap<String, String>, String) {
        let mut command = self.stage.recorder(backend, &[]);
        let command = self.prepare(&mut command).args(["/usr/bin/python3", "behaviours.py"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (lines(&output), said)
    }
}

fn lines(output: &Output) -> BTreeMap<String, String> {
    let lines: BTreeMap<String, String> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, found)| (name.to_owned(), found.to_owned()))
        .collect();
    assert!(lines.len() >= BEHAVIOURS_MIN, "{lines:?}");
    lines
}

/// Differences: the behaviour, and what it is when it is recorded.
fn differences(
    bare: &BTreeMap<String, String>,
    recorded: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    assert!(bare.keys().eq(recorded.keys()), "{bare:?}\n{recorded:?}");
    recorded
        .iter()
        .filter(|(name, found)| bare[*name] != **found)
        .map(|(name, found)| (name.clone(), found.clone()))
        .collect()
}

#[test]
fn nothing_differs_by_ebpf() {
    let job = Job::new();
    let bare = job.bare(true);
    let (recorded, _) = job.recorded("ebpf");
    assert_eq!(differences(&bare, &recorded), BTreeMap::new());
}

#[test]
fn nothing_differs_by_a_broker() {
    let mut job = Job::new();
    let broker = Broker::start(&job.stage, &[]);
    job.stage.socket.clone_from(&broker.socket);
    let bare = job.bare(false);
    let (recorded, _) = job.recorded("broker");
    assert_eq!(differences(&bare, &recorded), BTreeMap::new());
}

#[test]
fn by_ptrace_only_what_is_listed_differs_and_it_is_said() {
    let job = Job::new();
    let bare = job.bare(false);
    let (recorded, said) = job.recorded("ptrace");
    let differ = differences(&bare, &recorded);
    let names: Vec<&str> = differ.keys().map(String::as_str).collect();
    let mut listed: Vec<&str> = BY_PTRACE.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(names, listed, "{differ:?}");
    for (name, found) in BY_PTRACE.iter().filter(|(_, found)| !found.is_empty()) {
        assert_eq!(&differ[*name], found, "{name}");
    }
    let without = recorded["the_environment"].replace("'LSAN_OPTIONS', ", "");
    assert_eq!(without, bare["the_environment"]);
    assert!(said.contains("no leak checks (LSan)"), "{said}");
    assert!(said.contains("left to a debugger or tracer of the command"), "{said}");
    assert!(!said.contains("was refused"), "{said}");
}
