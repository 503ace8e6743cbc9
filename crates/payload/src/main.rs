//! The binary `proctrace-payload`: parses, dispatches, and turns errors into messages and exit codes.

mod args;
mod run;
mod say;
mod show;
mod supervise;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If printing fails, nothing can be reported.
            let _ = error.print();
            return if error.use_stderr() { 2.into() } else { ExitCode::SUCCESS };
        }
    };
    let result = match cli.command {
        Command::List => show::list().map(|()| ExitCode::SUCCESS),
        Command::Declare(args) => show::declare(&args).map(|()| ExitCode::SUCCESS),
        Command::Run(args) => run::run(&args),
    };
    match result {
        Ok(code) => code,
        // The reader of the output has closed it.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
