//! The arguments of the commands that output a recording's tables: `query` and `export`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DEFAULT_TRACE;
use super::report::RulesArgs;

/// Query recordings with SQL.
#[derive(Debug, Args)]
#[command(
    long_about = "Query recordings with SQL.\n\n\
        A recording is a set of tables: processes, threads, execs, lookups, samples and more. Without \
        SQL, query lists them with their columns; docs/tables.md contains the same list, docs/queries.md \
        examples. With several recordings, each table contains the rows of all of them, and its column \
        `recording` names the recording; joins must include that column to stay within one recording. \
        Names of columns contain units; values that a recording does not contain are NULL.",
    after_long_help = "Examples:\n  \
        proctrace query\n  \
        proctrace query 'SELECT program, count(*) AS n, sum(user_ns + system_ns) / 1e9 AS cpu_s\n      \
        FROM processes GROUP BY program ORDER BY n DESC'\n  \
        proctrace query 'SELECT recording, max(peak_rss_bytes) FROM processes GROUP BY recording' \\\n      \
        before.ptrace after.ptrace\n  \
        proctrace query -f slow.sql --format csv job.ptrace > slow.csv"
)]
pub(crate) struct QueryArgs {
    /// SQL, or the name of a table to describe, unless -f is given; then the traces, by default
    /// proctrace.ptrace.
    #[arg(value_name = "SQL|FILE")]
    pub(crate) arguments: Vec<OsString>,

    /// Read the SQL from this file; - is standard input.
    #[arg(short = 'f', long = "sql-file", value_name = "FILE")]
    pub(crate) sql_file: Option<PathBuf>,

    /// Output format. The default depends on the extension of --output; without one it is text.
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowsFormat>,

    /// Write the whole result to this file; .csv, .json, .ndjson and .parquet select the format.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Maximum number of rows printed as text; other formats contain all rows.
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
    /// A table as plain text.
    Text,
    /// Comma-separated values with the names of columns in the first line.
    Csv,
    /// An array of objects.
    Json,
    /// One object per line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

/// Export the tables of recordings to files for other tools.
#[derive(Debug, Args)]
#[command(
    long_about = "Export the tables of recordings to files for other tools: one file per table, as \
        Parquet, Arrow (IPC, Feather), CSV or NDJSON; or as the files that prmon would have written.\n\n\
        Each file contains the rows of all recordings; the column `recording` names the recording. The \
        metadata of Parquet and Arrow files contains descriptions and units of the columns. \
        docs/tables.md describes the tables.\n\n\
        --format prmon writes prmon.txt and prmon.json of one recording, for prmon's scripts and other \
        readers of its files: a row for each reading of memory (record --memory), at most one a second.",
    after_long_help = "Examples:\n  \
        proctrace export tables job.ptrace\n  \
        duckdb -c \"SELECT program, count(*) FROM 'tables/processes.parquet' GROUP BY ALL\"\n  \
        proctrace export --format csv tables before.ptrace after.ptrace\n  \
        proctrace export --format prmon . job.ptrace && prmon_plot.py"
)]
pub(crate) struct ExportArgs {
    /// Output directory, created if necessary. With --format prmon also a file that ends in .txt.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Trace files.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) traces: Vec<PathBuf>,

    /// File format.
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
    /// One JSON object per row and line.
    Ndjson,
    /// prmon.txt and prmon.json.
    Prmon,
}
