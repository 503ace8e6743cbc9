//! Outcomes of processes, as far as they are known.

use proctrace_recording::process::Process;
use proctrace_wire::Outcome;

/// The outcome of a process that has ended; `None` if that was not recorded.
pub(crate) fn outcome(process: &Process) -> Option<Outcome> {
    process.ended_ns().and(process.status()).map(Outcome::of_status)
}

/// True if a process is known not to have exited with 0.
pub fn failed(process: &Process) -> bool {
    outcome(process).is_some_and(|outcome| outcome != Outcome::Code(0))
}
