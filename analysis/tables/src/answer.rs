//! The result of a query, row by row or as a file.

use std::io::Write;

use polars::prelude::*;
use proctrace_findings::{Rows, RowsColumn, RowsValues};

use crate::arrow::parquet;
use crate::error::TableError;

/// The result of a query.
#[derive(Debug, Clone)]
pub struct Answer {
    frame: DataFrame,
}

impl Answer {
    pub(crate) fn new(frame: DataFrame) -> Self {
        Self { frame }
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.frame.height()
    }

    /// A number of rows, starting at a given one.
    ///
    /// # Errors
    /// If a column has values that cannot be represented as strings, numbers or lists of strings.
    pub fn rows(&self, from: usize, rows: usize) -> Result<Rows, TableError> {
        rows_of(&self.frame.slice(i64::try_from(from).unwrap_or(i64::MAX), rows))
    }

    /// Writes all rows as Parquet.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn parquet(&self, out: impl Write) -> Result<(), TableError> {
        parquet(&self.frame, out)
    }
}

/// The rows of a frame, in types that every renderer supports.
pub(crate) fn rows_of(frame: &DataFrame) -> Result<Rows, TableError> {
    let columns = frame
        .columns()
        .iter()
        .map(|column| Ok(RowsColumn { name: column.name().to_string(), values: values(column)? }))
        .collect::<Result<Vec<_>, TableError>>()?;
    Ok(Rows { columns })
}

fn values(column: &Column) -> Result<RowsValues, TableError> {
    Ok(match column.dtype() {
        DataType::Boolean => RowsValues::Flag(column.bool()?.iter().collect()),
        DataType::String => {
            RowsValues::Text(column.str()?.iter().map(|text| text.map(str::to_owned)).collect())
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            RowsValues::Whole(column.cast(&DataType::UInt64)?.u64()?.iter().collect())
        }
        dtype if dtype.is_integer() => {
            RowsValues::Signed(column.cast(&DataType::Int64)?.i64()?.iter().collect())
        }
        DataType::Float32 | DataType::Float64 => {
            let values = column.cast(&DataType::Float64)?;
            // The result of a division by zero is null.
            let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
            RowsValues::Real(values.f64()?.iter().map(finite).collect())
        }
        DataType::List(_) => {
            let lists = column.cast(&DataType::List(Box::new(DataType::String)))?;
            let texts = |list: Option<Series>| -> Result<Option<Vec<String>>, TableError> {
                let Some(list) = list else { return Ok(None) };
                let texts = list.str()?.iter();
                Ok(Some(texts.map(|text| text.unwrap_or_default().to_owned()).collect()))
            };
            let lists = lists.list()?;
            let each = (0..lists.len()).map(|row| texts(lists.get_as_series(row)));
            RowsValues::Texts(each.collect::<Result<_, _>>()?)
        }
        _ => {
            let texts = column.cast(&DataType::String)?;
            RowsValues::Text(texts.str()?.iter().map(|text| text.map(str::to_owned)).collect())
        }
    })
}
