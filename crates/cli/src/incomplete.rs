//! Warnings about recordings that are incomplete, by every command that prints results of them.

use std::path::Path;

use proctrace_analysis::{Recording, health};

use crate::say;

/// Warns if the recording is incomplete.
pub(crate) fn warn(trace: &Path, recording: &Recording) {
    let health = health(recording);
    if health.recording_now {
        say::note(&format!(
            "{} is being recorded right now: this is what has been written so far",
            trace.display()
        ));
    } else if !health.is_good() {
        say::note(&format!(
            "{} is incomplete or failed a consistency check; see `proctrace check`",
            trace.display()
        ));
    }
}
