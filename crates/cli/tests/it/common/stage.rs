//! Recording as an ordinary user, and the broker that may serve it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{Recorded, copy, fixture};

/// nobody
pub(crate) const USER: u32 = 65534;

/// A directory in which an ordinary user can record.
pub(crate) struct Stage {
    pub(crate) directory: TempDir,
    /// Path at which a broker may listen.
    pub(crate) socket: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("no-broker");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let stage = Self { directory, socket };
        stage.copy(Path::new(env!("CARGO_BIN_EXE_proctrace")), "proctrace", 0o755);
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn copy(&self, from: &Path, name: &str, mode: u32) -> PathBuf {
        let to = self.path(name);
        copy(from, &to, mode);
        to
    }

    pub(crate) fn fixture(&self, name: &str) -> PathBuf {
        self.copy(&fixture(name), name, 0o755)
    }

    /// The payload's own command, as it would run without a recorder.
    pub(crate) fn as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("PROCTRACE_BROKER", &self.socket);
        command
            .uid(USER)
            .gid(USER)
            .current_dir(self.directory.path())
            .env_remove("LD_LIBRARY_PATH");
        command
    }

    pub(crate) fn recorder(&self, backend: &str, options: &[&str]) -> Command {
        let mut command = match backend {
            "ebpf" => Command::new(self.path("proctrace")),
            _ => self.as_user(self.path("proctrace")),
        };
        command.current_dir(self.directory.path()).env_remove("LD_LIBRARY_PATH");
        command.args(["record", "--backend", backend, "--output", "test.ptrace"]).args(options);
        command.arg("--");
        command
    }

    pub(crate) fn record(self, backend: &str, options: &[&str], payload: &[&OsStr]) -> Recorded {
        let output = self.recorder(backend, options).args(payload).output().unwrap();
        Recorded { directory: self.directory, output }
    }
}

/// A broker; killed when it is dropped.
pub(crate) struct Broker {
    process: Child,
    pub(crate) socket: PathBuf,
    log: PathBuf,
    /// Directory of the socket and the log.
    _directory: TempDir,
}

impl Broker {
    pub(crate) fn start(stage: &Stage, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (socket, log) = (directory.path().join("socket"), directory.path().join("log"));
        let process = Command::new(stage.path("proctrace"))
            .args(["broker", "--socket"])
            .arg(&socket)
            .args(options)
            .stderr(fs::File::create(&log).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut broker = Self { process, socket, log, _directory: directory };
        broker.wait_for("ready");
        broker
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log says something; a minute is more than anything takes.
    pub(crate) fn wait_for(&mut self, what: &str) {
        for _ in 0..12_000 {
            if self.log().contains(what) {
                return;
            }
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "the broker has ended: {}", self.log());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("the log never says {what:?}: {}", self.log());
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}
