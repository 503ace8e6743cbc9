//! The beginning and the end of both programs: what is printed if the arguments are wrong or absent, and the exit code
//! and messages of what a command returned.

use std::ffi::OsStr;
use std::process::ExitCode;

use anyhow::{Error, Result};

use crate::args::DEFAULT_TRACE;
use crate::{exit_code, misspelt, say};

/// The program that only records.
pub const RECORDER: &str = "proctrace-recorder";

/// A command that was run: its result, and what becomes of its failure.
#[derive(Debug)]
pub struct Ended {
    /// The name of the program, in what it says of itself.
    pub program: &'static str,
    /// The code of a failure that is not one of the arguments.
    pub own_failure: u8,
    /// True if it records, so that it is no success if nobody reads its output any more.
    pub is_recording: bool,
    /// The code of the process, or the failure.
    pub result: Result<ExitCode>,
}

impl Ended {
    /// Says what has failed, and selects the exit code.
    pub fn code(self) -> ExitCode {
        match self.result {
            Ok(code) => code,
            // The reader of our output closed the pipe. A recording that has not come to its end is no success,
            // whatever it was written to.
            Err(error) if !self.is_recording && is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => {
                let code = match error.downcast_ref::<exit_code::Misuse>() {
                    Some(_) => exit_code::USAGE,
                    None => self.own_failure,
                };
                let has_no_trace = is_default_trace_missing(&error);
                say::error(&with_place(error));
                if has_no_trace {
                    say::note(&format!("record first: sudo {} record -- COMMAND", self.program));
                }
                code.into()
            }
        }
    }
}

/// Tells whether nothing is asked but which commands there are, and then whether all of them are.
pub fn asks_for_commands() -> Option<bool> {
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

/// Prints help, or the error in the arguments. `runs_command` tells whether the words after the name of the program
/// ask for a command to be run: a script must be able to distinguish our failures from those of that command, which often
/// exits with 2 itself.
pub fn usage(
    error: &clap::Error,
    definition: &clap::Command,
    runs_command: impl FnOnce(&[&OsStr]) -> bool,
) -> ExitCode {
    let plain = error.to_string();
    if !error.use_stderr() || say::is_printable(&plain) {
        // There is nowhere to report a failure to print.
        let _ = error.print();
        if let Some(tip) = misspelt::command(error, definition) {
            say::raw(&tip);
        }
    } else {
        // An argument may be a file name chosen by someone else.
        say::raw(&plain);
    }
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let words: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    let words: Vec<&OsStr> = words.iter().map(|word| &**word).collect();
    match runs_command(&words) {
        true => exit_code::RECORDING_FAILED.into(),
        false => exit_code::USAGE.into(),
    }
}

/// Returns whether there is no trace of the name that is used where none is given.
fn is_default_trace_missing(error: &Error) -> bool {
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
fn with_place(error: Error) -> Error {
    if error.chain().count() == 1 && error.is::<std::io::Error>() {
        error.context("cannot write to standard output")
    } else {
        error
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    error.chain().any(|cause| {
        let by_io = cause.downcast_ref().map(std::io::Error::kind);
        // serde_json does not expose it as its source
        let by_json = cause.downcast_ref().and_then(serde_json::Error::io_error_kind);
        by_io.or(by_json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}
