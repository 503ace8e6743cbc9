//! The arguments of `report` and of the other commands that analyse recordings.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use proctrace_analysis::Section;

use super::DEFAULT_TRACE;
use super::csv::CsvArgs;
use super::gantt::GanttArgs;
use super::parse::{parse_memory, parse_wall};

/// Show what ran, what it cost and what was wasted.
#[derive(Debug, Args)]
#[command(
    long_about = "Show what ran, what it cost and what was wasted, on one screen: how the command \
        ended and why, what it cost, what to change, and the programs. --all shows what that is \
        made of: processes and threads by program, which program starts which, failed look-ups \
        by directory, and correlations over time. On a terminal, what is longer than a screen \
        goes through a pager (PROCTRACE_PAGER, PAGER, or less -FRX; cat is none).",
    after_long_help = "Examples:\n  \
        proctrace report\n  \
        proctrace report before.ptrace --gantt before.svg\n  \
        proctrace report job.ptrace --html job.html\n  \
        proctrace report --gantt tree.svg --gantt-order tree --gantt-min-life 10ms\n  \
        proctrace report --phase 'reconstruction starts'\n  \
        proctrace report --json | jq -r '.categories[:3][].name'",
    group(clap::ArgGroup::new("drawn").args(["gantt", "out"]).multiple(true)),
    group(clap::ArgGroup::new("tables").args(["section", "phase"]).multiple(true))
)]
pub(crate) struct ReportArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Draw the lifetimes of all processes as a Gantt chart: as SVG, or as PNG if the file's name
    /// ends in .png.
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) gantt: Option<PathBuf>,

    /// Write an interactive page: one file that needs no network. It contains all arguments and
    /// recorded environments.
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["json", "summary", "section"])]
    pub(crate) html: Option<PathBuf>,

    /// Print only this section. Can be given several times; `list` prints all names.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "summary",
        value_parser = section_names(),
        hide_possible_values = true
    )]
    pub(crate) section: Vec<String>,

    /// Print only what happened in this phase of the payload: from the mark of that name (proctrace
    /// mark) to the next one. With --gantt, draw only its time. #N is the N-th.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["summary", "section", "out", "html"])]
    pub(crate) phase: Option<String>,

    /// Output format of sections and of a phase.
    #[arg(long, value_enum, default_value = "text", requires = "tables")]
    pub(crate) format: SectionFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// Write every section as text, JSON and CSV, every figure as SVG, and the page of --html as
    /// report.html to this directory, with an index.md.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "summary", "section"])]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Wall time of the same command without recording; rates are given per second of this time.
    #[arg(long, value_name = "TIME", value_parser = parse_wall)]
    pub(crate) native_wall: Option<Duration>,

    /// Number of CPUs requested for the job, if it differs from that of the machine.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cores: Option<u32>,

    /// Program whose children are the workers of a pool. By default it is detected.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) pool: Option<String>,

    /// Read the number of events per worker from these log files: a glob pattern such as
    /// `worker_*/AthenaMP.log`, relative to the directory in which the command was recorded.
    #[arg(long, value_name = "GLOB")]
    pub(crate) events_log: Option<String>,

    /// Regular expression for log lines that contain a number of events: the first group is the
    /// number, the second, if there is one, the seconds they took. The default matches the logs of
    /// AthenaMP.
    #[arg(long, value_name = "REGEX", requires = "events_log")]
    pub(crate) events_regex: Option<String>,

    /// Print everything as JSON, or with --section or --phase the tables of these.
    #[arg(long, conflicts_with_all = ["summary", "top", "all", "format"])]
    pub(crate) json: bool,

    /// Print one screen, as without options.
    #[arg(long, hide = true, conflicts_with_all = ["top", "all"])]
    pub(crate) summary: bool,

    /// Print all tables, with at most so many rows each; of sections 10, if it is not given.
    #[arg(long, value_name = "ROWS")]
    pub(crate) top: Option<usize>,

    /// Print all tables with all rows, or all rows of sections.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    /// What the Gantt chart shows.
    #[command(flatten)]
    pub(crate) chart: GanttArgs,
}

