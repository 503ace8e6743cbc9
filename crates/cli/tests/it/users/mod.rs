//! Two users and a binary with file capabilities, for recordings by a non-root user.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_wire::Frames;
use rustix::fs::{XattrFlags, setxattr};
use tempfile::TempDir;

use crate::common::{copy, fixture, proctrace};

/// The variable with a secret value.
pub(crate) const SECRET: &str = "PT_SECRET";

/// linux/capability.h
pub(crate) const CAP_NET_RAW: u32 = 13;
pub(crate) const CAP_PERFMON: u32 = 38;
pub(crate) const CAP_BPF: u32 = 39;

/// Maximum number of stages that a process makes.
const STAGES_MAX: u32 = 100;

/// Two users for this test, and their programs.
pub(crate) struct Stage {
    directory: TempDir,
    /// The recording user.
    pub(crate) user: u32,
    /// The other user.
    pub(crate) other: u32,
}

impl Stage {
    /// A world-accessible directory with a recorder that its user may run.
    pub(crate) fn new() -> Self {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        // Derived from the number of this process: no two test processes that run at the same time share a user.
        let stage = STAGES.fetch_add(1, Ordering::Relaxed);
        assert!(stage < STAGES_MAX);
        let user = 1_000_000 + 2 * (STAGES_MAX * std::process::id() + stage);
        let stage = Self { directory: tempfile::tempdir().unwrap(), user, other: user + 1 };
        fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o755)).unwrap();
        copy(Path::new(env!("CARGO_BIN_EXE_proctrace")), &stage.binary(), 0o755);
        give_capabilities(&stage.binary(), &[CAP_BPF, CAP_PERFMON]);
        let traces = stage.path().join("traces");
        fs::create_dir(&traces).unwrap();
        chown(&traces, Some(user), Some(user)).unwrap();
        stage
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn binary(&self) -> PathBuf {
        self.path().join("proctrace")
    }

    /// Restricts access to the user's group.
    pub(crate) fn for_its_user_alone(&self) {
        chown(self.binary(), None, Some(self.user)).unwrap();
        fs::set_permissions(self.binary(), fs::Permissions::from_mode(0o750)).unwrap();
        // chown(2) clears them
        give_capabilities(&self.binary(), &[CAP_BPF, CAP_PERFMON]);
    }

    /// proctrace as `uid`: root's has all privileges, a user's those of its file.
    pub(crate) fn recorder(&self, uid: u32, subcommand: &str) -> Command {
        let mut command = if uid == 0 { proctrace() } else { Command::new(self.binary()) };
        command.env_remove("LD_LIBRARY_PATH").arg(subcommand);
        command.current_dir(self.path().join("traces"));
        run_as(&mut command, uid);
        command
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.path().join("traces/test.ptrace")
    }

    /// A copy of `marked` with the mark in its name.
    pub(crate) fn program(&self, mark: &str) -> PathBuf {
        let program = self.path().join(format!("{mark}.exe"));
        if !program.exists() {
            copy(&fixture("marked"), &program, 0o755);
        }
        program
    }

    /// The same with the set-user-ID bit, owned by `owner`.
    pub(crate) fn set_user_id_program(&self, mark: &str, owner: u32) -> PathBuf {
        let program = self.program(mark);
        chown(&program, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        program
    }

    /// `marked` as `uid`, with the mark everywhere possible.
    pub(crate) fn marked(&self, uid: u32, mark: &str, steps: &[&str]) -> Command {
        let directory = self.path().join(format!("{mark}.cwd"));
        fs::create_dir_all(directory.join(format!("{mark}.sub"))).unwrap();
        let mut command = Command::new(self.program(mark));
        command.env_clear().env(SECRET, format!("{mark}.env")).current_dir(directory);
        command.arg(mark).args(steps);
        run_as(&mut command, uid);
        command
    }

    /// A process that works, waits for a line, executes the same program, works and waits again. A
    /// program executed during the recording is recorded with its environment, an earlier one
    /// without.
    pub(crate) fn actor(&self, uid: u32, mark: &str) -> Actor {
        let program = self.program(mark);
        let mut command = self.marked(uid, mark, &["work", "ready", "wait", "exec"]);
        command.arg(program).args([mark, "work", "ready", "wait"]);
        Actor::start(command)
    }

    /// A recording by `uid`, including the secret variable if permitted.
    pub(crate) fn record(&self, uid: u32, options: &[&str]) -> Command {
        let mut command = self.recorder(uid, "record");
        command.args(["--env", SECRET, "--output"]).arg(self.trace()).args(options);
        command
    }

    /// A recorder that has announced that it is recording.
    pub(crate) fn attached(&self, uid: u32, options: &[&str]) -> Attached {
        let mut child = self.record(uid, options).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Ctrl-C to stop") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it does not record: {said}");
        }
        Attached { child, stderr, said }
    }
}

