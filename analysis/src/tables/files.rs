//! Writing every table of recordings, batch by batch, in one format.

use std::io::Write;
use std::path::Path;

use polars::prelude::DataFrame;
use proctrace_findings::Rows;

use crate::error::AnalysisError;
use crate::recording::Recording;
use crate::tables::answer::rows_of;
use crate::tables::arrow::TableFile;
use crate::tables::frame::{Wanted, named};
use crate::tables::schema::{TABLES, TableSchema};
use crate::tables::stream;

/// Rows of a table, of which the first column, `recording`, names the recording.
#[derive(Debug, Clone)]
pub struct Batch {
    frame: DataFrame,
}

impl Batch {
    /// How many rows.
    pub fn height(&self) -> usize {
        self.frame.height()
    }

    /// The rows as plain data.
    ///
    /// # Errors
    /// When a table cannot be computed, which would be a fault of this crate.
    pub fn rows(&self) -> Result<Rows, AnalysisError> {
        rows_of(&self.frame)
    }
}

/// Hands all rows of all tables of a recording, of which the trace is at `path`, to `sink`: each table
/// at least once.
///
/// # Errors
/// When the trace cannot be read again, or the sink fails.
pub fn batches<E: From<AnalysisError>>(
    recording: &Recording,
    path: &Path,
    name: &str,
    mut sink: impl FnMut(&'static TableSchema, Batch) -> Result<(), E>,
) -> Result<(), E> {
    let tables: Vec<&'static TableSchema> = TABLES.iter().collect();
    let mut failed = None;
    let done = stream(recording, path, &tables, &Wanted::all(), &mut |schema, frame| {
        // After a failure the rest is read for nothing; the first failure is the one to tell.
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

/// A file in a columnar format that takes the batches of one table.
pub struct ColumnarFile<W: Write> {
    file: TableFile<W>,
}

impl<W: Write> ColumnarFile<W> {
    /// Begins a file that takes batches like this one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(
        out: W,
        format: Columnar,
        table: &TableSchema,
        like: &Batch,
    ) -> Result<Self, AnalysisError> {
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
    /// When they cannot be written.
    pub fn write(&mut self, mut batch: Batch) -> Result<(), AnalysisError> {
        self.file.write(&mut batch.frame)
    }

    /// Ends the file: without that it cannot be read.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn finish(self) -> Result<(), AnalysisError> {
        self.file.finish()
    }
}
