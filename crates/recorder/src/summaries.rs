//! Summaries of finished recordings, as far as a recorder knows of them: only a program that analyses can make them.

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use crate::notify::SOCKET as NOTIFY_SOCKET;

/// Makes summaries of what is recorded, if these are asked for.
pub trait Summaries {
    /// Checks what is asked for, before anything is recorded.
    ///
    /// # Errors
    /// If it cannot be done.
    fn check(&self) -> Result<()>;

    /// Summarizes the complete trace of a command.
    ///
    /// # Errors
    /// If the summary cannot be made or written.
    fn recorded(&self, trace: &Path, quiet: bool) -> Result<()>;

    /// Begins to summarize the traces of the jobs of a node, which are written into this directory.
    ///
    /// # Errors
    /// If summaries cannot be written.
    fn of_jobs(&self, directory: &Path, quiet: bool) -> Result<Option<Box<dyn JobSummaries>>>;
}

/// Makes the summaries of a node's jobs.
pub trait JobSummaries {
    /// Takes the complete trace of the job in a cgroup of this name.
    fn add(&self, trace: PathBuf, cgroup: String);

    /// Waits for the last one.
    fn finish(self: Box<Self>) -> Summarized;
}

/// Numbers of jobs that were summarized.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summarized {
    /// Jobs with a summary.
    pub made: u64,
    /// Jobs whose summary failed.
    pub failed: u64,
}

/// Absence of summaries.
#[derive(Debug, Clone, Copy)]
pub struct NoSummaries;

impl Summaries for NoSummaries {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn recorded(&self, _: &Path, _: bool) -> Result<()> {
        Ok(())
    }

    fn of_jobs(&self, _: &Path, _: bool) -> Result<Option<Box<dyn JobSummaries>>> {
        Ok(None)
    }
}
