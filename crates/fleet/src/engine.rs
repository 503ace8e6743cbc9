//! Questions about a fleet on the embedded engine: reads the files of its tables and runs SQL on them.

use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use polars::prelude::*;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use proctrace_analysis::{Answer, ColumnKind, TableSchema, TablesQuery};

use crate::compact::current;
use crate::error::FleetError;
use crate::lake::Layout;
use crate::schema::FLEET_TABLES;
use crate::sound::{Limits, check};

/// Rows of all files of a table together: with twenty columns some gigabytes.
const ROWS_MAX: usize = 50_000_000;
/// Bytes of one file, and of its contents as it declares them.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// How often files are listed again.
const TRIES_MAX: u32 = 10;

/// The answer to a question about the fleet in a directory.
///
/// # Errors
/// If the SQL is invalid, or a file cannot be read.
pub fn ask(root: &Path, layout: &Layout, sql: &str) -> Result<Answer, FleetError> {
    let query = TablesQuery::new(sql)?;
    let mut tries = 0;
    loop {
        let tables = FLEET_TABLES.iter().filter(|schema| query.reads(schema.name));
        let read = |schema: &'static TableSchema| {
            Ok((schema.name, table(root, layout, schema, &|column| query.wants(column))?))
        };
        match tables.map(read).collect::<Result<Vec<_>, FleetError>>() {
            Ok(frames) => return Ok(query.answer(frames)?),
            // A file was compacted between the look at the directory and its opening.
            Err(FleetError::File { source, .. })
                if source.kind() == ErrorKind::NotFound && tries < TRIES_MAX =>
            {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The files of a table, in order of their paths.
///
/// # Errors
/// If a directory cannot be read.
pub fn files(root: &Path, layout: &Layout, table: &str) -> Result<Vec<PathBuf>, FleetError> {
    let mut files = Vec::new();
    for directory in layout.directories(root, table)? {
        let names = rows_once(&directory)?;
        files.extend(names.into_iter().map(|name| directory.join(name)));
    }
    Ok(files)
}

/// The files of a directory, in a moment in which they can be told from those that they replace.
fn rows_once(directory: &Path) -> Result<Vec<String>, FleetError> {
    for _ in 0..TRIES_MAX {
        if let Some(names) = current(directory)? {
            return Ok(names);
        }
    }
    let why = "it is compacted again and again".to_owned();
    Err(FleetError::Unusable { path: directory.to_owned(), why })
}

/// Whether a file holds rows: those that begin with a dot are not finished.
pub(crate) fn is_table(name: &str) -> bool {
    name.ends_with(".parquet") && !name.starts_with('.')
}

/// The wanted columns of all rows of a table.
fn table(
    root: &Path,
    layout: &Layout,
    schema: &TableSchema,
    wants: &dyn Fn(&str) -> bool,
) -> Result<DataFrame, FleetError> {
    let mut all: Option<DataFrame> = None;
    for path in files(root, layout, schema.name)? {
        let rows = read(&path, schema, wants)?;
        let height = all.as_ref().map_or(0, DataFrame::height).saturating_add(rows.height());
        if height > ROWS_MAX {
            let why = format!("more than {ROWS_MAX} rows of {} are too many", schema.name);
            return Err(FleetError::Unusable { path, why });
        }
        match &mut all {
            None => all = Some(rows),
            Some(all) => {
                all.vstack_mut_owned(rows)?;
            }
        }
    }
    let mut all = match all {
        Some(all) => all,
        None => empty(schema, wants, 0)?,
    };
    all.rechunk_mut_par();
    Ok(all)
}

/// No values for the wanted columns.
fn empty(
    schema: &TableSchema,
    wants: &dyn Fn(&str) -> bool,
    height: usize,
) -> Result<DataFrame, FleetError> {
    let columns = schema.columns.iter().filter(|column| wants(column.name));
    let null = |column: &proctrace_analysis::ColumnSchema| {
        Column::full_null(column.name.into(), height, &dtype(column.kind))
    };
    Ok(DataFrame::new(height, columns.map(null).collect())?)
}

/// Integers are as wide as they get: their sums may be large.
fn dtype(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::I32 => DataType::Int64,
        kind => kind.dtype(),
    }
}

/// The wanted columns of a file; those that it lacks, because an earlier version wrote it, are null.
fn read(
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
