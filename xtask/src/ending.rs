//! The end of a task: its error as a message and an exit status.

use std::process::ExitCode;

use anyhow::Result;

/// A prerequisite of a payload or task is unavailable, which is not a failure of the task itself.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(String);

/// The exit status for `Unavailable`: EX_UNAVAILABLE of sysexits.h(3head).
pub const UNAVAILABLE: u8 = 69;

impl Unavailable {
    /// Adds the prerequisites, and how to get them.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Says why a task failed, and selects the exit status.
pub fn ended(done: Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    println!("xtask: {error:#}");
    // A test needs to distinguish failures from unavailable prerequisites.
    if error.is::<Unavailable>() { ExitCode::from(UNAVAILABLE) } else { ExitCode::FAILURE }
}
