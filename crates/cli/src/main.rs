//! The binary `proctrace`: parses, dispatches, and converts errors to messages and exit codes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod advise;
mod args;
mod ceiling;
mod classify;
mod compact;
mod diff;
mod experiment;
mod export;
mod fleet;
mod gate;
#[cfg(target_env = "gnu")]
mod heap;
mod import;
mod incomplete;
mod libs;
mod metrics;
mod needs;
mod pager;
mod print;
mod ps;
mod query;
mod report;
mod rules;
mod runs;
mod series;
mod show;
mod silence;
mod startup;
mod summarize;
mod top;
mod tree;
mod whole;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use proctrace_recorder::args::screen;
use proctrace_recorder::program::{Ended, asks_for_commands, usage};
use proctrace_recorder::{
    broker, check, confine, doctor, dump, exit_code, invoker, live, manual, mark, misspelt, record,
    say, waiting,
};

use crate::args::{Cli, Command, GateAction, GateArgs, LibsAction, LibsArgs};

/// The name of this program, in what it says of itself.
pub(crate) const NAME: &str = "proctrace";

fn main() -> ExitCode {
    // A payload may set many marks: parsing by the full definition takes longer than all else.
    if mark::is_set() {
        return ExitCode::SUCCESS;
    }
    if let Some(all) = asks_for_commands() {
        let _ = std::io::stdout().write_all(screen(&Cli::command(), all).as_bytes());
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &Cli::command(), runs_command),
    };
    if let Some((path, words)) = command_in(&cli.command)
        && let Some(error) = misspelt::option(Cli::command(), path, words)
    {
        return usage(&error, &Cli::command(), runs_command);
    }
    if let Some(code) = pager::run(&cli.command) {
        return code;
    }
    let is_recording = matches!(cli.command, Command::Record(_));
    // These load programs into the kernel, or find out whether they could.
    if !matches!(cli.command, Command::Record(_) | Command::Broker(_) | Command::Doctor(_)) {
        confine::begin(needs::of(&cli.command).as_ref());
    }
    // A recorder takes its buffers once.
    #[cfg(target_env = "gnu")]
    if !matches!(cli.command, Command::Record(_) | Command::Broker(_)) {
        heap::map_large_allocations();
    }
    if let Some(ceiling) = ceiling::Ceiling::of(&cli.command) {
        ceiling.hold(exit_code::FAILED);
    }
    let (own_failure, result) = match cli.command {
        Command::Record(args) => (exit_code::RECORDING_FAILED, record::run(&args.base, &args.more)),
        Command::Report(args) => (exit_code::FAILED, report::run(&args)),
        Command::Show(args) => (exit_code::FAILED, show::run(&args)),
        Command::Tree(args) => (exit_code::FAILED, tree::run(&args)),
        Command::Ps(args) => (exit_code::FAILED, ps::run(&args)),
        Command::Query(args) => (exit_code::FAILED, query::run(&args)),
        Command::Export(args) => (exit_code::FAILED, export::run(&args)),
        Command::Summarize(args) => (exit_code::FAILED, summarize::run(&args)),
        Command::Compact(args) => (exit_code::FAILED, compact::run(&args)),
        Command::Fleet(args) => (exit_code::FAILED, fleet::run(&args)),
        Command::Diff(args) => (exit_code::FAILED, diff::run(&args)),
        Command::Gate(args) => (exit_code::FAILED, gate::run(&args)),
        Command::Metrics(args) => (exit_code::FAILED, metrics::run(&args)),
        Command::Series(args) => (exit_code::FAILED, series::run(&args)),
        Command::Startup(args) => (exit_code::FAILED, startup::run(&args)),
        Command::Libs(args) => (libs::own_failure(&args), libs::run(&args)),
        Command::Advise(args) => (exit_code::FAILED, advise::run(&args)),
        Command::Check(args) => (exit_code::FAILED, check::run(&args.base)),
        Command::Classify(args) => (exit_code::FAILED, classify::run(&args)),
        Command::Import(args) => (exit_code::FAILED, import::run(&args)),
        Command::Top(args) => (exit_code::FAILED, top::run(&args)),
        Command::Dump(args) => (exit_code::FAILED, dump::run(&args.base)),
        Command::Mark(args) => (exit_code::USAGE, mark::refuse(&args)),
        Command::Broker(args) => (exit_code::FAILED, broker::run(&args)),
        Command::Doctor(args) => (exit_code::FAILED, doctor::run(&args, NAME)),
        Command::Completions { shell } => {
            (exit_code::FAILED, manual::completions(Cli::command(), shell))
        }
        Command::Man { directory } => {
            (exit_code::FAILED, manual::pages(Cli::command(), &directory))
        }
    };
    Ended { program: NAME, own_failure, is_recording, result }.code()
}

/// Tells whether these words ask for a command to be run.
fn runs_command(words: &[&OsStr]) -> bool {
    let word = |nth: usize| words.get(nth).and_then(|word| word.to_str());
    matches!((word(0), word(1)), (Some("record"), _) | (Some("libs"), Some("try")))
}

/// The command line that is to be run, and the subcommand that does it.
fn command_in(command: &Command) -> Option<(&'static [&'static str], &[OsString])> {
    Some(match command {
        Command::Record(args) => (&["record"], args.base.command()),
        Command::Startup(args) => (&["startup"], &args.command),
        Command::Gate(GateArgs { action: Some(GateAction::Run(args)), .. }) => {
            (&["gate", "run"], &args.command)
        }
        Command::Libs(LibsArgs { action: Some(LibsAction::Try(args)), .. }) => {
            (&["libs", "try"], &args.command)
        }
        _ => return None,
    })
}
