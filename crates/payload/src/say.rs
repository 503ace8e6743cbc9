//! Messages on stderr, which is shared with the payload.

#![expect(clippy::print_stderr, reason = "this is the one place that does it")]

/// Prints an error and its causes.
pub(crate) fn error(error: &anyhow::Error) {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.dedup_by(|cause, before| before.contains(&**cause));
    note(&causes.join(": "));
}

/// Prints a note.
pub(crate) fn note(text: &str) {
    // Names come from files, and terminals interpret control characters.
    let harmless = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
    eprintln!("proctrace-payload: {}", text.chars().map(harmless).collect::<String>());
}
