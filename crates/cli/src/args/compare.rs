//! The arguments of `diff`, `metrics` and `gate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::RulesArgs;
use super::csv::CsvArgs;

/// Compare two runs, or several runs before and after a change.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace diff [OPTIONS] <BEFORE> <AFTER>\n       \
        proctrace diff [OPTIONS] --before <FILE>... --after <FILE>...",
    long_about = "Compare two runs, or several runs before and after a change: processes, commands, \
        threads, failed look-ups, CPU time, memory; then what disappeared, appeared, grew and shrank, \
        by command, by parent, and by searched directory.\n\n\
        Counts are exact. Times have a confidence interval if there are at least three runs on each \
        side.",
    after_long_help = "Examples:\n  \
        proctrace diff before.ptrace after.ptrace\n  \
        proctrace diff --before b1.ptrace --before b2.ptrace --before b3.ptrace \\\n                 \
        --after a1.ptrace --after a2.ptrace --after a3.ptrace\n  \
        proctrace diff before.ptrace after.ptrace --format markdown --waterfall what.svg"
)]
pub(crate) struct DiffArgs {
    /// Run before the change: a trace, or the JSON output of `metrics`.
    #[arg(
        value_name = "BEFORE",
        required_unless_present_any = ["before", "after"],
        conflicts_with_all = ["before", "after"],
        requires = "after_file"
    )]
    pub(crate) before_file: Option<PathBuf>,

    /// Run after the change, in either form.
    #[arg(
        value_name = "AFTER",
        required_unless_present_any = ["before", "after"],
        conflicts_with_all = ["before", "after"]
    )]
    pub(crate) after_file: Option<PathBuf>,

    /// Runs before the change. Can be given several times.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "after")]
    pub(crate) before: Vec<PathBuf>,

    /// Runs after the change. Can be given several times.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "before")]
    pub(crate) after: Vec<PathBuf>,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: DiffFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// Draw the difference in the number of processes, by command, as a waterfall chart: as SVG,
    /// or as PNG if the file's name ends in .png.
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) waterfall: Option<PathBuf>,

    /// Maximum number of rows printed per table.
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    pub(crate) top: usize,

    /// Print all rows of each table.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// How to print a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Tables as plain text.
    Text,
    /// All values as JSON.
    Json,
    /// All tables as CSV, separated by empty lines.
    Csv,
    /// Tables in Markdown, for a comment or a page.
    Markdown,
}

/// Print the metrics of a run by their stable names.
#[derive(Debug, Args)]
#[command(
    long_about = "Print the metrics of a run by their stable names, for gates, monitoring and \
        scripts.",
    after_long_help = "Examples:\n  \
        proctrace metrics job.ptrace\n  \
        proctrace metrics job.ptrace --format json > baseline.json\n  \
        proctrace metrics job.ptrace --format openmetrics > metrics.txt\n  \
        proctrace metrics --names"
)]
pub(crate) struct MetricsArgs {
    /// Trace, or the JSON output of this command.
    #[arg(value_name = "FILE", default_value = super::DEFAULT_TRACE)]
    pub(crate) file: PathBuf,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: MetricsFormat,

    /// List the names of all metrics and their meaning instead.
    #[arg(long, conflicts_with_all = ["file", "format"])]
    pub(crate) names: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// How to print figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsFormat {
    /// A table as plain text.
    Table,
    /// JSON, for `gate --baseline` and `diff`.
    Json,
    /// OpenMetrics, for Prometheus and GitLab.
    Openmetrics,
}

