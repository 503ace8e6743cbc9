//! Keeps a recorded command off our own standard input and output.

use std::fs::File;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use rustix::stdio;

/// Destination of the standard output of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instead {
    /// Nowhere.
    Discarded,
    /// To standard error.
    StandardError,
}

/// Guard: while it exists, standard input is empty, and standard output goes elsewhere.
pub(crate) struct Silence {
    input: OwnedFd,
    output: OwnedFd,
}

impl Silence {
    pub(crate) fn begin(instead: Instead) -> Result<Self> {
        let keep = |fd| rustix::io::fcntl_dupfd_cloexec(fd, 3).context("cannot copy a descriptor");
        let silence = Self { input: keep(stdio::stdin())?, output: keep(stdio::stdout())? };
        let open = |writing: bool| null(writing).context("cannot open /dev/null");
        stdio::dup2_stdin(open(false)?).context("cannot redirect standard input")?;
        match instead {
            Instead::Discarded => stdio::dup2_stdout(open(true)?),
            Instead::StandardError => stdio::dup2_stdout(stdio::stderr()),
        }
        .context("cannot redirect standard output")?;
        Ok(silence)
    }
}

#[expect(clippy::disallowed_methods, reason = "a device, and nothing is created")]
fn null(writing: bool) -> std::io::Result<File> {
    File::options().read(!writing).write(writing).open("/dev/null")
}

impl Drop for Silence {
    fn drop(&mut self) {
        // It was open before, so restoring it cannot fail.
        let _ = stdio::dup2_stdin(&self.input);
        let _ = stdio::dup2_stdout(&self.output);
    }
}