/// Rows of a table, if nothing else is asked for.
const ROWS: usize = 10;

impl ReportArgs {
    /// Whether the text may be longer than a screen.
    pub(crate) fn is_long(&self) -> bool {
        !self.section.is_empty() || self.phase.is_some() || self.shows_tables()
    }

    /// Whether all tables are asked for, if neither sections nor a phase are.
    pub(crate) fn shows_tables(&self) -> bool {
        self.all || self.top.is_some()
    }

    /// Rows of a table at most.
    pub(crate) fn rows(&self) -> Option<usize> {
        (!self.all).then_some(self.top.unwrap_or(ROWS))
    }

    /// Whether a file is all that is asked for.
    pub(crate) fn only_writes(&self) -> bool {
        (self.gantt.is_some() || self.html.is_some())
            && !(self.is_long() || self.json || self.summary)
    }

    /// The output format of sections and of a phase.
    pub(crate) fn format(&self) -> SectionFormat {
        if self.json { SectionFormat::Json } else { self.format }
    }
}

/// Which rules tell programs apart.
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Classify programs by the rules in this file first (docs/rules.md), or by this built-in pack
    /// even if none of its programs occurs: alice-o2, atlas, cms, lhcb, monitoring, generic. Can be
    /// given several times.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) rules: Vec<String>,

    /// Name steps, or say what files are made from, by this file: a table (CSV or JSON), O2DPG's workflow.json, Nextflow's
    /// trace, .ninja_log, the output of ninja -t compdb, ninja -t graph or make -pn, the directory .snakemake/metadata, or
    /// rules for a coordinator in TOML (docs/steps.md). Can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) steps: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,
}

impl RulesArgs {
    /// The files that it names.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.rules.iter().map(PathBuf::from).chain(self.steps.iter().cloned())
    }
}

/// How much memory the analysis may take.
#[derive(Debug, Args)]
pub(crate) struct CeilingArgs {
    /// Stop if more memory is taken. The default is 512 MiB and 64 times the size of the recordings,
    /// and at most three quarters of the machine's memory.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, hide_short_help = true)]
    pub(crate) max_memory: Option<u64>,
}

/// How long the answer to a query may take.
#[derive(Debug, Args)]
pub(crate) struct TimeArgs {
    /// Stop if it takes longer.
    #[arg(long, value_name = "TIME", value_parser = parse_wall, default_value = "10m", hide_short_help = true)]
    pub(crate) max_time: Duration,
}

/// Show which rule matched which program.
#[derive(Debug, Args)]
#[command(
    long_about = "Show which rule matched which program, the program's class (a command of the system, \
        an experiment's software, or any other program), the group it is counted in, and examples of \
        the roles that distinguish its processes.\n\n\
        proctrace has built-in rule packs for ALICE O2, ATLAS, CMS, LHCb, monitoring and common \
        commands; those of experiments apply if one of their programs occurs. Rules given by --rules \
        take precedence.",
    after_long_help = "Examples:\n  \
        proctrace classify job.ptrace\n  \
        proctrace classify job.ptrace --rules mine.toml --all\n  \
        proctrace classify --format csv | cut -d, -f1,4"
)]
pub(crate) struct ClassifyArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SectionFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// Maximum number of rows printed.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    pub(crate) top: usize,

    /// Print all rows.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,
}

