//! Shell completions and man pages, generated from the definition of the command line.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_complete::Shell;
use clap_mangen::Man;
use proctrace_outputs::{Access, Directory};

use crate::invoker;

/// Prints completions for a shell.
///
/// # Errors
/// If standard output cannot be written.
pub fn completions(mut definition: clap::Command, shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    let name = definition.get_name().to_owned();
    clap_complete::generate(shell, &mut definition, name, &mut script);
    stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the man pages of a program into a directory.
///
/// # Errors
/// If they cannot be written.
pub fn pages(definition: clap::Command, directory: &Path) -> Result<ExitCode> {
    let context = || format!("cannot write to {}", directory.display());
    let directory =
        invoker::outputs().create_directory(directory, Access::Umask).with_context(context)?;
    let mut cli = definition.disable_help_subcommand(true);
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
