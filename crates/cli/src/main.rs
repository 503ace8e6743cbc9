//! The binary `proctrace`: parses, dispatches, and converts errors to messages and exit codes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(feature = "analyse")]
mod advise;
mod args;
mod broker;
#[cfg(feature = "analyse")]
mod ceiling;
#[cfg(feature = "analyse")]
mod check;
#[cfg(feature = "analyse")]
mod classify;
#[cfg(feature = "analyse")]
mod compact;
mod confine;
#[cfg(feature = "analyse")]
mod diff;
mod doctor;
mod dump;
#[cfg(feature = "analyse")]
mod event_logs;
mod exit_code;
#[cfg(feature = "analyse")]
mod export;
#[cfg(feature = "analyse")]
mod fleet;
#[cfg(feature = "analyse")]
mod gate;
#[cfg(all(feature = "analyse", target_env = "gnu"))]
mod heap;
mod import;
mod invoker;
#[cfg(feature = "analyse")]
mod libs;
mod live;
mod manual;
mod mark;
#[cfg(feature = "analyse")]
mod metrics;
mod misspelt;
mod node;
mod output;
#[cfg(feature = "analyse")]
mod pager;
#[cfg(feature = "analyse")]
mod print;
#[cfg(feature = "analyse")]
mod ps;
#[cfg(feature = "analyse")]
mod query;
mod record;
#[cfg(feature = "analyse")]
mod report;
#[cfg(feature = "analyse")]
mod rules;
#[cfg(feature = "analyse")]
mod runs;
mod say;
#[cfg(feature = "analyse")]
mod series;
#[cfg(feature = "analyse")]
mod show;
#[cfg(feature = "analyse")]
mod silence;
mod source;
#[cfg(feature = "analyse")]
mod startup;
#[cfg(feature = "analyse")]
mod summarize;
mod top;
#[cfg(feature = "analyse")]
mod tree;
mod waiting;
mod watch;
#[cfg(feature = "analyse")]
mod whole;

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command, DEFAULT_TRACE, screen};

