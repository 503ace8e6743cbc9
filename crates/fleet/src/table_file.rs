//! Reads a Parquet file of a fleet, of which nothing is believed.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use polars::prelude::*;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use proctrace_analysis::{ColumnKind, TableSchema};

use crate::error::FleetError;
use crate::sound::{Limits, check};

/// Rows of all files of a table together: with twenty columns some gigabytes.
pub(crate) const ROWS_MAX: usize = 50_000_000;
/// Bytes of one file, and of its contents as it declares them.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// True if a file holds rows: those that begin with a dot are not finished.
pub(crate) fn is_table(name: &str) -> bool {
    name.ends_with(".parquet") && !name.starts_with('.')
}

/// Integers are as wide as they get: their sums may be large.
pub(crate) fn dtype(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::I32 => DataType::Int64,
        kind => kind.dtype(),
    }
}

/// The wanted columns of a file; those that it lacks, because an earlier version wrote it, are null.
pub(crate) fn read(
    path: &Path,
    schema: &TableSchema,
    wants: &dyn Fn(&str) -> bool,
) -> Result<DataFrame, FleetError> {
    let file = File::open(path).map_err(FleetError::file(path))?;
    checked(file, path, |file| columns(file, schema, wants))
}

/// All columns of a file as they are, those that this version does not know too.
pub(crate) fn read_whole(
    file: File,
    path: &Path,
    schema: &TableSchema,
) -> Result<DataFrame, FleetError> {
    checked(file, path, |file| {
        let frame = bounded(file)?.set_rechunk(true).finish().map_err(|error| told(&error))?;
        for column in frame.columns() {
            // Of damaged levels, polars makes columns of different heights.
            if column.len() != frame.height() {
                let name = column.name();
                return Err(format!(
                    "column {name} has {} of {} values",
                    column.len(),
                    frame.height()
                ));
            }
            let known = schema.column(column.name());
            if let Some(known) = known.filter(|known| known.kind.dtype() != *column.dtype()) {
                return Err(mistyped(column, &known.kind.dtype()));
            }
        }
        Ok(frame)
    })
}

fn checked(
    file: File,
    path: &Path,
    read: impl FnOnce(File) -> Result<DataFrame, String>,
) -> Result<DataFrame, FleetError> {
    let bytes = file.metadata().map_err(FleetError::file(path))?.len();
    let unusable = |why: String| FleetError::Unusable { path: path.to_owned(), why };
    if bytes > FILE_BYTES_MAX {
        return Err(unusable(format!("more than {FILE_BYTES_MAX} bytes")));
    }
    // Values that are damaged still make it panic.
    match catch_unwind(AssertUnwindSafe(|| read(file))) {
        Ok(frame) => frame.map_err(unusable),
        Err(_) => Err(unusable("it is damaged".to_owned())),
    }
}

/// The first line of an error of the engine: the rest describes its plan.
fn told(error: &PolarsError) -> String {
    let text = error.to_string();
    text.split("\n\n").next().unwrap_or(&text).to_owned()
}

fn mistyped(column: &Column, dtype: &DataType) -> String {
    format!("column {} has the type {} instead of {dtype}", column.name(), column.dtype())
}

/// A reader of a file whose sizes can be believed.
fn bounded(file: File) -> Result<ParquetReader<File>, String> {
    check(&file, Limits { rows: ROWS_MAX as u64, bytes: FILE_BYTES_MAX })?;
    Ok(ParquetReader::new(file))
}

fn columns(
    file: File,
    schema: &TableSchema,
    wants: &dyn Fn(&str) -> bool,
) -> Result<DataFrame, String> {
    let told = |error: PolarsError| told(&error);
    let mut reader = bounded(file)?;
    let found = reader.schema().map_err(told)?;
    let rows = reader.num_rows().map_err(told)?;
    let wanted: Vec<_> = schema.columns.iter().filter(|column| wants(column.name)).collect();
    let present = |name: &str| found.iter_values().any(|field| field.name == name);
    let names: Vec<String> =
        wanted.iter().filter(|it| present(it.name)).map(|it| it.name.to_owned()).collect();
    let frame = if names.is_empty() {
        DataFrame::empty_with_height(rows)
    } else {
        reader.with_columns(Some(names)).set_rechunk(true).finish().map_err(told)?
    };
    let height = frame.height();
    let mut ordered = Vec::new();
    for column in wanted {
        let dtype = dtype(column.kind);
        ordered.push(match frame.column(column.name) {
            Ok(values) if *values.dtype() == dtype => values.clone(),
            Ok(values) if values.dtype().is_integer() && dtype.is_integer() => {
                values.strict_cast(&dtype).map_err(told)?
            }
            Ok(values) => return Err(mistyped(values, &dtype)),
            Err(_) => Column::full_null(column.name.into(), height, &dtype),
        });
    }
    DataFrame::new(height, ordered).map_err(told)
}
