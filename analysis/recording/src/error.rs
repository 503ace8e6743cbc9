//! Errors of an analysis.

use proctrace_trace::ReadError;

/// Errors of an analysis.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A view of something that the recording does not contain.
    #[error("cannot show {what}: {why}")]
    View {
        /// The item that was requested.
        what: String,
        /// The reason it cannot be shown, and what can be.
        why: String,
    },
}
