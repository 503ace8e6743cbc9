//! Errors of recording.

use std::io;

use crate::source::SourceError;

/// Errors of recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The processes to be recorded ended before the recording began.
    #[error("nothing to record: {0} ended before the recording began")]
    Gone(String),
    /// The processes to be recorded may not be; the source gives the reason.
    #[error(transparent)]
    Refused(SourceError),
    /// The command could not be started.
    #[error("cannot start the command")]
    Launch(#[source] io::Error),
    /// The command could not be executed.
    #[error("cannot execute {program}")]
    Exec {
        /// The program that was to be executed.
        program: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// Something failed while recording.
    #[error("cannot {what}")]
    System {
        /// The step that failed, for "cannot …".
        what: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The source of the records failed.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl RecordError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
