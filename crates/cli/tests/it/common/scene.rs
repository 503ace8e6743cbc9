//! Directories in which another user has put things before root writes there.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use super::proctrace;

/// nobody.
pub(crate) const OTHER: u32 = 65_534;

/// Contents of the file that links lead to.
pub(crate) const PRECIOUS: &str = "precious";

/// A directory that all may write to, and one that only root may.
pub(crate) struct Scene {
    pub(crate) directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        assert!(rustix::process::geteuid().is_root(), "run it as root: cargo xtask test");
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let scene = Self { directory };
        fs::create_dir(scene.at("shared")).unwrap();
        fs::set_permissions(scene.at("shared"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(scene.at("private")).unwrap();
        fs::set_permissions(scene.at("private"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(scene.at("private/victim"), PRECIOUS).unwrap();
        scene
    }

    /// Makes the directory sticky, as /tmp is.
    pub(crate) fn sticky(self) -> Self {
        fs::set_permissions(self.at("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        self
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn shared(&self, name: &str) -> PathBuf {
        self.at("shared").join(name)
    }

    /// Runs a script of the other user in the shared directory, by a shell.
    pub(crate) fn other(&self, script: &str) {
        assert!(self.shell(script).status().unwrap().success(), "{script}");
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(self.at("shared")).gid(OTHER).uid(OTHER);
        shell
    }

    /// A file of the other user, who keeps it open.
    pub(crate) fn held(&self, name: &str) -> Held {
        let script = format!(
            ": > {name}; chmod 666 {name}; exec 3<> {name}; echo ready; read line; cat <&3"
        );
        let mut shell = self.shell(&script);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Held { child, out }
    }

    /// Asserts that nothing behind the links has changed.
    pub(crate) fn assert_nothing_behind(&self, what: &str) {
        assert_eq!(fs::read_to_string(self.at("private/victim")).unwrap(), PRECIOUS, "{what}");
        let names: Vec<_> =
            fs::read_dir(self.at("private")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["victim"], "{what}");
    }

    /// Records a command that leaves a file behind.
    pub(crate) fn record(&self, output: &Path, options: &[&str]) -> Output {
        let mut command = proctrace();
        command.arg("record").args(options).arg("-o").arg(output);
        command.args(["--", "touch", "it-ran"]).current_dir(self.directory.path());
        limited(command)
    }

    pub(crate) fn ran(&self) -> bool {
        self.at("it-ran").exists()
    }
}

/// A file that is kept open.
pub(crate) struct Held {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Held {
    /// Bytes that its owner reads from it.
    pub(crate) fn seen(mut self) -> Vec<u8> {
        drop(self.child.stdin.take());
        let mut seen = Vec::new();
        self.out.read_to_end(&mut seen).unwrap();
        self.child.wait().unwrap();
        seen
    }
}

/// Runs it, for some minutes at most: a pipe without a reader would hold it for ever.
pub(crate) fn limited(command: Command) -> Output {
    let mut timed = Command::new("timeout");
    timed.args(["--kill-after=5", "180"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        timed.current_dir(directory);
    }
    let output = timed.stdin(Stdio::null()).output().unwrap();
    assert!(!matches!(output.status.code(), Some(124 | 137)), "it waits: {command:?}");
    output
}
