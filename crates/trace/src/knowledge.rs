//! Knowledge of each quantity in a recording: exact, an estimate, or absent.

use serde::{Deserialize, Serialize};

/// Knowledge of a quantity by a source, regardless of records lost while recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// Each value is exact.
    Exact,
    /// Values are estimated.
    Estimate {
        /// The method.
        method: String,
    },
    /// There are no values.
    Absent {
        /// The reason for it.
        reason: String,
    },
}

impl Knowledge {
    /// It is not known, for this reason.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Absent { reason: reason.into() }
    }
}
