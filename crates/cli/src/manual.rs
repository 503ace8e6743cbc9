//! Shell completions and man pages, generated from the definition of the command line.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "proctrace", &mut script);
    stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pages(directory: &Path) -> Result<ExitCode> {
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
