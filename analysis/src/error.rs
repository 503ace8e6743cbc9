//! Errors of an analysis.

use proctrace_trace::ReadError;

/// Errors of the analysis crate.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Invalid classification rules.
    #[error("{name}:{line}:{column}: {message}")]
    Rules {
        /// The pack, or the path of its file.
        name: String,
        /// Number, from 1.
        line: usize,
        /// Number, from 1, in characters.
        column: usize,
        /// Description of the error.
        message: String,
    },
    /// A table could not be computed.
    #[error("cannot compute a table")]
    Table(#[from] polars::error::PolarsError),
    /// No memory for the stack on which a query is answered.
    #[error("cannot start a thread for the query")]
    Stack(#[source] std::io::Error),
    /// A view of something that the recording does not contain.
    #[error("cannot show {what}: {why}")]
    View {
        /// The item that was requested.
        what: String,
        /// The reason it cannot be shown, and what can be.
        why: String,
    },
}