/// Fail if a run is worse than a budget or a baseline allows.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    long_about = "Fail if a run is worse than a budget or a baseline allows.\n\n\
        Limits that are exceeded for the same reason are one finding, which names the program or directory. \
        Counts are compared exactly, or with the spread of several baselines. CPU time needs several \
        runs on each side, and fails only if the whole confidence interval of the ratio is beyond the \
        limit; if noise prevents a decision, the result is inconclusive. Wall time is compared only if a \
        rule names it.",
    after_long_help = "Exit status: 0 within limits, 1 the gate itself failed, 2 invalid arguments or \
        budget, 3 worse than allowed, 4 inconclusive.\n\n\
        Examples:\n  \
        proctrace gate init good1.ptrace good2.ptrace good3.ptrace > gate.toml\n  \
        proctrace gate --budget gate.toml new.ptrace\n  \
        proctrace gate --limit 'execs{command=\"sed\"}=0%|500' --baseline old.ptrace new.ptrace\n  \
        proctrace gate run --budget gate.toml --runs 5 -- ./job.sh\n  \
        proctrace gate explain PT001"
)]
pub(crate) struct GateArgs {
    #[command(subcommand)]
    pub(crate) action: Option<GateAction>,

    #[command(flatten)]
    pub(crate) gate: GateOptions,

    /// The runs to judge: traces, or JSON output of `metrics`.
    #[arg(value_name = "CANDIDATE", required = true)]
    pub(crate) candidates: Vec<PathBuf>,
}

/// What a gate compares with, and where it reports.
#[derive(Debug, Args)]
pub(crate) struct GateOptions {
    /// TOML file with the limits. The default is ./gate.toml, if it exists and no --limit is given.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) budget: Option<PathBuf>,

    /// A limit: a metric or pattern, then the allowed change from the baseline in percent, and the
    /// limit of the value itself. Either may be omitted: `=5%`, `=|500`. Can be given several
    /// times.
    #[arg(short, long, value_name = "METRIC=PERCENT%|VALUE")]
    pub(crate) limit: Vec<String>,

    /// A run to compare with: a trace, or JSON output of `metrics`. Can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Vec<PathBuf>,

    /// Also judge recordings with lost records or failed consistency checks.
    #[arg(long)]
    pub(crate) allow_doubts: bool,

    /// If the result is inconclusive, warn instead of exiting with status 4.
    #[arg(long)]
    pub(crate) inconclusive_ok: bool,

    /// Write a JUnit report, one test case per rule.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Append a report in Markdown to this file, such as $GITHUB_STEP_SUMMARY.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// When to print annotations for GitHub as well.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) annotations: Annotations,

    /// Maximum number of findings printed, and of exceeded limits in each.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// When to print annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Annotations {
    /// If the environment variable GITHUB_ACTIONS is true.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What else a gate can do.
#[derive(Debug, Subcommand)]
pub(crate) enum GateAction {
    /// Write a budget that these runs satisfy.
    #[command(
        long_about = "Write a budget that these runs satisfy to stdout, with tight limits for counts, limits \
            for the CPU time of programs that follow from its spread over the runs, and comments that \
            explain them. All runs must be of the same command; five show how much its CPU time varies."
    )]
    Init {
        /// Runs known to be good.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,

        #[command(flatten)]
        rules: RulesArgs,
    },
    /// Explain the code of a finding, and what to do about it.
    Explain {
        /// Code of the finding, such as PT001.
        #[arg(value_name = "CODE")]
        code: String,
    },
    /// Record a command several times, and judge these runs.
    #[command(
        after_long_help = "Example:\n  proctrace gate run --runs 5 --budget gate.toml --baseline good.json -- ./job.sh"
    )]
    Run(Box<GateRunArgs>),
}

/// Record a command several times, and judge these runs.
#[derive(Debug, Args)]
pub(crate) struct GateRunArgs {
    #[command(flatten)]
    pub(crate) gate: GateOptions,

    /// Number of runs: 1 suffices for counts, CPU time needs 5.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Keep the traces in this directory: run-1.ptrace and so on.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Judge runs even if the command fails. The default is to stop at the first failure.
    #[arg(long)]
    pub(crate) allow_failure: bool,

    /// Run the command as this user. Under sudo the default is the user who invoked sudo.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// The command to run, and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}
