//! Errors of summaries and of questions about them.

use std::io;
use std::path::PathBuf;

use proctrace_analysis::{AnalysisError, QueryError, TableError};

/// Errors of summaries and of questions about them.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A recording cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A table of a recording cannot be made.
    #[error(transparent)]
    Tables(#[from] TableError),
    /// A query has no result.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A table could not be computed, or written.
    #[error("cannot compute a table")]
    Table(#[from] polars::error::PolarsError),
    /// Redaction without a key.
    #[error("names cannot be redacted without a key")]
    NoKey,
    /// A file cannot be read or written.
    #[error("{path}")]
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {why}")]
    Unusable {
        /// Its path.
        path: PathBuf,
        /// Description of the error.
        why: String,
    },
}

impl FleetError {
    /// A file that cannot be read or written.
    pub(crate) fn file<E: Into<io::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        |source| Self::File { path, source: source.into() }
    }
}
