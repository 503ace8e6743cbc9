//! The command line: one definition, from which help, man pages and completions are made.

#[cfg(feature = "analyse")]
mod compare;

#[cfg(feature = "analyse")]
pub(crate) use compare::{
    Annotations, DiffArgs, DiffFormat, GateAction, GateArgs, GateOptions, GateRunArgs, MetricsArgs,
    MetricsFormat,
};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proctrace_probe::Misses;
use proctrace_wire::Family;

/// The trace that commands use unless they are told another.
pub(crate) const DEFAULT_TRACE: &str = "proctrace.ptrace";

/// What did this job really run, and what did it cost?
///
/// proctrace records every fork, exec, exit and failed file look-up of a command and all its
/// descendants, with exact CPU accounting, and shows what ran, what it cost and what was wasted.
#[derive(Debug, Parser)]
#[command(
    name = "proctrace",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Start with: sudo proctrace record -- COMMAND, then: proctrace report"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // Those with arguments are described there.
    Record(RecordArgs),
    #[cfg(feature = "analyse")]
    Report(ReportArgs),
    #[cfg(feature = "analyse")]
    Diff(DiffArgs),
    #[cfg(feature = "analyse")]
    Gate(GateArgs),
    #[cfg(feature = "analyse")]
    Metrics(MetricsArgs),
    #[cfg(feature = "analyse")]
    Series(SeriesArgs),
    #[cfg(feature = "analyse")]
    Startup(StartupArgs),
    #[cfg(feature = "analyse")]
    Check(CheckArgs),
    #[cfg(feature = "analyse")]
    Classify(ClassifyArgs),
    Dump(DumpArgs),
    /// Show what this kernel and this user can do, and what to do about the rest.
    Doctor,
    /// Print shell completions.
    #[command(hide = true)]
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages.
    #[command(hide = true)]
    Man {
        /// Where to.
        directory: PathBuf,
    },
}

/// Run a command and record it and all its descendants.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace record [OPTIONS] [--] COMMAND [ARGUMENT]...\n       \
        proctrace record [OPTIONS] -p PID | --cgroup DIR | -a",
    long_about = "Run a command and record it and all its descendants: every fork, exec, exit and \
        failed look-up of a path, with exact CPU accounting, and samples of what runs. Or record \
        what is running already.\n\n\
        The command keeps its input, output, terminal, directory and exit status. Under sudo it \
        runs as the user who called sudo, with that user's environment.",
    after_long_help = "Examples:\n  \
        sudo proctrace record -- make -j4\n  \
        sudo proctrace record -o before.ptrace -- ./job.sh --events 100\n  \
        sudo proctrace record --env ROOT_LDSYSPATH --grace 60s -- ./daemonizing-job\n  \
        sudo proctrace record -p $(pgrep -o httpd) --duration 30s\n\n\
        Exit status: the command's own (128+N if signal N killed it), 127 if it was not found, \
        126 if it could not be executed, 125 if recording failed."
)]
pub(crate) struct RecordArgs {
    /// Write the trace to FILE.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) output: PathBuf,

    /// Record this process, its threads and its descendants, from now on. Can be given several
    /// times.
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,

    /// Record the members of this cgroup (a directory of cgroup v2), those that come later, and
    /// their descendants.
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Option<PathBuf>,

    /// Record every process of the machine.
    #[arg(short, long, conflicts_with_all = ["pid", "cgroup"])]
    pub(crate) all: bool,

    /// With -p, --cgroup or -a: stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Run the command in a cgroup of its own, and record what is put there by others as well.
    #[arg(long, conflicts_with_all = ["pid", "cgroup", "all"])]
    pub(crate) own_cgroup: bool,

