//! The arguments of the commands about many jobs: `summarize`, `compact`, `fleet`, and the summaries of `record`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proctrace_fleet::Layout;

use super::DEFAULT_TRACE;
use super::csv::CsvArgs;
use super::parse::parse_label;
use super::report::{CeilingArgs, RulesArgs, TimeArgs};
use super::tables::RowsFormat;

/// Summarize recordings for a fleet: small Parquet files, of which thousands can be queried together.
#[derive(Debug, Args)]
#[command(
    long_about = "Summarize recordings for a fleet: small Parquet files, of which thousands can be queried \
        together.\n\n\
        Each recording becomes one file in each of the tables jobs, programs, misses, advice and step_groups, of at \
        most 9,700 bytes together: DIR/table=jobs/day=YYYY-MM-DD/JOB.parquet and so on. What does not fit \
        is in one row for all the rest. Who the job was is taken from the variables of HTCondor, Slurm, \
        PBS, PanDA, DIRAC, AliEn, GitHub Actions, GitLab and Jenkins that the recording has, and from \
        labels. Names of users are not written. docs/fleet.md describes the tables.",
    after_long_help = "Examples:\n  \
        proctrace summarize job.ptrace -o lake\n  \
        proctrace summarize *.ptrace -o lake --label site=T2_XY --label release=v2.1\n  \
        proctrace summarize job.ptrace -o lake --redact --site-key site.key\n  \
        proctrace record --summary lake --discard-trace -- ./job.sh\n  \
        duckdb -c \"SELECT command, cpu_us, waited_cpu_us FROM 'lake/table=jobs/*/*.parquet'\""
)]
pub(crate) struct SummarizeArgs {
    /// Trace files.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) traces: Vec<PathBuf>,

    /// The directory of the fleet; created if necessary.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) about: AboutArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// What summaries contain besides what is recorded.
#[derive(Debug, Args)]
pub(crate) struct AboutArgs {
    /// With a summary: a property of the job. site, queue, batch_system, batch_id, user, release and
    /// cores set these columns, others the column labels. Can be given several times.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    pub(crate) labels: Vec<(String, String)>,

    /// With a summary: the file with the site's secret, at least 16 bytes, by which names of users are
    /// hashed, and with --redact other names. Without it, summaries do not distinguish users.
    #[arg(long, value_name = "FILE", alias = "user-key")]
    pub(crate) site_key: Option<PathBuf>,

    /// With a summary and --site-key: write hashes instead of paths, arguments, and names of programs that
    /// do not come with every system. docs/privacy.md says column by column what is left.
    #[arg(long, requires = "site_key")]
    pub(crate) redact: bool,

    /// With a summary: the CPU time that the batch system reports, in seconds.
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    pub(crate) batch_cpu: Option<f64>,

    /// With a summary: the shape of the paths below DIR. The placeholders are {table}, {day}, {year},
    /// {month} and {mday}.
    #[arg(long, value_name = "SHAPE", default_value_t, hide_short_help = true)]
    pub(crate) layout: Layout,
}

/// The summary that `record` writes.
#[derive(Debug, Args)]
#[command(
    next_help_heading = proctrace_recorder::args::headings::NODES,
    // It is that of one job.
    mut_arg("batch_cpu", |argument| argument.conflicts_with("per_cgroup"))
)]
pub(crate) struct RecordSummaryArgs {
    /// When the recording is finished, add its summary to the fleet in DIR, as `proctrace summarize`
    /// does. With --per-cgroup, each job is summarized as its cgroup ends.
    #[arg(long, value_name = "DIR")]
    pub(crate) summary: Option<PathBuf>,

    /// With --summary: remove the trace once it is summarized.
    #[arg(long, requires = "summary")]
    pub(crate) discard_trace: bool,

    #[command(flatten)]
    pub(crate) about: AboutArgs,
}

/// Ask questions about many jobs.
#[derive(Debug, Args)]
#[command(
    long_about = "Ask questions about many jobs: the summaries that `summarize` and `record --summary` \
        have put into a directory.\n\n\
        QUERY is the name of a question that has an answer ready, or SQL on the tables jobs, programs, \
        misses, advice and step_groups, which docs/fleet.md describes; overview stands for all questions, as one HTML \
        page. Without arguments, the questions are listed.",
    after_long_help = "Examples:\n  \
        proctrace fleet\n  \
        proctrace fleet wasted lake\n  \
        proctrace fleet overview lake > overview.html\n  \
        proctrace fleet 'SELECT site, count(*) AS jobs FROM jobs GROUP BY site' lake --format csv\n  \
        proctrace fleet --print regressions > regressions.sql\n  \
        proctrace fleet regressions lake --engine duckdb --python venv/bin/python"
)]
pub(crate) struct FleetArgs {
    /// A question by its name, or SQL.
    #[arg(value_name = "QUERY")]
    pub(crate) query: Option<String>,

    /// The directory of the fleet.
    #[arg(value_name = "DIR", requires = "query")]
    pub(crate) directory: Option<PathBuf>,

    /// What answers: the engine that is built in, or DuckDB or Spark by their packages for Python.
    #[arg(long, value_enum, default_value = "polars")]
    pub(crate) engine: Engine,

    /// With another engine: the Python that has duckdb or pyspark.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub(crate) python: PathBuf,

    /// Print the SQL of the question instead of the answer.
    #[arg(long, requires = "query")]
    pub(crate) print: bool,

    /// The shape of the paths below DIR, as for `summarize`.
    #[arg(long, value_name = "SHAPE", default_value_t, hide_short_help = true)]
    pub(crate) layout: Layout,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: RowsFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,

    #[command(flatten)]
    pub(crate) time: TimeArgs,
}

/// What answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The engine that is built in.
    Polars,
    /// DuckDB.
    Duckdb,
    /// Spark SQL.
    Spark,
}

/// Put the small files of a fleet together.
#[derive(Debug, Args)]
#[command(
    long_about = "Put the small files of a fleet together: in each directory they become one, sorted by site \
        and job, which queries read in a fraction of the time.\n\n\
        It may run at any time, and again: jobs may be added meanwhile, and those that arrive late are \
        added by the next run. A summary that is made again replaces the earlier one of its job. If it is \
        interrupted, the next run completes it.",
    after_long_help = "Example, from cron:\n  \
        proctrace compact /data/lake"
)]
pub(crate) struct CompactArgs {
    /// The directory of the fleet.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// The shape of the paths below DIR, as for `summarize`.
    #[arg(long, value_name = "SHAPE", default_value_t, hide_short_help = true)]
    pub(crate) layout: Layout,
}
