//! What proctrace says on stderr, where the command's own messages may be as well.

#![expect(clippy::print_stderr, reason = "this is the one place that does it")]

use proctrace_report::escape::terminal;

/// An error and what led to it.
pub(crate) fn error(error: &anyhow::Error) {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    // Many errors repeat their cause in their own text.
    causes.dedup_by(|cause, before| before.contains(&**cause));
    eprintln!("proctrace: {}", printable(&causes.join(": ")));
}

/// Something worth knowing that is no error.
pub(crate) fn note(text: &str) {
    eprintln!("proctrace: {}", printable(text));
}

/// The same without a word of ours before it, and without a line feed after it.
pub(crate) fn raw(text: &str) {
    eprint!("{}", printable(text));
}

/// Whether all of it can be shown as it is.
pub(crate) fn is_printable(text: &str) -> bool {
    printable(text) == text
}

/// Names come from the command, and a terminal obeys what it is told. Line feeds of our own stay.
fn printable(text: &str) -> String {
    text.split('\n').map(terminal).collect::<Vec<_>>().join("\n")
}
