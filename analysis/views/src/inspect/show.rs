//! `show`: the details of one process, or of all processes that ran a program.

use std::path::Path;

use proctrace_findings::Shown;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;

use super::find::{Found, Wanted, find};
use super::{life, program, relatives};

/// Details of a process or a program. The trace at `path` is read again for arguments, environments
/// and paths.
///
/// # Errors
/// If there is no such process or program, or if the trace cannot be read.
pub fn show(recording: &Recording, path: &Path, wanted: &Wanted) -> Result<Shown, AnalysisError> {
    Ok(match find(recording, wanted)? {
        Found::One(at) => Shown::Process(Box::new(life::details(recording, path, at)?)),
        Found::Program(programs) => {
            Shown::Program(Box::new(program::details(recording, &programs)))
        }
        Found::Several(all) => {
            Shown::Candidates(all.iter().map(|at| relatives::candidate(recording, *at)).collect())
        }
    })
}
