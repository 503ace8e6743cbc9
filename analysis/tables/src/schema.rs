//! The schema of the tables of a recording: their names, columns, types and meanings.
//!
//! This is a public interface: columns may be added, but neither renamed nor redefined.

use polars::prelude::DataType;

pub use super::definitions::TABLES;

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// Description of a row.
    pub says: &'static str,
    /// Its columns.
    pub columns: &'static [ColumnSchema],
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSchema {
    /// Its name, with its unit as suffix if it has one.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// Description of its values, and of when it is null.
    pub says: &'static str,
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// An identifier, up to 2^32.
    U32,
    /// An identifier, up to 2^64.
    U64,
    /// An integer. Quantities have this type although none is negative: their differences may be.
    I64,
    /// An integer below 2^31.
    I32,
    /// A floating-point number.
    F64,
    /// True or false.
    Flag,
    /// Any string: bytes that are not UTF-8 appear as `\xHH`.
    Text,
    /// A list of strings.
    Texts,
}

impl ColumnKind {
    /// Its SQL type name.
    pub fn sql(self) -> &'static str {
        match self {
            Self::U32 => "INTEGER UNSIGNED",
            Self::U64 => "BIGINT UNSIGNED",
            Self::I64 => "BIGINT",
            Self::I32 => "INTEGER",
            Self::F64 => "DOUBLE",
            Self::Flag => "BOOLEAN",
            Self::Text => "TEXT",
            Self::Texts => "TEXT[]",
        }
    }

    /// Bits that a value takes at least in a data frame: of text, the reference to it.
    pub(crate) fn least_bits(self) -> u64 {
        match self {
            Self::Flag => 1,
            Self::U32 | Self::I32 => 32,
            Self::U64 | Self::I64 | Self::F64 | Self::Texts => 64,
            Self::Text => 128,
        }
    }

    /// Its type in a data frame.
    pub fn dtype(self) -> DataType {
        match self {
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::I64 => DataType::Int64,
            Self::I32 => DataType::Int32,
            Self::F64 => DataType::Float64,
            Self::Flag => DataType::Boolean,
            Self::Text => DataType::String,
            Self::Texts => DataType::List(Box::new(DataType::String)),
        }
    }
}

impl ColumnSchema {
    /// The unit of its values, derived from its name.
    pub fn unit(&self) -> Option<&'static str> {
        const UNITS: [(&str, &str); 4] =
            [("_ns", "ns"), ("_us", "us"), ("_bytes", "B"), ("_percent", "%")];
        UNITS.iter().find(|(ending, _)| self.name.ends_with(ending)).map(|(_, unit)| *unit)
    }
}

impl TableSchema {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSchema> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The table of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }
}

/// The contents of docs/tables.md: every table and column.
pub fn tables_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    for table in TABLES {
        out.push_str(&table_markdown(table));
    }
    out
}

/// A table and its columns, as a section of a page.
pub fn table_markdown(table: &TableSchema) -> String {
    let mut out = format!("\n## `{}`\n\n{}\n\n", table.name, table.says);
    out.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in table.columns {
        out.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            column.name,
            column.kind.sql(),
            column.unit().unwrap_or_default(),
            column.says
        ));
    }
    out
}

const INTRODUCTION: &str = "\
# The tables of a recording

`proctrace query` runs SQL on these tables, `proctrace export` writes them as Parquet, Arrow, CSV or NDJSON.
[queries.md](queries.md) has examples. This page is generated from the code; a test checks that it is up to date.

* Query results and exported files have an additional column `recording`, the name of the recording: its
  file name without extension, or the path as given if two names would be the same.
* `process_id`, `thread_id` and `exec_id` are unique within one recording: join on these and on
  `recording`. Pids are reused and are not keys.
* Times are relative to the start of the recording, which is `recording.started_unix_ns`.
* Units are suffixes of column names: `_ns`, `_bytes`, `_percent`.
* Unknown values are null, never 0: values that were not recorded (`record --misses none`), that were lost, or
  that do not exist (the signal of a process that exited by itself).
* Bytes of paths and arguments that are not valid UTF-8 appear as `\\xHH`; [formats.md](formats.md) describes how CSV and
  JSON represent control characters and formulas. Lists are JSON in CSV. In NDJSON each line is an object, with null for unknown
  values; the file of a table without rows is empty.
* In SQL all integers are BIGINT, including those that are INTEGER here: their differences may be negative.
* The schema is an interface: columns may be added, but are never renamed or redefined.
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_lower_case() {
        let plain = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let tables: BTreeSet<&str> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(tables.len(), TABLES.len());
        for table in TABLES {
            let columns: BTreeSet<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(columns.len(), table.columns.len(), "{}", table.name);
            for column in table.columns {
                assert!(plain(column.name), "{}.{}", table.name, column.name);
                assert!(column.says.ends_with('.'), "{}.{}", table.name, column.name);
            }
        }
    }

    #[test]
    fn a_column_has_one_type_wherever_it_is() {
        let mut kinds = std::collections::BTreeMap::new();
        for (table, column) in TABLES.iter().flat_map(|t| t.columns.iter().map(move |c| (t, c))) {
            // Bins spread usage evenly, so their values are fractional.
            if table.name.ends_with("bins") {
                continue;
            }
            let kind = kinds.entry(column.name).or_insert(column.kind);
            assert_eq!(*kind, column.kind, "{}.{}", table.name, column.name);
        }
    }
}
