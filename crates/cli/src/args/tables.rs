//! The arguments of the commands that output a recording's tables: `query` and `export`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DEFAULT_TRACE;
use super::report::RulesArgs;

/// Ask recordings by SQL.
#[derive(Debug, Args)]
#[command(
    long_about = "Ask recordings by SQL.\n\n\
        A recording is a set of tables: processes, threads, execs, lookups, samples and more. Without \
        SQL, query lists them with their columns; docs/tables.md has the same, docs/queries.md \
        examples. Several recordings are asked at once: the column `recording` of every table names \
        each, and joins are within one only if it is joined by as well. Units are in the names of columns; \
        what a recording does not know is NULL.",
    after_long_help = "Examples:\n  \
        proctrace query\n  \
        proctrace query 'SELECT program, count(*) AS n, sum(user_ns + system_ns) / 1e9 AS cpu_s\n      \
        FROM processes GROUP BY program ORDER BY n DESC'\n  \
        proctrace query 'SELECT recording, max(peak_rss_bytes) FROM processes GROUP BY recording' \\\n      \
        before.ptrace after.ptrace\n  \
        proctrace query -f slow.sql --format csv job.ptrace > slow.csv"
)]
pub(crate) struct QueryArgs {
    /// SQL, or the name of a table to describe; unless it comes from a file (-f). Then the traces, by
    /// default proctrace.ptrace.
    #[arg(value_name = "SQL|FILE")]
    pub(crate) arguments: Vec<OsString>,

    /// Read the SQL from this file; - is standard input.
    #[arg(short = 'f', long = "sql-file", value_name = "FILE")]
    pub(crate) sql_file: Option<PathBuf>,

    /// How to print the answer: text, unless the name of --output says otherwise.
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowsFormat>,

    /// Write the whole answer into this file; .csv, .json, .ndjson and .parquet say how.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Print so many rows as text; other formats have all.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(crate) top: usize,

    /// Print all rows.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowsFormat {
    /// A table for people.
    Text,
    /// Comma-separated values, names of columns first.
    Csv,
    /// An array of objects.
    Json,
    /// An object in each line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

/// Write the tables of recordings into files that other tools read.
#[derive(Debug, Args)]
#[command(
    long_about = "Write the tables of recordings into files that other tools read: one file a table, as \
        Parquet, Arrow (IPC, Feather) or CSV.\n\n\
        Rows of all recordings stand in one file; the column `recording` names each. Parquet and Arrow \
        files have descriptions and units of the columns in their metadata. docs/tables.md describes \
        the tables.",
    after_long_help = "Examples:\n  \
        proctrace export tables job.ptrace\n  \
        duckdb -c \"SELECT program, count(*) FROM 'tables/processes.parquet' GROUP BY ALL\"\n  \
        proctrace export --format csv tables before.ptrace after.ptrace"
)]
pub(crate) struct ExportArgs {
    /// The directory, which is made if need be.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// The traces.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) traces: Vec<PathBuf>,

    /// What the files are.
    #[arg(long, value_enum, default_value = "parquet")]
    pub(crate) format: TablesFormat,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// What exported tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TablesFormat {
    /// Apache Parquet, compressed by zstd.
    Parquet,
    /// Arrow IPC files, also known as Feather, compressed by zstd.
    Arrow,
    /// Comma-separated values.
    Csv,
}
