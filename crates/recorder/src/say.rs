//! Messages on stderr, which is shared with the recorded command, and verdicts on stdout.

use std::io::{ErrorKind, Write, stdout};

use anyhow::{Context, Result};
use proctrace_report::escape::terminal;

/// Prints an error and its causes.
pub fn error(error: &anyhow::Error) {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    // Many errors include their cause in their own text.
    causes.dedup_by(|cause, before| before.contains(&**cause));
    print(&format!("proctrace: {}\n", printable(&causes.join(": "))));
}

/// Prints an informative message that is not an error.
pub fn note(text: &str) {
    print(&format!("proctrace: {}\n", printable(text)));
}

/// Prints text without our prefix and without a trailing line feed.
pub fn raw(text: &str) {
    print(&printable(text));
}

/// Prints a line in place of the last such line, without a line feed; an empty one clears it. Only for terminals.
pub fn over(line: &str) {
    // ECMA-48: erase in line.
    print(&format!("\r\x1b[K{}", printable(line)));
}

/// Prints a message in one piece, so that those of others come before or after it. If it cannot be printed, nobody can be
/// told, and a recording goes on: stderr may be a file on the same full disk.
fn print(message: &str) {
    let _ = std::io::stderr().write_all(message.as_bytes());
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