    /// Record failed look-ups by these calls: all, none, or a list of open, stat, access,
    /// readlink, chdir, exec.
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = parse_misses)]
    pub(crate) misses: Misses,

    /// Where to take failed look-ups from: the functions that serve the calls (free for all other
    /// calls, but sees no result that seccomp made up), the tracepoints of the calls, or the one
    /// tracepoint of all calls. auto takes the first of these that the kernel offers.
    #[arg(long, value_enum, value_name = "HOOK", default_value = "auto", hide_short_help = true)]
    pub(crate) lookup_hook: WhichHook,

    /// Attach programs that do nothing and record nothing, to measure what the hooks cost.
    #[arg(long, hide = true)]
    pub(crate) empty_programs: bool,

    /// Take samples of every live task this often.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_interval)]
    pub(crate) interval: Duration,

    /// Look at the memory of every process this often, or every 5s (PSS, USS, shared). That makes the kernel
    /// walk each process's page tables, which stops its memory management for that time.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5s",
        value_parser = parse_interval
    )]
    pub(crate) memory: Option<Duration>,

    /// Keep this environment variable at every exec, beside PATH, LD_LIBRARY_PATH, LD_PRELOAD,
    /// PYTHONPATH and ROOTSYS. Can be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,

    /// Keep no environment variables at all.
    #[arg(long, conflicts_with = "env")]
    pub(crate) no_env: bool,

    /// Once the command has exited, go on until all its descendants have, or stop at once.
    #[arg(long, value_enum, default_value = "tree")]
    pub(crate) wait: WaitFor,

    /// Go on for at most this long after the command has exited.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub(crate) grace: Duration,

    /// Size of each of the two buffers between kernel and recorder: a power of two.
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = parse_size)]
    pub(crate) ring_size: u32,

    /// When a buffer is more than half full: drop what does not fit, and count it, or make those
    /// who fill it wait.
    #[arg(long, value_enum, default_value = "drop")]
    pub(crate) on_full: WhenFull,

    /// Run the command as this user. Under sudo the default is the user who called it.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Say nothing on stderr unless something is wrong.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The command to run, and its arguments.
    #[arg(
        required_unless_present_any = ["pid", "cgroup", "all"],
        conflicts_with_all = ["pid", "cgroup", "all", "duration"],
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Where to take failed look-ups from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichHook {
    /// The first of the following that works.
    Auto,
    /// fexit of the functions that serve the calls.
    Fexit,
    /// tracepoint/syscalls/sys_exit_* of the calls.
    Tracepoint,
    /// tp_btf/sys_exit.
    SysExit,
}

/// What to wait for once the command has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// All its descendants, for as long as --grace says.
    Tree,
    /// Nothing.
    Root,
}

/// What to do when a buffer fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenFull {
    /// Drop records and count them.
    Drop,
    /// Hold up the payload.
    Block,
}

/// Check that a recording is whole and its books balance.
#[cfg(feature = "analyse")]
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
#[cfg(feature = "analyse")]
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
#[cfg(feature = "analyse")]
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Tell programs apart by the rules in this file first (docs/rules.md), or by a pack of
    /// proctrace's own whether or not a program of it occurs: alice-o2, atlas, cms, lhcb,
    /// monitoring, generic. Can be given several times.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) rules: Vec<String>,
}

/// Show which rule caught which program.
#[cfg(feature = "analyse")]
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
#[cfg(feature = "analyse")]
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
#[cfg(feature = "analyse")]
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
#[cfg(feature = "analyse")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SectionFormat {
    /// For people.
    Text,
    /// An array of tables, each with its rows as objects.
    Json,
    /// One table after the other, with an empty line between them.
    Csv,
}

/// Print a recording's events as lines of JSON.
#[derive(Debug, Args)]
#[command(
    long_about = "Print a recording's events as lines of JSON, in order of time.\n\n\
        Every line has kind, time_ns (CLOCK_BOOTTIME), pid (the thread group) and tid; \
        docs/dump.md lists the keys of each kind. Bytes that are not UTF-8 appear as \\xHH, and \
        a backslash that would look like that as \\x5c.",
    after_long_help = "Examples:\n  \
        proctrace dump job.ptrace --kind exec | jq -r '.argv | join(\" \")'\n  \
        proctrace dump --kind lookup_failed | jq -r .path | sort | uniq -c | sort -rn | head"
)]
pub(crate) struct DumpArgs {
    /// The trace.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Print events of this kind only. Can be given several times.
    #[arg(short, long, value_enum, value_name = "KIND")]
    pub(crate) kind: Vec<EventKind>,

    /// Print the trace's header and trailer instead of its events.
    #[arg(long, conflicts_with = "kind")]
    pub(crate) header: bool,
}

