//! The arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proctrace_record::Misses;

use super::DEFAULT_TRACE;
use super::parse::{parse_duration, parse_interval, parse_misses, parse_size};

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
    /// Write the trace to FILE. A FILE that is there already is kept as FILE.old.
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

    /// Record every process of the machine; without root, every one that you may trace.
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

    /// Take samples of every live task this often. Without it every 100ms, or less often, down to
    /// once a second, where that would take more than a two-thousandth of a CPU.
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,

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

    /// Go on for at most this long after the command has exited, while descendants of it run.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub(crate) grace: Duration,

    /// Size of each of the two buffers between kernel and recorder: a power of two. Without it
    /// 2MiB for each CPU, but 4MiB at least and 32MiB at most.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) ring_size: Option<u32>,

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
