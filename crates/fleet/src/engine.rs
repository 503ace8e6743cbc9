//! Questions about a fleet on the embedded engine: reads the files of its tables and runs SQL on them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use polars::prelude::*;
use proctrace_analysis::{Answer, TableSchema, TablesQuery};

use crate::compact::current;
use crate::error::FleetError;
use crate::lake::Layout;
use crate::schema::FLEET_TABLES;
use crate::table_file::{ROWS_MAX, dtype, read};

/// Maximum number of times that files are listed again.
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

/// Frame without values for the wanted columns.
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
