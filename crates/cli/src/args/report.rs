//! The arguments of `report` and of the other commands that analyse recordings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::DEFAULT_TRACE;
use super::parse::parse_wall;

/// Check that a recording is whole and its books balance.
#[derive(Debug, Args)]
#[command(
    long_about = "Check that a recording is whole and its books balance: nothing lost, nothing \
        damaged, as many births as deaths, and the CPU time that the kernel counted.",
    after_long_help = "Exit status: 0 if all is well, 3 if not, 1 if the trace cannot be read."
)]
pub(crate) struct CheckArgs {
    /// The trace.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Say it by the exit status only.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Show what ran, what it cost and what was wasted.
#[derive(Debug, Args)]
#[command(
    long_about = "Show what ran, what it cost and what was wasted: a summary that fits a screen, then \
        processes and threads by what they ran, who starts what, failed look-ups by directory, and \
        what goes with what over time.",
    after_long_help = "Examples:\n  \
        proctrace report\n  \
        proctrace report before.ptrace --gantt before.svg\n  \
        proctrace report --gantt tree.svg --gantt-order tree --gantt-min-life 10ms\n  \
        proctrace report --json | jq -r '.categories[:3][].name'",
    group(clap::ArgGroup::new("drawn").args(["gantt", "out"]).multiple(true))
)]
pub(crate) struct ReportArgs {
    /// The trace.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Draw the life of every process as a Gantt chart.
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) gantt: Option<PathBuf>,

    /// Print this section only. Can be given several times; `list` lists them.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["json", "summary"])]
    pub(crate) section: Vec<String>,

    /// How to print sections.
    #[arg(long, value_enum, default_value = "text", requires = "section")]
    pub(crate) format: SectionFormat,

    /// Write every section as text, JSON and CSV, and every figure as SVG, into this directory,
    /// with an index.md.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "summary", "section"])]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Wall time of the same command without recording: rates are per second of it.
    #[arg(long, value_name = "TIME", value_parser = parse_wall)]
    pub(crate) native_wall: Option<Duration>,

    /// CPUs that were asked for, if that is not what the machine has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cores: Option<u32>,

    /// Program whose children are the workers of a pool. The default is to look for one.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) pool: Option<String>,

    /// Read events per worker from these files: a pattern as `worker_*/AthenaMP.log`, relative to
    /// the directory in which the command was recorded.
    #[arg(long, value_name = "GLOB")]
    pub(crate) events_log: Option<String>,

    /// What a line looks like that tells events: a regular expression whose first group is their
    /// number, and whose second, if there is one, the seconds they took. The default is what
    /// AthenaMP writes.
    #[arg(long, value_name = "REGEX", requires = "events_log")]
    pub(crate) events_regex: Option<String>,

    /// Print everything as JSON.
    #[arg(long, conflicts_with_all = ["summary", "top", "all"])]
    pub(crate) json: bool,

    /// Print the summary only.
    #[arg(long)]
    pub(crate) summary: bool,

    /// Print so many rows of each table.
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    pub(crate) top: usize,

    /// Print all rows of each table.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    /// What the Gantt chart shows.
    #[command(flatten)]
    pub(crate) chart: crate::report::GanttArgs,
}

/// Which rules tell programs apart.
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Tell programs apart by the rules in this file first (docs/rules.md), or by a pack of
    /// proctrace's own whether or not a program of it occurs: alice-o2, atlas, cms, lhcb,
    /// monitoring, generic. Can be given several times.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) rules: Vec<String>,
}

/// Show which rule caught which program.
#[derive(Debug, Args)]
#[command(
    long_about = "Show which rule caught which program: its class (a command of the system, an \
        experiment's software, or any other program), the group it is counted in, and examples of \
        what tells its processes apart.\n\n\
        Packs of rules come with proctrace for ALICE O2, ATLAS, CMS, LHCb, monitoring and common \
        commands; those of experiments apply where a program of theirs occurs. Rules of your own \
        come first.",
    after_long_help = "Examples:\n  \
        proctrace classify job.ptrace\n  \
        proctrace classify job.ptrace --rules mine.toml --all\n  \
        proctrace classify --format csv | cut -d, -f1,4"
)]
pub(crate) struct ClassifyArgs {
    /// The trace.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// How to print it.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SectionFormat,

