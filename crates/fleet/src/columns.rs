//! Rows of a table under construction, column by column.

use proctrace_analysis::{ColumnKind, TableSchema};
use proctrace_findings::{Rows, RowsColumn, RowsValues};

/// Nanoseconds to the nearest microsecond.
pub(crate) fn us(ns: u64) -> u64 {
    ns.saturating_add(500) / 1_000
}

/// The columns of some rows.
#[derive(Debug)]
pub(crate) struct Columns {
    schema: &'static TableSchema,
    height: usize,
    columns: Vec<RowsColumn>,
}

impl Columns {
    pub(crate) fn new(schema: &'static TableSchema, height: usize) -> Self {
        Self { schema, height, columns: Vec::new() }
    }

    pub(crate) fn text(&mut self, name: &'static str, values: Vec<Option<String>>) {
        self.put(name, RowsValues::Text(values));
    }

    pub(crate) fn flag(&mut self, name: &'static str, values: Vec<Option<bool>>) {
        self.put(name, RowsValues::Flag(values));
    }

    /// Values that exceed the type, in a hostile trace, become null.
    pub(crate) fn whole(&mut self, name: &'static str, values: Vec<Option<u64>>) {
        let signed = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        self.put(name, RowsValues::Signed(values.into_iter().map(signed).collect()));
    }

    fn put(&mut self, name: &'static str, values: RowsValues) {
        debug_assert!(self.schema.column(name).is_some(), "{}.{name}", self.schema.name);
        debug_assert_eq!(values.len(), self.height, "{}.{name}", self.schema.name);
        self.columns.push(RowsColumn { name: name.to_owned(), values });
    }

    /// The rows, with the columns in the order of the schema; a column that was not added is null.
    pub(crate) fn finish(mut self) -> Rows {
        let height = self.height;
        let ordered = self.schema.columns.iter().map(|column| {
            match self.columns.iter().position(|found| found.name == column.name) {
                Some(at) => self.columns.swap_remove(at),
                None => {
                    RowsColumn { name: column.name.to_owned(), values: nulls(column.kind, height) }
                }
            }
        });
        Rows { columns: ordered.collect() }
    }
}

fn nulls(kind: ColumnKind, height: usize) -> RowsValues {
    match kind {
        ColumnKind::Text => RowsValues::Text(vec![None; height]),
        ColumnKind::Flag => RowsValues::Flag(vec![None; height]),
        _ => RowsValues::Signed(vec![None; height]),
    }
}
