//! The arguments of `diff`, `metrics` and `gate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::RulesArgs;

/// Compare two runs, or several before and after.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace diff [OPTIONS] <BEFORE> <AFTER>\n       \
        proctrace diff [OPTIONS] --before <FILE>... --after <FILE>...",
    long_about = "Compare two runs, or several before and after: processes, commands, threads, failed \
        look-ups, CPU time, memory; then what vanished, appeared, grew and shrank, by command, by \
        who started it, and by directory searched.\n\n\
        Counts are exact. Times get an interval where there are at least three runs on each side.",
    after_long_help = "Examples:\n  \
        proctrace diff before.ptrace after.ptrace\n  \
        proctrace diff --before b1.ptrace --before b2.ptrace --before b3.ptrace \\\n                 \
        --after a1.ptrace --after a2.ptrace --after a3.ptrace\n  \
        proctrace diff before.ptrace after.ptrace --format markdown --waterfall what.svg"
)]
pub(crate) struct DiffArgs {
    /// The trace before. Figures that `metrics` wrote will do as well.
    #[arg(
        value_name = "BEFORE",
        required_unless_present_any = ["before", "after"],
        conflicts_with_all = ["before", "after"],
        requires = "after_file"
    )]
    pub(crate) before_file: Option<PathBuf>,

    /// The one after.
    #[arg(
        value_name = "AFTER",
        required_unless_present_any = ["before", "after"],
        conflicts_with_all = ["before", "after"]
    )]
    pub(crate) after_file: Option<PathBuf>,

    /// A run before. Can be given several times.
    #[arg(long, value_name = "FILE", requires = "after")]
    pub(crate) before: Vec<PathBuf>,

    /// A run after. Can be given several times.
    #[arg(long, value_name = "FILE", requires = "before")]
    pub(crate) after: Vec<PathBuf>,

    /// How to print it.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: DiffFormat,

    /// Draw what the difference in processes is made of.
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) waterfall: Option<PathBuf>,

    /// Print so many rows of each table.
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
    /// For people.
    Text,
    /// Every figure of it.
    Json,
    /// One table after the other, with an empty line between them.
    Csv,
    /// For a comment or a page.
    Markdown,
}

/// Print the figures of a run by their stable names.
#[derive(Debug, Args)]
#[command(
    long_about = "Print the figures of a run by their stable names, for a gate, for monitoring, for \
        scripts.",
    after_long_help = "Examples:\n  \
        proctrace metrics job.ptrace\n  \
        proctrace metrics job.ptrace --format json > baseline.json\n  \
        proctrace metrics job.ptrace --format openmetrics > metrics.txt\n  \
        proctrace metrics --names"
)]
pub(crate) struct MetricsArgs {
    /// The trace, or figures that this command wrote.
    #[arg(value_name = "FILE", default_value = super::DEFAULT_TRACE)]
    pub(crate) file: PathBuf,

    /// How to print them.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: MetricsFormat,

    /// Print the names there are and what they mean, instead.
    #[arg(long, conflicts_with_all = ["file", "format"])]
    pub(crate) names: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// How to print figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsFormat {
    /// For people.
    Table,
    /// For `gate --baseline` and `diff`.
    Json,
    /// For Prometheus and GitLab.
    Openmetrics,
}

/// Fail if a run is worse than a budget or a baseline allows.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    long_about = "Fail if a run is worse than a budget or a baseline allows.\n\n\
        Counts are compared exactly, or with the spread of several baselines. CPU time needs several \
        runs on each side, and fails only where the whole interval of the ratio lies beyond the limit; \
        where noise hides the answer, the gate says so. Wall time is off unless a rule names it.",
    after_long_help = "Exit status: 0 within limits, 1 the gate itself failed, 2 wrong usage or budget, 3 \
        worse than allowed, 4 inconclusive.\n\n\
        Examples:\n  \
        proctrace gate init good.ptrace > gate.toml\n  \
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

    /// The runs to judge: traces, or figures that `metrics` wrote.
    #[arg(value_name = "CANDIDATE", required = true)]
    pub(crate) candidates: Vec<PathBuf>,
}

/// What a gate compares with, and where it reports.
#[derive(Debug, Args)]
pub(crate) struct GateOptions {
    /// The limits, in TOML. The default is gate.toml, if that is here and no --limit is given.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) budget: Option<PathBuf>,

    /// A limit: a metric or pattern, then how much more than the baseline, and how much at all.
    /// Either may be left out: `=5%`, `=|500`. Can be given several times.
    #[arg(short, long, value_name = "METRIC=PERCENT%|VALUE")]
    pub(crate) limit: Vec<String>,

    /// A run to compare with: a trace, or figures that `metrics` wrote. Can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Vec<PathBuf>,

    /// Judge recordings with losses or books that do not balance as well.
    #[arg(long)]
    pub(crate) allow_doubts: bool,

    /// If noise hides the answer, warn instead of ending with 4.
    #[arg(long)]
    pub(crate) inconclusive_ok: bool,

    /// Write a JUnit report, one test case per rule.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Write a report in Markdown: $GITHUB_STEP_SUMMARY, or a comment. Appends to what is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Print annotations for GitHub as well. The default is to do so in a GitHub action.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) annotations: Annotations,

    /// Print so many findings.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// When to print annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Annotations {
    /// Where GITHUB_ACTIONS is true.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What else a gate can do.
#[derive(Debug, Subcommand)]
pub(crate) enum GateAction {
    /// Write a budget that these runs keep to.
    #[command(
        long_about = "Write a budget that these runs keep to, to stdout: counts tight, CPU time loose, with \
            comments that say why. Runs of the same command only; the more, the better it knows what \
            varies."
    )]
    Init {
        /// Good runs.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,

        #[command(flatten)]
        rules: RulesArgs,
    },
    /// Say what a code of a finding means, and what to do.
    Explain {
        /// The code: PT001.
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

    /// How often to run it: 1 will do for counts, CPU time takes 5.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Keep the traces in this directory: run-1.ptrace and so on.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Judge also if the command fails. The default is to stop there.
    #[arg(long)]
    pub(crate) allow_failure: bool,

    /// Run the command as this user. Under sudo the default is the user who called it.
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
