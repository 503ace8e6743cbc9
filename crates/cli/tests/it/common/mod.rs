//! Records programs and inspects the results like a user: through the binary alone.

pub(crate) mod declared;
pub(crate) mod faults;
pub(crate) mod node;
pub(crate) mod records;
pub(crate) mod scene;
pub(crate) mod stage;
pub(crate) mod stalls;
pub(crate) mod steps;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub(crate) fn proctrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctrace"));
    // cargo adds its directories to the loader's search path, which would distort the payload's
    // look-ups
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// The numbers of the CPUs on which this process may run, for taskset(1).
pub(crate) fn cpus() -> Vec<String> {
    let may_run = nix::sched::sched_getaffinity(nix::unistd::Pid::this()).unwrap();
    let numbers = 0..nix::sched::CpuSet::count();
    numbers.filter(|cpu| may_run.is_set(*cpu).unwrap()).map(|cpu| cpu.to_string()).collect()
}

/// A fixture program.
pub(crate) fn fixture(name: &str) -> PathBuf {
    proctrace_fixtures::program(name)
}

/// `proctrace-payload`, in the directory of the binary under test. cargo does not build programs of
/// other packages for a test, unless all of the workspace are run; `cargo xtask test` builds it first.
pub(crate) fn payload() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_proctrace")).with_file_name("proctrace-payload");
    let built = program.is_file();
    assert!(built, "build it first: cargo build --release --package proctrace-payload");
    program
}

/// Copies a program in a process of its own: what another test starts meanwhile may hold a file of ours open for writing, and
/// such a file cannot be executed.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "{}", to.display());
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
}

/// The options of a recording.
pub(crate) struct Recorder {
    pub(crate) directory: TempDir,
    pub(crate) command: Command,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = proctrace();
        command.args(["record", "--output"]).arg(directory.path().join("test.ptrace"));
        command.current_dir(directory.path());
        Self { directory, command }
    }

    pub(crate) fn option<S: AsRef<OsStr>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.command.args(options);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.directory.path().join("test.ptrace")
    }

    /// Records a fixture program.
    pub(crate) fn fixture(self, name: &str, arguments: &[&str]) -> Recorded {
        let program = fixture(name);
        self.run([program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new)))
    }

    pub(crate) fn run<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Recorded {
        self.command.arg("--").args(command);
        let output = self.command.output().unwrap();
        Recorded { directory: self.directory, output }
    }
}

/// A finished recording.
pub(crate) struct Recorded {
    pub(crate) directory: TempDir,
    pub(crate) output: Output,
}

