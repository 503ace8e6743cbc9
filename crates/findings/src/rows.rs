//! Result rows of a query, whose columns are known only at run time.

/// Result rows, stored by column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// The columns, all of equal length.
    pub columns: Vec<RowsColumn>,
}

/// One column of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsColumn {
    /// Its name in the query.
    pub name: String,
    /// Its values.
    pub values: RowsValues,
}

/// Values of one type; None is a missing value.
#[derive(Debug, Clone, PartialEq)]
pub enum RowsValues {
    /// Strings.
    Text(Vec<Option<String>>),
    /// Signed integers.
    Signed(Vec<Option<i64>>),
    /// Unsigned integers.
    Whole(Vec<Option<u64>>),
    /// Floating-point numbers.
    Real(Vec<Option<f64>>),
    /// Booleans.
    Flag(Vec<Option<bool>>),
    /// Lists of strings.
    Texts(Vec<Option<Vec<String>>>),
}

impl RowsValues {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Rows {
    /// Number of rows.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}
