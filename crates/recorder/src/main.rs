//! The binary `proctrace-recorder`: the commands that record, for worker nodes and containers, without any analysis.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cli;

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use proctrace_live::ByFile;
use proctrace_recorder::args::screen;
use proctrace_recorder::confine::{self, Needs};
use proctrace_recorder::program::{Ended, RECORDER, asks_for_commands, usage};
use proctrace_recorder::summaries::NoSummaries;
use proctrace_recorder::{
    broker, check, doctor, dump, exit_code, manual, mark, misspelt, record, top,
};

use crate::cli::{Command, definition, has_no_view, parse};

fn main() -> ExitCode {
    // A payload may set many marks: parsing by the full definition takes longer than all else.
    if mark::is_set() {
        return ExitCode::SUCCESS;
    }
    if let Some(all) = asks_for_commands() {
        let _ = std::io::stdout().write_all(screen(&definition(), all).as_bytes());
        return ExitCode::SUCCESS;
    }
    let command = match parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => return usage(&error, &definition(), runs_command),
    };
    if let Command::Record(args) = &command
        && let Some(error) = misspelt::option(definition(), &["record"], args.command())
    {
        return usage(&error, &definition(), runs_command);
    }
    if matches!(&command, Command::Record(args) if args.live) {
        return usage(&has_no_view(), &definition(), runs_command);
    }
    let is_recording = matches!(command, Command::Record(_));
    if let Some(needs) = needs(&command) {
        confine::begin(Some(&needs));
    }
    let (own_failure, result) = match command {
        Command::Record(args) => (exit_code::RECORDING_FAILED, record::run(&args, &NoSummaries)),
        Command::Top(args) => {
            (exit_code::FAILED, top::run(&args, RECORDER, || Ok(Box::new(ByFile)), None))
        }
        Command::Check(args) => (exit_code::FAILED, check::run(&args)),
        Command::Dump(args) => (exit_code::FAILED, dump::run(&args)),
        Command::Mark(args) => (exit_code::USAGE, mark::refuse(&args)),
        Command::Broker(args) => (exit_code::FAILED, broker::run(&args)),
        Command::Doctor(args) => (exit_code::FAILED, doctor::run(&args, RECORDER)),
        Command::Completions { shell } => {
            (exit_code::FAILED, manual::completions(definition(), shell))
        }
        Command::Man { directory } => (exit_code::FAILED, manual::pages(definition(), &directory)),
    };
    Ended { program: RECORDER, own_failure, is_recording, result }.code()
}

fn runs_command(words: &[&OsStr]) -> bool {
    words.first().is_some_and(|word| *word == "record")
}

/// Needs of a command; None for commands that load programs into the kernel, or find out whether they could.
fn needs(command: &Command) -> Option<Needs> {
    Some(match command {
        Command::Record(_) | Command::Broker(_) | Command::Doctor(_) => return None,
        Command::Top(args) => Needs::of_top(args),
        Command::Check(args) => Needs::of_check(args),
        Command::Dump(args) => Needs::of_dump(args),
        Command::Mark(_) | Command::Completions { .. } => Needs::default(),
        Command::Man { directory } => Needs::filling(directory),
    })
}
