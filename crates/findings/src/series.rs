//! What charts of several kinds are made of.

use serde::Serialize;

/// Named values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// One for each category, or each x; not drawn where there is none.
    pub values: Vec<Option<f64>>,
}

/// A line at a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// What.
    pub name: String,
}
