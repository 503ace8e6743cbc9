//! Summaries of finished recordings, as far as a recorder knows of them: only a program that analyses can make them.

use std::path::Path;

use anyhow::Result;
use proctrace_node::Queue;

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
    fn of_jobs(&self, directory: &Path, quiet: bool) -> Result<Option<Queue>>;
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

    fn of_jobs(&self, _: &Path, _: bool) -> Result<Option<Queue>> {
        Ok(None)
    }
}
