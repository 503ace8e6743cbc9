//! What proctrace-payload says on stderr, where the payload's own messages may be as well.

#![expect(clippy::print_stderr, reason = "this is the one place that does it")]

/// An error and what led to it.
pub(crate) fn error(error: &anyhow::Error) {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.dedup_by(|cause, before| before.contains(&**cause));
    note(&causes.join(": "));
}

/// Something worth knowing that is no error.
pub(crate) fn note(text: &str) {
    // Names come from files, and a terminal obeys what it is told.
    let harmless = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
    eprintln!("proctrace-payload: {}", text.chars().map(harmless).collect::<String>());
}
