//! Errors of an analysis.

use proctrace_trace::ReadError;

/// Why there are no findings.
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
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
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
        /// What was requested.
        what: String,
        /// Why it cannot be shown, and what can.
        why: String,
    },
}
