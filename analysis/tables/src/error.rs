//! Errors of tables and queries.

use proctrace_recording::error::AnalysisError;
use proctrace_trace::ReadError;

/// Errors while tables are made.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The recording does not have what is needed.
    #[error(transparent)]
    Recording(#[from] AnalysisError),
    /// A table could not be computed.
    #[error("cannot compute a table")]
    Table(#[from] polars::error::PolarsError),
    /// No thread can be started, for instance since the user has too many already.
    #[error("cannot start a thread for tables")]
    Threads(#[source] std::io::Error),
}
