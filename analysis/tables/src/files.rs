//! Writes every table of recordings, batch by batch, in one format.

use std::io::Write;
use std::path::Path;

use polars::prelude::DataFrame;
use proctrace_findings::Rows;
use proctrace_recording::Recording;

use crate::answer::rows_of;
use crate::arrow::TableFile;
use crate::definitions::TABLES;
use crate::error::TableError;
use crate::frame::{Wanted, named};
use crate::schema::TableSchema;
use crate::stream;

/// Rows of a table, whose first column, `recording`, contains the name of the recording.
#[derive(Debug, Clone)]
pub struct Batch {
    frame: DataFrame,
}

impl Batch {
    /// The number of rows.
    pub fn height(&self) -> usize {
        self.frame.height()
    }

    /// The rows as plain data.
    ///
    /// # Errors
    /// If a table cannot be computed, which would be a bug in this crate.
    pub fn rows(&self) -> Result<Rows, TableError> {
        rows_of(&self.frame)
    }
}

/// Passes all rows of all tables of a recording, whose trace is at `path`, to `sink`: each table at
/// least once.
///
/// # Errors
/// If the trace cannot be read again, or the sink fails.
pub fn batches<E: From<TableError>>(
    recording: &Recording,
    path: &Path,
    name: &str,
    mut sink: impl FnMut(&'static TableSchema, Batch) -> Result<(), E>,
) -> Result<(), E> {
    let tables: Vec<&'static TableSchema> = TABLES.iter().collect();
    let mut failed = None;
    let done = stream(recording, path, &tables, &Wanted::all(), &mut |schema, frame| {
        // After a failure the rest is read and discarded; only the first failure is reported.
        if failed.is_none() {
            failed = sink(schema, Batch { frame: named(frame, name)? }).err();
        }
        Ok(())
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(done?),
    }
}

/// A columnar format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columnar {
    /// Parquet, compressed by zstd.
    Parquet,
    /// Arrow IPC file (Feather), compressed by zstd.
    Arrow,
}

/// A file in a columnar format that stores the batches of one table.
pub struct ColumnarFile<W: Write> {
    file: TableFile<W>,
}

impl<W: Write> ColumnarFile<W> {
    /// Begins a file for batches like this one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        out: W,
        format: Columnar,
        table: &TableSchema,
        like: &Batch,
    ) -> Result<Self, TableError> {
        let schema = like.frame.schema();
        let file = match format {
            Columnar::Parquet => TableFile::parquet(out, schema, Some(table))?,
            Columnar::Arrow => TableFile::arrow(out, schema, Some(table))?,
        };
        Ok(Self { file })
    }

    /// Adds rows: a row group of Parquet, a record batch of Arrow.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, mut batch: Batch) -> Result<(), TableError> {
        self.file.write(&mut batch.frame)
    }

    /// Finishes the file, which cannot be read otherwise.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn finish(self) -> Result<(), TableError> {
        self.file.finish()
    }
}
