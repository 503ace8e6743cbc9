//! The arguments of the commands that output a recording's tables: `query` and `export`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DEFAULT_TRACE;
use super::csv::CsvArgs;
use super::report::{RulesArgs, TimeArgs};

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

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

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

    #[command(flatten)]
    pub(crate) time: TimeArgs,
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

/// Export recordings to files for other tools.
#[derive(Debug, Args)]
#[command(
    long_about = "Export recordings to files for other tools.\n\n\
        Tables, one file each: parquet, arrow (IPC, Feather), csv, ndjson. Each file contains the \
        rows of all recordings; the column `recording` names the recording. The metadata of Parquet \
        and Arrow files contains descriptions and units of the columns. docs/tables.md describes \
        the tables.\n\n\
        Formats of viewers, one file of one recording: perfetto, chrome, folded, speedscope, \
        compile-commands, otlp. docs/exports.md describes what they contain and how to open them.\n\n\
         prmon: prmon.txt and prmon.json of one recording, for prmon's scripts and other readers of \
         its files: a row for each reading of memory (record --memory), at most one a second.\n\n\
        Of steps (docs/steps.md), one file: nextflow-trace and snakemake-benchmark, for runs in which the \
        engine's own metrics are empty; dot and mermaid, which steps read what others write; slurm, \
        htcondor, snakemake-profile and nextflow-config, what to request \
        (from one recording or several of the same job). o2dpg: a directory.",
    after_long_help = "Examples:\n  \
        proctrace export tables job.ptrace\n  \
        duckdb -c \"SELECT program, count(*) FROM 'tables/processes.parquet' GROUP BY ALL\"\n  \
        proctrace export --format csv tables before.ptrace after.ptrace\n  \
        proctrace export --format perfetto job.perfetto-trace job.ptrace   # ui.perfetto.dev\n  \
        proctrace export --format folded - job.ptrace | inferno-flamegraph > cpu.svg\n  \
        proctrace export --format compile-commands . build.ptrace          # for clangd\n  \
        proctrace export --format prmon . job.ptrace && prmon_plot.py\n  \
        proctrace export --format slurm - job.ptrace"
)]
pub(crate) struct ExportArgs {
    /// Output directory of tables, created if necessary; for viewers, the file, a directory, or - for
    /// standard output; for other formats, the file or -. prmon: a directory, or a file that ends in
    /// .txt.
    #[arg(value_name = "OUTPUT")]
    pub(crate) output: PathBuf,

    /// Trace files.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) traces: Vec<PathBuf>,

    /// Format.
    #[arg(long, value_enum, default_value = "parquet")]
    pub(crate) format: TablesFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// The value of each stack of --format folded; by default cpu.
    #[arg(long, value_enum)]
    pub(crate) value: Option<StackValue>,

    /// With --format perfetto: times off the CPU, on the tracks of threads.
    #[arg(long)]
    pub(crate) waits: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TablesFormat {
    /// Tables as Apache Parquet, compressed by zstd.
    Parquet,
    /// Tables as Arrow IPC files, also known as Feather, compressed by zstd.
    Arrow,
    /// Tables as comma-separated values.
    Csv,
    /// Tables as one JSON object per row and line.
    Ndjson,
    /// prmon.txt and prmon.json.
    Prmon,
    /// The graph of files and the resources of tasks that O2DPG's workflow runner reads.
    O2dpg,
    /// Nextflow's trace.txt, with values as with trace.raw.
    NextflowTrace,
    /// The columns of Snakemake's benchmark files, a line per job.
    SnakemakeBenchmark,
    /// What to request: #SBATCH lines for the job, and options for each group of steps.
    Slurm,
    /// The same as commands of a submit description.
    Htcondor,
    /// What to request for each rule, as a profile: config.yaml for snakemake --workflow-profile.
    SnakemakeProfile,
    /// What to request for each process, as a configuration: nextflow -c FILE.
    NextflowConfig,
    /// Which steps read what others write, as a graph of Graphviz.
    Dot,
    /// The same as a flow chart of Mermaid.
    Mermaid,
    /// A trace for ui.perfetto.dev and trace_processor.
    Perfetto,
    /// Trace Event JSON, for chrome://tracing.
    Chrome,
    /// Chains of programs, one per line, for flame graphs.
    Folded,
    /// Chains of programs and the critical path, for speedscope.app.
    Speedscope,
    /// compile_commands.json of the compilers that ran.
    CompileCommands,
    /// Spans of OpenTelemetry, as OTLP/JSON.
    Otlp,
}

/// The value of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackValue {
    /// CPU time in microseconds.
    #[default]
    Cpu,
    /// Lifetimes in microseconds.
    Wall,
    /// Number of processes.
    Processes,
}