/// A kind of event, as it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum EventKind {
    /// A task that is followed from here on, without a fork: the command itself.
    Attach,
    /// fork, vfork, clone, clone3.
    Fork,
    /// A successful exec.
    Exec,
    /// A failed exec.
    ExecFailed,
    /// The end of a task, with its accounting.
    Exit,
    /// A failed look-up of a path.
    LookupFailed,
    /// A task's new name.
    Rename,
    /// Where a process worked in the end that never called exec.
    Workdir,
    /// A live task at one tick.
    Sample,
    /// The end of a pass of samples: how many tasks were in which state.
    Tick,
    /// The memory of a process.
    Memory,
    /// A task does something that is not seen.
    Blind,
    /// Records that were lost.
    Loss,
}

/// all, none, or names of families with commas between them.
fn parse_misses(text: &str) -> Result<Misses, String> {
    match text {
        "all" => Ok(Misses::all()),
        "none" => Ok(Misses::NONE),
        list => list.split(',').try_fold(Misses::NONE, |misses, name| {
            let family = Family::from_name(name).ok_or_else(|| {
                let names = Family::ALL.map(Family::name).join(", ");
                format!("there is no {name:?}; there are {names}, or all, or none")
            })?;
            Ok(misses.with(family))
        }),
    }
}

/// A number with a unit: 100ms, 5s, 2m, 1h.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; say it like 100ms or 5s"))
}

/// Rates are per second of it.
#[cfg(feature = "analyse")]
fn parse_wall(text: &str) -> Result<Duration, String> {
    let wall = parse_duration(text)?;
    if wall.is_zero() { Err("must be more than 0".into()) } else { Ok(wall) }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    if (Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&interval) {
        Ok(interval)
    } else {
        Err("must lie between 1ms and 1h".into())
    }
}

/// A number of bytes with a unit: 4096, 256KiB, 16MiB, 1GiB. K, M and G mean the same.
fn parse_size(text: &str) -> Result<u32, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: u32 = number.parse().map_err(|_| String::from("say it like 256KiB or 16MiB"))?;
    let factor = match unit {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err("needs a unit: KiB, MiB or GiB".into()),
    };
    let bytes = number.checked_mul(factor).ok_or("larger than 4 GiB")?;
    if bytes.is_power_of_two() && (64 << 10..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("must be a power of two between 64KiB and 1GiB".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "s", "-1s", "1e9h", "9999999999999999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert!(parse_interval("0s").is_err());
        assert!(parse_interval("2h").is_err());
    }

    #[cfg(feature = "analyse")]
    #[test]
    fn no_wall_time_is_none_to_divide_by() {
        assert!(parse_wall("0").is_err() && parse_wall("0s").is_err());
        assert_eq!(parse_wall("1ms"), Ok(Duration::from_millis(1)));
    }

    #[test]
    fn misses_are_families() {
        assert_eq!(parse_misses("all"), Ok(Misses::all()));
        assert_eq!(parse_misses("none"), Ok(Misses::NONE));
        let some = Misses::NONE.with(Family::Stat).with(Family::Exec);
        assert_eq!(parse_misses("stat,exec"), Ok(some));
        for wrong in ["", "open,", "opens", "all,open", "OPEN"] {
            assert!(parse_misses(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whom_to_record_is_said_once() {
        let parse = |arguments: &[&str]| {
            let all = ["proctrace", "record"].iter().chain(arguments);
            Cli::try_parse_from(all)
        };
        for good in [
            &["true"][..],
            &["-p", "1", "-p", "2"],
            &["-a", "--duration", "1s"],
            &["--own-cgroup", "true"],
        ] {
            assert!(parse(good).is_ok(), "{good:?}");
        }
        for bad in [
            &[][..],
            &["-p", "1", "true"],
            &["-a", "-p", "1"],
            &["--duration", "1s", "true"],
            &["--own-cgroup"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(parse_size("65536"), Ok(65536));
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        for wrong in ["", "16", "3MiB", "2GiB", "8TiB", "99999999999MiB", "-1MiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_keeps_its_own_options() {
        let cli = Cli::try_parse_from(["proctrace", "record", "-q", "make", "-j4", "--", "-o"]);
        let Command::Record(record) = cli.unwrap().command else { panic!("not record") };
        assert_eq!(record.command, ["make", "-j4", "--", "-o"]);
        assert!(record.quiet);
    }
}
