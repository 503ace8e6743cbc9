//! A recording as tables: the basis of queries, exports and sections.
//!
//! [`TABLES`] describes them. Some are in memory once a recording is loaded; for the others the
//! trace is read again, one batch of rows at a time, so that none has to fit into memory.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod answer;
mod arrow;
mod columns;
mod definitions;
mod error;
mod events;
mod files;
mod frame;
mod guard;
mod markdown;
mod marking;
mod names;
mod other;
mod parts;
mod query;
mod rows;
mod schema;
mod size;
mod stepping;
mod threads;
mod waiting;
mod words;

use std::path::Path;

pub use answer::Answer;
pub use definitions::TABLES;
pub use error::TableError;
pub use files::{Batch, Columnar, ColumnarFile, batches};
pub use markdown::{table_markdown, tables_markdown};
pub use other::TablesQuery;
pub use query::{Query, QueryError};
pub use schema::{ColumnKind, ColumnSchema, TableSchema};

use proctrace_recording::Recording;

use crate::events::{Scan, Sink};
use crate::frame::Wanted;
use crate::rows::Names;

/// Rows per batch, and so per row group: large enough for compression and skipping, small enough to
/// hold dozens of columns in memory.
const BATCH_ROWS: usize = 1 << 17;

/// Tables that are read from the trace itself.
const FROM_TRACE: [&str; 7] =
    ["execs", "failed_execs", "environments", "renames", "lookups", "samples", "memory"];

/// Passes the rows of some tables to `sink`, batch by batch; each table at least once, so that one
/// without rows can be distinguished from one that was not requested.
pub(crate) fn stream(
    recording: &Recording,
    path: &Path,
    tables: &[&'static TableSchema],
    wanted: &Wanted,
    sink: Sink<'_>,
) -> Result<(), TableError> {
    threads::can_start().map_err(TableError::Threads)?;
    let names = Names::of(recording);
    let wanted = &wanted.clone().of(recording);
    for schema in tables.iter().copied() {
        match schema.name {
            "processes" => in_batches(recording.processes().len(), |range| {
                sink(schema, rows::processes(recording, &names, schema, wanted, range)?)
            })?,
            "threads" => in_batches(recording.tasks().len(), |range| {
                sink(schema, rows::threads(recording, schema, wanted, range)?)
            })?,
            "opened_files" => {
                let paths = rows::opened_paths(recording);
                in_batches(rows::opened_uses(recording).len(), |range| {
                    sink(schema, rows::opened_files(recording, &paths, schema, wanted, range)?)
                })?;
            }
            "waits" => in_batches(recording.waits().unwrap_or_default().len(), |range| {
                sink(schema, waiting::waits(recording, schema, wanted, range)?)
            })?,
            "signals" => sink(schema, waiting::signals(recording, schema, wanted)?)?,
            "marks" => sink(schema, marking::marks(recording, schema, wanted)?)?,
            "steps" => sink(schema, stepping::steps(recording, schema, wanted)?)?,
            "step_files" => sink(schema, stepping::files(recording, schema, wanted)?)?,
            "bins" => {
                let bins = rows::bins(recording, schema, wanted)?;
                sink(schema, wanted.divided_by_time(bins))?;
            }
            "category_bins" => {
                let bins = rows::category_bins(recording, &names, schema, wanted)?;
                sink(schema, wanted.divided_by_time(bins))?;
            }
            "losses" => sink(schema, rows::losses(recording, schema, wanted)?)?,
            "recording" => sink(schema, rows::recording(recording, schema, wanted)?)?,
            _ => {}
        }
    }
    if tables.iter().any(|table| FROM_TRACE.contains(&table.name)) {
        Scan::new(recording, &names, wanted, BATCH_ROWS).read(path, tables, sink)?;
    }
    Ok(())
}

fn in_batches(
    rows: usize,
    mut each: impl FnMut(std::ops::Range<usize>) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let mut from = 0;
    loop {
        let to = rows.min(from + BATCH_ROWS);
        each(from..to)?;
        from = to;
        if from >= rows {
            return Ok(());
        }
    }
}
