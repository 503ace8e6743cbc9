//! Shell completions and man pages, generated from the definition of the command line.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use proctrace_outputs::{Access, Directory};

use crate::args::Cli;
use crate::invoker;

pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "proctrace", &mut script);
    stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pages(directory: &Path) -> Result<ExitCode> {
    let context = || format!("cannot write to {}", directory.display());
    let directory =
        invoker::outputs().create_directory(directory, Access::Umask).with_context(context)?;
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    page(cli, &directory).with_context(context)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, and those of its subcommands.
fn page(command: clap::Command, directory: &Directory) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        page(subcommand.clone(), directory)?;
    }
    let man = Man::new(command);
    let mut text = Vec::new();
    man.render(&mut text)?;
    Ok(directory.write(man.get_filename(), Access::Umask, &text)?)
}
