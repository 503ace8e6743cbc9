//! The files of one job, which are small.

use proctrace_analysis::TableSchema;
use proctrace_findings::Rows;

use crate::parquet;
use crate::summary::Summary;

/// Maximum size of all files of a job: rows of `programs` and `misses` that do not fit are added to the remainder.
pub const JOB_BYTES_MAX: usize = 9_700;

/// A summary as files: name of the table and contents.
pub fn encode(summary: &Summary) -> Vec<(&'static str, Vec<u8>)> {
    let mut tables: Vec<(&'static TableSchema, Rows)> = summary.tables.clone();
    let file = |(schema, rows): &(&'static TableSchema, Rows)| parquet::file(schema, rows);
    let mut files: Vec<_> = tables.iter().map(|table| (table.0.name, file(table))).collect();
    // Of the tables that may be cut, the one with most rows loses a fifth of them until all fit. Not the
    // largest: much of a file is descriptions of columns, of which `programs` has most.
    while files.iter().map(|(_, file)| file.len()).sum::<usize>() > JOB_BYTES_MAX {
        let can_be_cut = |at: &usize| {
            let (schema, rows) = &tables[*at];
            crate::cut::has_remainder(schema) && rows.height() > crate::cut::ROWS_MIN
        };
        let rows = |at: &usize| (tables[*at].1.height(), files[*at].1.len());
        let Some(at) = (0..files.len()).filter(can_be_cut).max_by_key(rows) else { break };
        let (schema, rows) = &mut tables[at];
        *rows = crate::cut::shorter(schema, rows, rows.height() * 4 / 5);
        files[at].1 = parquet::file(schema, rows);
    }
    files
}
