//! Details of processes that the interactive page, the questions about single processes and summaries show.

pub mod calls;
pub mod root;
pub mod waited;
pub mod waits;

use proctrace_findings::Relative;
use proctrace_recording::Recording;

pub use root::{JobRoot, job_root};

/// Time since the start of the recording.
pub fn since(recording: &Recording, time_ns: u64) -> u64 {
    time_ns.saturating_sub(recording.first_ns())
}

/// A process as others name it.
pub fn relative(recording: &Recording, at: usize) -> Relative {
    let process = &recording.processes()[at];
    let program = recording.program_of(process).name.clone();
    Relative { serial: process.serial, pid: process.pid, program }
}
