//! A recorder of the jobs of a node, which are cgroups below one of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::proctrace;

/// A recorder of the jobs below a cgroup of its own.
pub(crate) struct Node {
    place: TempDir,
    pub(crate) cgroup: PathBuf,
    pub(crate) recorder: Option<(Child, BufReader<ChildStderr>)>,
}

impl Node {
    pub(crate) fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let root = mounts.lines().find_map(|line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            filesystem.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
        });
        let name = format!("proctrace-{name}-{}", std::process::id());
        let cgroup = Path::new(root.expect("cgroup v2 is mounted")).join(name);
        fs::create_dir(&cgroup).unwrap();
        Self { place: tempfile::tempdir().unwrap(), cgroup, recorder: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn start(&mut self, options: &[&str]) {
        let mut recorder = self.command(options).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(recorder.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("recording"), "{line}");
        self.recorder = Some((recorder, stderr));
    }

    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let name = self.cgroup.file_name().unwrap().to_str().unwrap();
        let mut command = proctrace();
        command.current_dir(self.place.path()).args(["record", "-a", "--output", "jobs"]);
        command.arg(format!("--per-cgroup={name}/job_*")).args(options);
        command
    }

    /// A command that moves itself into a new cgroup first.
    pub(crate) fn job(&self, name: &str, command: &[&str]) -> Command {
        let cgroup = self.cgroup.join(name);
        fs::create_dir_all(&cgroup).unwrap();
        let mut shell = Command::new("sh");
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", cgroup.display());
        shell.args(["-c", &enter, "sh"]).args(command).env_remove("LD_LIBRARY_PATH");
        shell
    }

    /// Waits until a cgroup has no processes, and removes it; returns the CPU time that the kernel counted.
    pub(crate) fn remove(&self, name: &str) -> u64 {
        let cgroup = self.cgroup.join(name);
        let field = |file: &str, name: &str| -> u64 {
            let text = fs::read_to_string(cgroup.join(file)).unwrap();
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
        };
        wait_until("a cgroup to become empty", || field("cgroup.events", "populated ") == 0);
        let used_ns = field("cpu.stat", "usage_usec ") * 1000;
        fs::remove_dir(&cgroup).unwrap();
        used_ns
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let (recorder, _) = self.recorder.as_ref().unwrap();
        kill(Pid::from_raw(i32::try_from(recorder.id()).unwrap()), signal).unwrap();
    }

    /// Ends the recorder; returns what it has said.
    pub(crate) fn finish(&mut self) -> String {
        let (code, said) = self.stop();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// Ends the recorder; returns its status and what it has said.
    pub(crate) fn stop(&mut self) -> (Option<i32>, String) {
        self.signal(Signal::SIGTERM);
        let (mut recorder, mut stderr) = self.recorder.take().unwrap();
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        (recorder.wait().unwrap().code(), said)
    }

    /// Reads on until the recorder says this.
    pub(crate) fn wait_for(&mut self, message: &str) {
        let (_, stderr) = self.recorder.as_mut().unwrap();
        let mut said = String::new();
        while !said.contains(message) {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
        }
    }

    /// The traces of a job, in order.
    pub(crate) fn traces(&self, job: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("jobs")).unwrap();
        let mut traces: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let beginning = format!("{job}.");
        traces.retain(|trace| trace.file_name().unwrap().to_str().unwrap().starts_with(&beginning));
        traces.sort();
        traces
    }

    pub(crate) fn trace(&self, job: &str) -> PathBuf {
        let traces = self.traces(job);
        assert_eq!(traces.len(), 1, "{job}: {traces:?}");
        traces[0].clone()
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Value> {
        let output = proctrace()
            .args(["fleet", sql, "--format", "ndjson"])
            .arg(self.path("lake"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some((recorder, _)) = &mut self.recorder {
            let _ = recorder.kill();
            let _ = recorder.wait();
        }
        for entry in fs::read_dir(&self.cgroup).into_iter().flatten().flatten() {
            for below in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(below.path());
            }
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&self.cgroup);
    }
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
