//! The environment of one run: its directory, its files, and the process tree of the payload.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The environment of a run. A tracer's output goes to files whose names begin with `out`, which
/// are measured; all other output goes to `log`.
pub(super) struct Site {
    /// Emptied before each run.
    pub(super) directory: PathBuf,
    /// Files of payloads that are kept between runs.
    pub(super) scratch: PathBuf,
    /// Directory of our own programs.
    pub(super) release: PathBuf,
    /// The fixture that times a payload.
    pub(super) timed: PathBuf,
    /// The pid of that fixture, where it waits for a tracer that runs separately.
    pub(super) root_pid: u64,
    /// Tasks that existed before the payload.
    pub(super) others: HashSet<u64>,
}

impl Site {
    pub(super) fn out(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("out{suffix}"))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub(super) fn stop_watch(&self) -> PathBuf {
        self.directory.join("timed")
    }

    /// Creates a file for a command's output.
    pub(super) fn create(&self, path: &Path) -> Result<Stdio> {
        Ok(File::create(path).with_context(|| format!("cannot create {}", path.display()))?.into())
    }

    /// Opens the log for appending.
    pub(super) fn append_log(&self) -> Result<Stdio> {
        let file = File::options().create(true).append(true).open(self.log());
        Ok(file.context("cannot open the log")?.into())
    }

    /// Removes the files of the last run.
    pub(super) fn clear(&self) -> Result<()> {
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory).context("cannot empty the scratch directory")?;
        }
        fs::create_dir_all(&self.directory).context("cannot create the scratch directory")
    }

    /// Total size of the tracer's output.
    pub(super) fn output_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(&self.directory).context("cannot read the scratch directory")? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b"out") {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes)
    }

    /// The last lines of the log, for an error message.
    pub(super) fn last_words(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last = log.lines().rev().find(|line| !line.trim().is_empty());
        last.unwrap_or("no message").trim().chars().take(120).collect()
    }
}

/// Resets cargo and locale variables, so that a payload behaves the same everywhere.
pub(super) fn plain(command: &mut Command) -> &mut Command {
    for name in ["LD_LIBRARY_PATH", "LANG", "LANGUAGE", "MAKEFLAGS", "CARGO_MAKEFLAGS"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C")
}