/// Compare recordings of 1, 2, 4… workers or threads.
#[derive(Debug, Args)]
#[command(
    long_about = "Compare recordings of 1, 2, 4… workers or threads: throughput and memory per worker, the \
        point where scaling ends, and core-time.\n\n\
        The workers of each recording are detected: those of a pool, or threads. RUN=N sets their number. \
        Numbers of events are read from logs (--events-log) or given by --events.",
    after_long_help = "Examples:\n  \
        proctrace series t1.ptrace t2.ptrace t4.ptrace --events 100,200,400\n  \
        proctrace series --group old=a.ptrace,b.ptrace --group new=c.ptrace,d.ptrace \\\n      \
        --events-log 'worker_*/AthenaMP.log'\n  \
        proctrace series mj.ptrace=8 --against mp.ptrace --events 1000 --format json"
)]
pub(crate) struct SeriesArgs {
    /// Recordings, each as FILE, or as FILE=N to set the number of its workers.
    #[arg(value_name = "RUN", required_unless_present = "group")]
    pub(crate) runs: Vec<String>,

    /// Recordings of one variant, separated by commas, each as above. Can be given several times;
    /// two variants are compared.
    #[arg(long, value_name = "NAME=RUN[,RUN...]")]
    pub(crate) group: Vec<String>,

    /// Compare the core-time of each run or group with that of this recording.
    #[arg(long, value_name = "RUN")]
    pub(crate) against: Option<String>,

    /// Number of events of each run, in the order of the runs, that of --against first; or one
    /// number for all runs.
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', conflicts_with = "events_log")]
    pub(crate) events: Vec<u64>,

    /// Read numbers of events from these log files: a glob pattern relative to the directory in
    /// which each run was recorded. Give it once for all runs, or once per run.
    #[arg(long, value_name = "GLOB")]
    pub(crate) events_log: Vec<String>,

    /// Regular expression for log lines that contain a number of events, which is its first group.
    /// The default matches the logs of AthenaMP.
    #[arg(long, value_name = "REGEX", requires = "events_log")]
    pub(crate) events_regex: Option<String>,

    /// Program whose children are the workers of a pool. By default it is detected.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) pool: Option<String>,

    /// Efficiency in percent below which scaling is considered to have ended.
    #[arg(long, value_name = "PERCENT", default_value_t = 90.0)]
    pub(crate) knee: f64,

    /// Output format of tables.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SectionFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// Write every table as text, JSON and CSV, and every figure as SVG, to this directory, with
    /// an index.md.
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,
}

/// Measure the start-up cost of a command in this environment and in a clean one.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace startup [OPTIONS] [--] COMMAND [ARGUMENT]...",
    long_about = "Measure the start-up cost of a command in this environment and in a clean one: runs it \
        alternately in both, records each run, and reports the differences in wall time, CPU time and \
        look-ups.\n\n\
        Choose a command that does nothing but start: sed --version, root -b -q. Its standard input is \
        empty and its standard output is discarded.",
    after_long_help = "Examples:\n  \
        sudo -E proctrace startup -- sed --version\n  \
        sudo -E proctrace startup --clean ROOTSYS --runs 20 -- root -b -q\n  \
        sudo -E proctrace startup --without LD_LIBRARY_PATH -- ./tool --help"
)]
pub(crate) struct StartupArgs {
    /// Number of measured runs in each environment.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Variable to add to the clean environment, which has PATH and HOME: NAME=VALUE, or NAME for
    /// its current value. Can be given several times.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) clean: Vec<OsString>,

    /// Use this environment without NAME as the clean one. Can be given several times.
    #[arg(long, value_name = "NAME", conflicts_with = "clean")]
    pub(crate) without: Vec<OsString>,

    /// Run the command as this user. Under sudo the default is the user who invoked sudo.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Output format of tables.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: SectionFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// The command to run, and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// The names of sections, for completions; others are refused with a proposal by what prints sections.
fn section_names() -> impl TypedValueParser<Value = String> {
    NamedSection
}

/// Takes any text, and knows which are meant.
#[derive(Clone)]
struct NamedSection;

impl TypedValueParser for NamedSection {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Section::ALL.iter().map(|section| section.name).chain(["list"]);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// How to print a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SectionFormat {
    /// Tables as plain text.
    Text,
    /// An array of tables, each with its rows as objects.
    Json,
    /// All tables, separated by empty lines.
    Csv,
}