    /// Print so many rows.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(crate) top: usize,

    /// Print all rows.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,
}

/// Compare recordings of 1, 2, 4… workers or threads.
#[derive(Debug, Args)]
#[command(
    long_about = "Compare recordings of 1, 2, 4… workers or threads: throughput and memory per worker, where \
        it stops scaling, and core-time.\n\n\
        Workers are found in each recording: those of a pool, or threads. RUN=N says how many there are. \
        Events come from logs or are given.",
    after_long_help = "Examples:\n  \
        proctrace series t1.ptrace t2.ptrace t4.ptrace --events 100,200,400\n  \
        proctrace series --group old=a.ptrace,b.ptrace --group new=c.ptrace,d.ptrace \\\n      \
        --events-log 'worker_*/AthenaMP.log'\n  \
        proctrace series mj.ptrace=8 --against mp.ptrace --events 1000 --format json"
)]
pub(crate) struct SeriesArgs {
    /// Recordings, each as FILE or, if the number of its workers is known better, as FILE=N.
    #[arg(value_name = "RUN", required_unless_present = "group")]
    pub(crate) runs: Vec<String>,

    /// Recordings of one variant, with commas between them, each as above. Can be given several
    /// times; two variants are compared.
    #[arg(long, value_name = "NAME=RUN[,RUN...]")]
    pub(crate) group: Vec<String>,

    /// Compare the core-time of each run, or group, with that of this recording.
    #[arg(long, value_name = "RUN")]
    pub(crate) against: Option<String>,

    /// Events of each run, in the order in which runs are given, that of --against first; or one
    /// number for all.
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', conflicts_with = "events_log")]
    pub(crate) events: Vec<u64>,

    /// Read events from these files: a pattern relative to the directory in which each run was
    /// recorded. Given as often as there are runs, each is for one of them.
    #[arg(long, value_name = "GLOB")]
    pub(crate) events_log: Vec<String>,

    /// What a line looks like that tells events: a regular expression whose first group is their
    /// number. The default is what AthenaMP writes.
    #[arg(long, value_name = "REGEX", requires = "events_log")]
    pub(crate) events_regex: Option<String>,

    /// Program whose children are the workers of a pool. The default is to look for one.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) pool: Option<String>,

    /// Efficiency in percent below which it does not scale any more.
    #[arg(long, value_name = "PERCENT", default_value_t = 90.0)]
    pub(crate) knee: f64,

    /// How to print tables.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SectionFormat,

    /// Write every table as text, JSON and CSV, and every figure as SVG, into this directory, with
    /// an index.md.
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub(crate) out: Option<PathBuf>,
}

/// Measure what a command's start costs in this environment and in a clean one.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace startup [OPTIONS] [--] COMMAND [ARGUMENT]...",
    long_about = "Measure what a command's start costs in this environment and in a clean one: runs it in both by \
        turns, records each run, and says the difference in wall time, CPU time and look-ups.\n\n\
        Choose a command that does nothing but start: sed --version, root -b -q. Its input is empty \
        and its output is thrown away.",
    after_long_help = "Examples:\n  \
        sudo -E proctrace startup -- sed --version\n  \
        sudo -E proctrace startup --clean ROOTSYS --runs 20 -- root -b -q\n  \
        sudo -E proctrace startup --without LD_LIBRARY_PATH -- ./tool --help"
)]
pub(crate) struct StartupArgs {
    /// Run it so often in each environment.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Add to the clean environment, which has PATH and HOME: NAME=VALUE, or NAME with the value it
    /// has now. Can be given several times.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) clean: Vec<OsString>,

    /// Take this environment without NAME for the clean one. Can be given several times.
    #[arg(long, value_name = "NAME", conflicts_with = "clean")]
    pub(crate) without: Vec<OsString>,

    /// Run the command as this user. Under sudo the default is the user who called it.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// How to print tables.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SectionFormat,

    /// The command to run, and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// How to print a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SectionFormat {
    /// For people.
    Text,
    /// An array of tables, each with its rows as objects.
    Json,
    /// One table after the other, with an empty line between them.
    Csv,
}