fn main() -> ExitCode {
    // A payload may set many marks: parsing by the full definition takes longer than all else.
    if mark::is_set() {
        return ExitCode::SUCCESS;
    }
    if let Some(all) = asks_for_commands() {
        let _ = std::io::stdout().write_all(screen(all).as_bytes());
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if let Some(error) = misspelt::option(&cli.command) {
        return usage(&error);
    }
    #[cfg(feature = "analyse")]
    if let Some(code) = pager::run(&cli.command) {
        return code;
    }
    confine::begin(&cli.command);
    let is_recording = matches!(cli.command, Command::Record(_));
    // A recorder takes its buffers once.
    #[cfg(all(feature = "analyse", target_env = "gnu"))]
    if !matches!(cli.command, Command::Record(_) | Command::Broker(_)) {
        heap::map_large_allocations();
    }
    #[cfg(feature = "analyse")]
    if let Some(ceiling) = ceiling::Ceiling::of(&cli.command) {
        ceiling.hold(exit_code::FAILED);
    }
    let (own_failure, result) = match cli.command {
        Command::Record(args) => (exit_code::RECORDING_FAILED, record::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Report(args) => (exit_code::FAILED, report::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Show(args) => (exit_code::FAILED, show::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Tree(args) => (exit_code::FAILED, tree::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Ps(args) => (exit_code::FAILED, ps::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Query(args) => (exit_code::FAILED, query::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Export(args) => (exit_code::FAILED, export::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Summarize(args) => (exit_code::FAILED, summarize::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Compact(args) => (exit_code::FAILED, compact::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Fleet(args) => (exit_code::FAILED, fleet::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Diff(args) => (exit_code::FAILED, diff::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Gate(args) => (exit_code::FAILED, gate::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Metrics(args) => (exit_code::FAILED, metrics::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Series(args) => (exit_code::FAILED, series::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Startup(args) => (exit_code::FAILED, startup::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Libs(args) => (libs::own_failure(&args), libs::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Advise(args) => (exit_code::FAILED, advise::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Check(args) => (exit_code::FAILED, check::run(&args)),
        #[cfg(feature = "analyse")]
        Command::Classify(args) => (exit_code::FAILED, classify::run(&args)),
        Command::Import(args) => (exit_code::FAILED, import::run(&args)),
        Command::Top(args) => (exit_code::FAILED, top::run(&args)),
        Command::Dump(args) => (exit_code::FAILED, dump::run(&args)),
        Command::Mark(args) => (exit_code::USAGE, mark::refuse(&args)),
        Command::Broker(args) => (exit_code::FAILED, broker::run(&args)),
        Command::Doctor(args) => (exit_code::FAILED, doctor::run(&args)),
        Command::Completions { shell } => (exit_code::FAILED, manual::completions(shell)),
        Command::Man { directory } => (exit_code::FAILED, manual::pages(&directory)),
    };
    match result {
        Ok(code) => code,
        // The reader of our output closed the pipe. A recording that has not come to its end is no success, whatever
        // it was written to.
        Err(error) if !is_recording && is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let code = if is_misuse(&error) { exit_code::USAGE } else { own_failure };
            let has_no_trace = is_default_trace_missing(&error);
            say::error(&with_place(error));
            if has_no_trace {
                say::note("record first: sudo proctrace record -- COMMAND");
            }
            code.into()
        }
    }
}

/// Whether nothing is asked but which commands there are, and then whether all of them are.
fn asks_for_commands() -> Option<bool> {
    let mut words = std::env::args_os().skip(1);
    let word = words.next();
    let is_alone = words.next().is_none();
    match word.as_deref().and_then(OsStr::to_str) {
        None => word.is_none().then_some(false),
        Some("-h") if is_alone => Some(false),
        Some("--help" | "help") if is_alone => Some(true),
        Some(_) => None,
    }
}

/// Prints help, or the error in the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    let plain = error.to_string();
    if !error.use_stderr() || say::is_printable(&plain) {
        // There is nowhere to report a failure to print.
        let _ = error.print();
        if let Some(tip) = misspelt::command(error) {
            say::raw(&tip);
        }
    } else {
        // An argument may be a file name chosen by someone else.
        say::raw(&plain);
    }
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    // A script that runs a command under `record` must be able to distinguish our failures from the
    // command's, which often exits with 2 itself.
    let mut words = std::env::args_os().skip(1);
    let runs_command = match words.next() {
        Some(command) if command == OsStr::new("record") => true,
        Some(command) if command == OsStr::new("libs") => {
            words.next().is_some_and(|word| word == "try")
        }
        _ => false,
    };
    if runs_command { exit_code::RECORDING_FAILED.into() } else { exit_code::USAGE.into() }
}

/// Whether there is no trace of the name that is used where none is given.
fn is_default_trace_missing(error: &anyhow::Error) -> bool {
    let is_missing = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref().map(std::io::Error::kind) == Some(std::io::ErrorKind::NotFound)
    };
    let names = |cause: &(dyn std::error::Error + 'static)| {
        cause.to_string().contains(&format!("cannot read {DEFAULT_TRACE}"))
    };
    error.chain().any(is_missing) && error.chain().any(names)
}

/// Errors of files name the file where they occur. An I/O error without any context comes from
/// stdout.
fn with_place(error: anyhow::Error) -> anyhow::Error {
    if error.chain().count() == 1 && error.is::<std::io::Error>() {
        error.context("cannot write to standard output")
    } else {
        error
    }
}

#[cfg(feature = "analyse")]
fn is_misuse(error: &anyhow::Error) -> bool {
    error.downcast_ref::<exit_code::Misuse>().is_some()
}

/// Builds that can only record have no arguments that fail this way.
#[cfg(not(feature = "analyse"))]
fn is_misuse(_: &anyhow::Error) -> bool {
    false
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let by_io = cause.downcast_ref().map(std::io::Error::kind);
        // serde_json does not expose it as its source
        let by_json = cause.downcast_ref().and_then(serde_json::Error::io_error_kind);
        by_io.or(by_json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}
