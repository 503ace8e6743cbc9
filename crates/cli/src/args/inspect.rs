//! The arguments of the commands that answer questions about single processes: `show`, `tree` and `ps`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::DEFAULT_TRACE;
use super::parse::parse_percent;
use super::parse_duration;
use super::report::RulesArgs;

/// Show everything about one process, or about a program.
#[derive(Debug, Args)]
#[command(
    long_about = "Show everything about one process: its life and end, parents, commands with their \
        directories and environment, exact costs, children, failed look-ups, waits, its part of the \
        critical path, and memory over time. For the name of a program: how many processes ran it, who \
        started them, their costs in total and as a distribution, and the slowest. For the name of a \
        step: its first process, with the costs of the step.\n\n\
        A pid may have been used several times: PID@TIME is the process that had it at that time since \
        the start of the recording, and --serial selects by a number that is not used twice.",
    after_long_help = "Examples:\n  \
        proctrace show 13971\n  \
        proctrace show 13971@2.5s job.ptrace\n  \
        proctrace show --serial 812 job.ptrace\n  \
        proctrace show gcc job.ptrace\n  \
        proctrace show digi_3 job.ptrace\n  \
        proctrace show 13971 --format json | jq -r '.process.commands[].directory'\n\n\
        Exit status: 0 if one process or program was shown, 1 if there is none or the trace cannot be \
        read, 2 if several processes had that pid; they are listed."
)]
pub(crate) struct ShowArgs {
    /// A pid, a pid and a time, or the name of a program or of a step.
    #[arg(value_name = "PID|PID@TIME|PROGRAM|STEP", required_unless_present = "serial")]
    pub(crate) who: Option<String>,

    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Show the process with this serial number.
    #[arg(long, value_name = "N")]
    pub(crate) serial: Option<u32>,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InspectFormat,

    /// Maximum number of rows printed per table.
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    pub(crate) top: usize,

    /// Print all rows of each table.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// Show the process tree, with equal siblings as one line.
#[derive(Debug, Args)]
#[command(
    long_about = "Show the process tree, with the number of processes, CPU time and time span of each \
        line and all below it. Siblings with the same command line, apart from numbers, are one line. \
        Lines that are left out are counted where they would be.",
    after_long_help = "Examples:\n  \
        proctrace tree job.ptrace\n  \
        proctrace tree --depth 3 --sort processes job.ptrace\n  \
        proctrace tree --pid 13971 --min 0 --all job.ptrace\n  \
        proctrace tree --at 2.5s job.ptrace\n  \
        proctrace tree --by step --sort birth build.ptrace"
)]
pub(crate) struct TreeArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Show at most this number of levels.
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,

    /// Leave out lines with less than this part of the CPU time and of the processes. The default is 1
    /// for text, 0 for JSON.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) min: Option<f64>,

    /// Show only processes that were alive at this time since the start of the recording.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) at: Option<Duration>,

    /// Show only this process and its descendants.
    #[arg(long, value_name = "PID|PID@TIME")]
    pub(crate) pid: Option<String>,

    /// Show only the process with this serial number and its descendants.
    #[arg(long, value_name = "N", conflicts_with = "pid")]
    pub(crate) serial: Option<u32>,

    /// A line for each command, or for each group of steps (docs/steps.md) with what they started.
    #[arg(long, value_enum, default_value = "command")]
    pub(crate) by: TreeBy,

    /// The order of siblings.
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) sort: TreeOrder,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InspectFormat,

    /// Maximum number of lines printed as text: those with most CPU time, or most processes.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(crate) top: usize,

    /// Print all lines.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// What has a line of its own in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeBy {
    /// Siblings with the same command line.
    Command,
    /// Steps of the same group within the same one.
    Step,
}

/// List the processes that were alive at some time.
#[derive(Debug, Args)]
#[command(
    long_about = "List the processes that were alive at some time, like ps(1): parent, state and what was \
        waited for, age, CPU time until then, RSS, and command line. With --from and --to: those that \
        were alive at any time in between, and the CPU time they used then.\n\n\
        CPU time is known at births, readings and ends; values in between are interpolated and marked \
        with ~.",
    after_long_help = "Examples:\n  \
        proctrace ps --at 2.5s job.ptrace\n  \
        proctrace ps --from 2s --to 3s --sort rss job.ptrace\n  \
        proctrace ps --at 2.5s --format json | jq '.processes[] | select(.state == \"R\").pid'",
    group(clap::ArgGroup::new("when").args(["at", "from"]).required(true))
)]
pub(crate) struct PsArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// The time since the start of the recording.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) at: Option<Duration>,

    /// The beginning of an interval.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "to")]
    pub(crate) from: Option<Duration>,

    /// The end of the interval.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "from")]
    pub(crate) to: Option<Duration>,

    /// The order of processes.
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) sort: PsOrder,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InspectFormat,

    /// Maximum number of rows printed as text.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(crate) top: usize,

    /// Print all rows.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    /// Text for people.
    Text,
    /// JSON, with all rows.
    Json,
}

/// An order of siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeOrder {
    /// Most CPU time first.
    Cpu,
    /// Most processes first.
    Processes,
    /// In order of birth.
    Birth,
}

/// An order of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PsOrder {
    /// Most CPU time first.
    Cpu,
    /// The oldest first.
    Age,
    /// Largest RSS first.
    Rss,
    /// By pid.
    Pid,
}
