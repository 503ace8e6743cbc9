//! Rows whose columns are known only when they are there: what a query answers.

/// Some rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Their columns, all as long as each other.
    pub columns: Vec<RowsColumn>,
}

/// A column of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsColumn {
    /// Its name, as the query has it.
    pub name: String,
    /// Its values.
    pub values: RowsValues,
}

/// Values of one type; None where there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum RowsValues {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers that may be negative.
    Signed(Vec<Option<i64>>),
    /// Whole numbers.
    Whole(Vec<Option<u64>>),
    /// Other numbers.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
    /// Several texts each.
    Texts(Vec<Option<Vec<String>>>),
}

impl RowsValues {
    /// How many.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Rows {
    /// How many rows.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}
