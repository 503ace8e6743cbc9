//! Building blocks shared by several kinds of chart.

use serde::Serialize;

/// Named values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// One value per category or per x; None is not drawn.
    pub values: Vec<Option<f64>>,
}

/// A reference line at a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// Its position on the axis.
    pub at: f64,
    /// Its label.
    pub name: String,
}