impl Recorded {
    pub(crate) fn trace(&self) -> PathBuf {
        self.directory.path().join("test.ptrace")
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    /// The events, after checking that the command exited with `code`, nothing was lost and the
    /// consistency laws hold.
    pub(crate) fn sound(&self, code: i32) -> Events {
        assert_eq!(self.code(), code, "{}", self.stderr());
        let check = proctrace().arg("check").arg(self.trace()).output().unwrap();
        let says = String::from_utf8_lossy(&check.stdout).into_owned();
        assert_eq!(check.status.code(), Some(0), "{says}");
        let findings = report(&self.trace());
        let health = &findings["health"];
        assert_eq!(health["complete"], true);
        assert_eq!(health["lost"], 0);
        assert_eq!(health["damage"].as_array().unwrap().len(), 0);
        assert_laws_hold(health);
        let events = Events::of(&self.trace());
        events.assert_lives_are_in_order();
        events
    }
}

/// The output of `report --json`.
pub(crate) fn report(trace: &Path) -> Value {
    let output = proctrace().args(["report", "--json"]).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The tables of a section of the report, by name, each as a list of all its rows.
pub(crate) fn section(trace: &Path, name: &str, options: &[&str]) -> Value {
    let output = proctrace()
        .args(["report", "--section", name, "--format", "json", "--all"])
        .args(options)
        .arg(trace)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    tables.iter().map(|table| (text(&table["name"]).to_owned(), table["rows"].clone())).collect()
}

/// The header and the trailer of a trace.
pub(crate) fn header(trace: &Path) -> Value {
    let output = proctrace().args(["dump", "--header"]).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The events of a trace, as `dump` prints them.
pub(crate) struct Events(pub(crate) Vec<Value>);

impl Events {
    /// Asserts that no task has events before its birth or after its exit, whichever CPU reported them.
    fn assert_lives_are_in_order(&self) {
        let mut alive = std::collections::BTreeSet::new();
        for event in &self.0 {
            // Ticks and losses do not belong to a task.
            let tid = event["tid"].as_u64().unwrap_or(0);
            match text(&event["kind"]) {
                "attach" => assert!(alive.insert(tid), "{event}"),
                "fork" => {
                    assert!(alive.contains(&tid), "{event}");
                    assert!(alive.insert(u64_of(&event["child_tid"])), "{event}");
                }
                "exec" => {
                    // A thread that execs takes over its leader's id, and the leader is gone.
                    if let Some(old) = event["old_tid"].as_u64() {
                        assert!(alive.remove(&old), "{event}");
                        alive.insert(tid);
                    }
                    assert!(alive.contains(&tid), "{event}");
                }
                "exit" => assert!(alive.remove(&tid), "{event}"),
                "exec_failed" | "lookup_failed" | "rename" | "blind" => {
                    assert!(alive.contains(&tid), "{event}");
                }
                _ => {}
            }
        }
    }

    pub(crate) fn of(trace: &Path) -> Self {
        let output = proctrace().arg("dump").arg(trace).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let times: Vec<u64> = events.iter().map(|e| e["time_ns"].as_u64().unwrap()).collect();
        assert!(times.is_sorted(), "events are in order of time");
        Self(events)
    }

    pub(crate) fn all(&self) -> &[Value] {
        &self.0
    }

    pub(crate) fn kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> + 'a {
        self.0.iter().filter(move |event| event["kind"] == kind)
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.kind(kind).count()
    }

    /// The command itself.
    pub(crate) fn root(&self) -> &Value {
        let roots: Vec<&Value> = self.kind("attach").collect();
        assert_eq!(roots.len(), 1);
        assert_eq!(roots[0]["root"], true);
        roots[0]
    }

    /// Forks that created a process, or those that created a thread.
    pub(crate) fn forks(&self, thread: bool) -> Vec<&Value> {
        self.kind("fork").filter(|fork| fork["thread"] == thread).collect()
    }

    /// Number of processes by exit code.
    pub(crate) fn codes(&self) -> BTreeMap<i64, usize> {
        let mut codes = BTreeMap::new();
        for exit in self.kind("exit").filter(|exit| exit["process"] == true) {
            if let Some(code) = exit["code"].as_i64() {
                *codes.entry(code).or_default() += 1;
            }
        }
        codes
    }

    /// The exit of the process with this pid.
    pub(crate) fn end_of(&self, pid: &Value) -> &Value {
        let mut ends =
            self.kind("exit").filter(|exit| exit["pid"] == *pid && exit["process"] == true);
        let end = ends.next().unwrap_or_else(|| panic!("no end of {pid}"));
        assert!(ends.next().is_none(), "two ends of {pid}");
        end
    }
}

pub(crate) fn u64_of(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a count: {value}"))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// Every law holds. Unchecked laws are reported as such, and only for these reasons: tasks were
/// still alive, look-ups were excluded, or there was no command to wait for.
pub(crate) fn assert_laws_hold(health: &Value) {
    let laws = health["laws"].as_array().unwrap();
    for law in laws {
        if let Some(why) = law["not_checked"].as_str() {
            let reasons = ["live tasks", "still alive", "--misses", "no command was waited for"];
            assert!(law["holds"].is_null(), "{law}");
            assert!(reasons.iter().any(|reason| why.contains(reason)), "{law}");
        } else {
            assert_eq!(law["holds"], true, "{law}");
        }
    }
    // Laws on forks, parents, starts and waits depend on the records only.
    assert!(laws.iter().filter(|law| law["holds"] == true).count() >= 4, "{laws:?}");
}
