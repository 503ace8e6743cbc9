//! The schema of the tables of a recording: their names, columns, types and meanings.
//!
//! This is a public interface: columns may be added, but neither renamed nor redefined.

use polars::prelude::DataType;

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
}
