//! Messages on stderr, which is shared with the recorded command, and verdicts on stdout.

#![expect(clippy::print_stderr, reason = "this is the one place that does it")]

use std::io::{ErrorKind, Write, stdout};

use anyhow::{Context, Result};
use proctrace_report::escape::terminal;

/// Prints an error and its causes.
pub fn error(error: &anyhow::Error) {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    // Many errors include their cause in their own text.
    causes.dedup_by(|cause, before| before.contains(&**cause));
    eprintln!("proctrace: {}", printable(&causes.join(": ")));
}

/// Prints an informative message that is not an error.
pub fn note(text: &str) {
    eprintln!("proctrace: {}", printable(text));
}

/// Prints text without our prefix and without a trailing line feed.
pub fn raw(text: &str) {
    eprint!("{}", printable(text));
}

/// Prints a line in place of the last such line, without a line feed; an empty one clears it. Only for terminals.
pub fn over(line: &str) {
    // ECMA-48: erase in line.
    eprint!("\r\x1b[K{}", printable(line));
}

/// Returns whether the whole text can be printed unescaped.
pub fn is_printable(text: &str) -> bool {
    printable(text) == text
}

/// Escapes control characters, since names come from the recorded command and a terminal interprets
/// them. Line feeds are kept.
fn printable(text: &str) -> String {
    text.split('\n').map(terminal).collect::<Vec<_>>().join("\n")
}

/// Prints a verdict. A reader that closes the pipe early does not change the verdict, so this is
/// not an error here.
///
/// # Errors
/// If it cannot be written.
pub fn verdict(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}
