//! Rows of a table as a data frame that conforms to its schema.

use std::collections::{BTreeSet, HashMap};

use polars::prelude::*;
use proctrace_findings::Figure;
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::error::TableError;
use crate::schema::{ColumnKind, TableSchema};

/// The requested columns of tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// `None`: all columns.
    words: Option<BTreeSet<String>>,
    /// The recording has no times: columns of times have no values.
    timeless: bool,
}

impl Wanted {
    /// Every column of every table.
    pub(crate) fn all() -> Self {
        Self { words: None, timeless: false }
    }

    /// Columns and tables with one of these names, wherever they occur.
    pub(crate) fn words(words: BTreeSet<String>) -> Self {
        Self { words: Some(words), timeless: false }
    }

    /// The same of this recording.
    pub(crate) fn of(self, recording: &Recording) -> Self {
        Self { timeless: !recording.knows().all(&[Quantity::Times]), ..self }
    }

    /// Rows each of which stands for a part of the time: none, if the recording has no times.
    pub(crate) fn divided_by_time(&self, rows: DataFrame) -> DataFrame {
        if self.timeless { rows.clear() } else { rows }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.words.as_ref().is_none_or(|words| words.contains(name))
    }
}

/// The columns of some rows of a table.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    schema: &'static TableSchema,
    wanted: &'a Wanted,
    height: usize,
    columns: Vec<Column>,
}

impl<'a> Frame<'a> {
    /// A given number of rows of a table.
    pub(crate) fn new(schema: &'static TableSchema, wanted: &'a Wanted, height: usize) -> Self {
        Self { schema, wanted, height, columns: Vec::new() }
    }

    fn put<S: FnOnce(PlSmallStr) -> Column>(&mut self, name: &'static str, column: S) {
        debug_assert!(self.schema.column(name).is_some(), "{}.{name}", self.schema.name);
        let (height, declared) = (self.height, self.schema.column(name));
        if !self.wanted.has(name) {
            return;
        }
        if let Some(declared) = declared.filter(|_| self.wanted.timeless && name.ends_with("_ns")) {
            self.columns.push(Column::full_null(name.into(), height, &declared.kind.dtype()));
        } else {
            self.columns.push(column(name.into()));
        }
    }

    /// Adds a column of values that are always known.
    pub(crate) fn values<T, V>(&mut self, name: &'static str, values: V)
    where
        V: FnOnce() -> Vec<T>,
        Series: NamedFrom<Vec<T>, [T]>,
        T: 'static,
    {
        self.put(name, |name| Series::new(name, values()).into_column());
    }

    /// Adds a column of values that may be null.
    pub(crate) fn options<T, V>(&mut self, name: &'static str, values: V)
    where
        V: FnOnce() -> Vec<Option<T>>,
        Series: NamedFrom<Vec<Option<T>>, [Option<T>]>,
        T: 'static,
    {
        self.put(name, |name| Series::new(name, values()).into_column());
    }

    /// Adds a column of values that are null where the recording does not contain them.
    pub(crate) fn known<T, V>(&mut self, name: &'static str, known: bool, values: V)
    where
        V: FnOnce() -> Vec<T>,
        Series: NamedFrom<Vec<T>, [T]>,
        T: 'static,
    {
        if known {
            self.values(name, values);
        } else {
            self.null(name);
        }
    }

    /// Adds a column of which nothing is known.
    pub(crate) fn null(&mut self, name: &'static str) {
        let Some(column) = self.schema.column(name) else { return };
        let (dtype, height) = (column.kind.dtype(), self.height);
        self.put(name, |name| Column::full_null(name, height, &dtype));
    }

    /// Adds the column of a figure; null where the recording does not contain it.
    pub(crate) fn figure(
        &mut self,
        figure: Figure,
        values: impl FnOnce() -> Option<Vec<Option<u64>>>,
    ) {
        if !self.wanted.has(figure.name()) {
            return;
        }
        match values() {
            Some(values) => self.options(figure.name(), || values),
            None => self.null(figure.name()),
        }
    }

    /// Adds a column of dictionary entries, by their numbers; numbers beyond the dictionary become
    /// null.
    pub(crate) fn words<V>(&mut self, name: &'static str, words: &Words, numbers: V)
    where
        V: FnOnce() -> Vec<Option<u32>>,
    {
        self.put(name, |name| words.column(name, numbers()));
    }

    /// The rows, with the columns in the order of the schema.
    pub(crate) fn finish(self) -> Result<DataFrame, TableError> {
        let Self { schema, wanted, height, columns } = self;
        let mut by_name: HashMap<PlSmallStr, Column> =
            columns.into_iter().map(|column| (column.name().clone(), column)).collect();
        let mut ordered = Vec::with_capacity(by_name.len());
        for column in schema.columns.iter().filter(|column| wanted.has(column.name)) {
            let dtype = column.kind.dtype();
            match by_name.remove(column.name) {
                Some(found) if *found.dtype() == dtype => ordered.push(found),
                // Counts are unsigned; values that exceed the type, in a hostile trace, become
                // null.
                Some(found) if found.dtype().is_unsigned_integer() && dtype == DataType::Int64 => {
                    ordered.push(found.cast(&dtype)?);
                }
                _ => {
                    let fault = format!("no column {} in table {}", column.name, schema.name);
                    return Err(PolarsError::SchemaMismatch(fault.into()).into());
                }
            }
        }
        Ok(DataFrame::new(height, ordered)?)
    }
}

/// A dictionary of unique strings, by number: the basis of a column of names.
#[derive(Debug, Clone)]
pub(crate) struct Words(Series);

impl Words {
    pub(crate) fn new<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Self {
        let words = StringChunked::from_iter_values("".into(), words.into_iter());
        Self(words.into_series())
    }

    pub(crate) fn column(&self, name: PlSmallStr, numbers: Vec<Option<u32>>) -> Column {
        let len = self.0.len();
        let inside = |number: &u32| (*number as usize) < len;
        let numbers: IdxCa = numbers.into_iter().map(|number| number.filter(inside)).collect();
        // Every number is in the dictionary, or null.
        let mut column = self.0.take(&numbers).unwrap_or_else(|_| {
            Series::full_null("".into(), numbers.len(), &ColumnKind::Text.dtype())
        });
        column.rename(name);
        column.into_column()
    }
}

impl Frame<'_> {
    /// Adds a column of string lists.
    pub(crate) fn lists<'t>(
        &mut self,
        name: &'static str,
        lists: impl FnOnce() -> Vec<Option<Vec<&'t str>>>,
    ) {
        self.put(name, |name| {
            let lists = lists();
            let mut builder = ListStringChunkedBuilder::new(name, lists.len(), 4 * lists.len());
            for list in lists {
                match list {
                    Some(texts) => builder.append_values_iter(texts.into_iter()),
                    None => builder.append_null(),
                }
            }
            builder.finish().into_column()
        });
    }
}

/// The column with the name of the recording that a row belongs to.
pub(crate) const RECORDING: &str = "recording";

/// The rows with an additional first column that contains the name of their recording.
pub(crate) fn named(mut rows: DataFrame, recording: &str) -> Result<DataFrame, TableError> {
    let name = Scalar::new(DataType::String, AnyValue::StringOwned(recording.into()));
    let names = Column::new_scalar(RECORDING.into(), name, rows.height());
    rows.insert_column(0, names)?;
    Ok(rows)
}
