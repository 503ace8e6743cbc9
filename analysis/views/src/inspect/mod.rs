//! Answers to questions about single processes: who was it, who started what, who was alive then.

mod alive;
mod cpu_at;
mod find;
mod life;
mod looked_up;
mod program;
mod relatives;
mod show;
mod state_at;
mod tree;

pub use alive::{AliveSort, AliveView, alive};
pub use find::{Chosen, Wanted, choose};
pub use show::show;
pub use tree::{TreeSort, TreeView, tree};

use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::process::Process;

/// True if a process was alive at a time.
fn is_alive(process: &Process, time_ns: u64) -> bool {
    process.born_ns <= time_ns && process.ended_ns().is_none_or(|ended_ns| ended_ns > time_ns)
}

/// A time since the start of the recording as one of its clock; an error beyond its end.
fn clock_time(recording: &Recording, at_ns: u64) -> Result<u64, AnalysisError> {
    if at_ns > recording.recorded_ns() {
        return Err(AnalysisError::View {
            what: format!("what was at {}", proctrace_findings::time(at_ns)),
            why: format!(
                "the recording is {} long",
                proctrace_findings::time(recording.recorded_ns())
            ),
        });
    }
    Ok(recording.first_ns().saturating_add(at_ns))
}

#[cfg(test)]
mod tests;
