//! docs/tables.md: every table and column, from their definitions.

use crate::definitions::TABLES;
use crate::schema::TableSchema;

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