/// A running recording.
pub(crate) struct Attached {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Attached {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it like Ctrl-C; returns its stderr.
    pub(crate) fn interrupt(self) -> String {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
        self.wait()
    }

    pub(crate) fn wait(mut self) -> String {
        let status = self.child.wait().unwrap();
        self.stderr.read_to_string(&mut self.said).unwrap();
        assert!(status.success(), "{status} {}", self.said);
        std::mem::take(&mut self.said)
    }
}

impl Drop for Attached {
    /// Ends the child, which nothing else would end after a failure.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that performs one step per line of input.
pub(crate) struct Actor {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Actor {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut actor = Self { child, input, output };
        actor.ready();
        actor
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Waits until it reports that it is ready.
    pub(crate) fn ready(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }

    pub(crate) fn tell(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Lets it run to its end.
    pub(crate) fn end(mut self) -> i32 {
        let mut input = self.input.take().unwrap();
        // It may have exited already.
        let _ = input.write_all(b"\n");
        drop(input);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The contents of a trace, searched for forbidden or required strings.
pub(crate) struct Contents {
    bytes: Vec<u8>,
}

impl Contents {
    /// The raw file, all its records decompressed, and the output of `dump`.
    pub(crate) fn of(trace: &Path) -> Self {
        let mut bytes = fs::read(trace).unwrap();
        let mut reader = proctrace_trace::Reader::open(trace).unwrap();
        let mut records = 0;
        while let Some(block) = reader.next_block() {
            for frame in Frames::new(&block.bytes).flatten() {
                bytes.extend_from_slice(frame.bytes);
                records += 1;
            }
        }
        assert!(reader.damage().is_empty() && records > 0, "{:?}", reader.damage());
        for option in [&["dump"][..], &["dump", "--header"]] {
            let Output { status, stdout, .. } =
                proctrace().args(option).arg(trace).output().unwrap();
            assert!(status.success());
            bytes.extend(stdout);
        }
        Self { bytes }
    }

    pub(crate) fn hold(&self, text: &str) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Fails if the mark occurs anywhere.
    pub(crate) fn assert_nothing_of(&self, mark: &str) {
        if let Some(at) =
            self.bytes.windows(mark.len()).position(|window| window == mark.as_bytes())
        {
            let around = &self.bytes[at.saturating_sub(100)..(at + 60).min(self.bytes.len())];
            panic!("{mark} is in the trace: {}", String::from_utf8_lossy(around));
        }
    }

    /// Fails unless all traces of a working `marked` are recorded.
    pub(crate) fn assert_all_of(&self, mark: &str) {
        self.assert_run_of(mark);
        for suffix in ["open", "stat", "run", "sub"] {
            assert!(self.hold(&format!("{mark}.{suffix}")), "no {suffix} of {mark}");
        }
        // Its name, without a suffix.
        assert!(self.hold(&format!("{mark}\0")), "no name of {mark}");
    }

    /// Fails unless a program run with this mark is recorded in full.
    pub(crate) fn assert_run_of(&self, mark: &str) {
        for suffix in ["exe", "cwd", "env"] {
            assert!(self.hold(&format!("{mark}.{suffix}")), "no {suffix} of {mark}");
        }
    }
}

/// A cgroup for this test.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    pub(crate) fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let root = mounts.lines().find_map(|mount| {
            let (mount, filesystem) = mount.split_once(" - ")?;
            filesystem.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
        });
        let root = Path::new(root.expect("cgroup v2 is mounted"));
        let path = root.join(format!("proctrace-test-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn add(&self, actor: &Actor) {
        fs::write(self.0.join("cgroup.procs"), actor.pid()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // After a failure processes may still be in it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The capability sets in a `status` of /proc, by their names there.
pub(crate) fn capabilities(status: &Path) -> Vec<(String, u64)> {
    let status = fs::read_to_string(status).unwrap();
    let set = |line: &str| {
        let (name, value) = line.split_once(":\t")?;
        Some((name.to_owned(), u64::from_str_radix(value, 16).ok()?))
    };
    status.lines().filter(|line| line.starts_with("Cap")).filter_map(set).collect()
}

/// Like `setcap LIST+ep`: struct vfs_cap_data of linux/capability.h, revision 2.
pub(crate) fn give_capabilities(file: &Path, capabilities: &[u32]) {
    const REVISION_2: u32 = 0x0200_0000;
    const EFFECTIVE: u32 = 1;
    let permitted: u64 = capabilities.iter().map(|capability| 1 << capability).sum();
    let words = [REVISION_2 | EFFECTIVE, permitted as u32, 0, (permitted >> 32) as u32, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    setxattr(file, "security.capability", &bytes, XattrFlags::empty()).unwrap();
}

/// Sets real, effective and saved ids, without supplementary groups.
pub(crate) fn run_as(command: &mut Command, uid: u32) {
    if uid != 0 {
        command.gid(uid).uid(uid);
    }
}
