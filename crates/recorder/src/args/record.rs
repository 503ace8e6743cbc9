//! The arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proctrace_record::Misses;

use super::DEFAULT_TRACE;
use super::headings::{ELSE, HOW, LONG, NODES, WHAT};
use super::parse::{
    JobCgroups, WaitsMin, parse_duration, parse_interval, parse_job_cgroups, parse_misses,
    parse_size, parse_waits,
};

/// Run a command and record it and all its descendants.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace record [OPTIONS] [--] COMMAND [ARGUMENT]...\n       \
        proctrace record [OPTIONS] -p PID | --cgroup DIR | -a",
    long_about = "Run a command and record it and all its descendants: every fork, exec, exit and \
        failed path look-up, with exact CPU accounting, and periodic samples of live tasks. With \
        -p, --cgroup or -a, record processes that are already running.\n\n\
        The command inherits input, output, terminal and working directory, and its exit status \
        is passed on. Under sudo it runs as the user who invoked sudo, with that user's \
        environment.",
    after_long_help = "Examples:\n  \
        sudo proctrace record -- make -j4\n  \
        sudo proctrace record -o before.ptrace -- ./job.sh --events 100\n  \
        sudo proctrace record --env ROOT_LDSYSPATH --grace 60s -- ./daemonizing-job\n  \
        sudo proctrace record -p $(pgrep -o httpd) --duration 30s\n  \
        sudo proctrace record -a --per-cgroup -o jobs\n\n\
        Exit status: the command's own (128+N if signal N killed it), 127 if it was not found, \
        126 if it could not be executed, 125 if recording failed."
)]
pub struct RecordArgs {
    /// Write the trace to FILE. An existing FILE is renamed to FILE.old.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) output: PathBuf,

    /// Also record every successful open: which file, by which process, for reading or writing.
    #[arg(long)]
    pub(crate) opens: bool,

    /// Record this environment variable at every exec, in addition to PATH, LD_LIBRARY_PATH,
    /// LD_PRELOAD, PYTHONPATH, ROOTSYS, PROCTRACE_STEP, PROCTRACE_STEP_GROUP and TRACEPARENT. Can be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,

    /// Read the memory (PSS, USS, shared) of every process at this interval; 5s if TIME is omitted.
    /// For each reading the kernel walks the page tables of the process, which blocks its memory
    /// management meanwhile.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5s",
        value_parser = parse_interval
    )]
    pub(crate) memory: Option<Duration>,

    /// With -p, --cgroup or -a: stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Run the command as this user. Under sudo the default is the user who invoked sudo.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// How to record: by BPF programs in the kernel, which needs root or capabilities; by the same
    /// programs, loaded by the broker that a site runs (proctrace broker), for what this user runs; or by
    /// ptrace, which needs none, but slows the command down, takes the privileges of set-user-ID
    /// programs away, and records neither waits nor signals. auto: the first of these that is possible.
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub(crate) backend: WhichBackend,

    /// Show the recording in the terminal while it is made, as `top` does. What the command would
    /// write to the terminal goes to FILE.out instead, and it cannot read from the terminal.
    #[arg(long, conflicts_with = "progress")]
    pub live: bool,

    /// Print a line about the recording on stderr at this interval; 10s if TIME is omitted.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10s",
        value_parser = parse_interval
    )]
    pub(crate) progress: Option<Duration>,

    /// Print only warnings and errors on stderr.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Record this process, its threads and its descendants, from now on. Can be given several
    /// times.
    #[arg(short, long, value_name = "PID", help_heading = WHAT)]
    pub(crate) pid: Vec<u32>,

    /// Record the members of this cgroup (a cgroup v2 directory), processes that join it later, and
    /// the descendants of both.
    #[arg(long, value_name = "DIR", help_heading = WHAT)]
    pub(crate) cgroup: Option<PathBuf>,

    /// Record every process on the machine; without root, every process that you may trace.
    #[arg(short, long, conflicts_with_all = ["pid", "cgroup"], help_heading = WHAT)]
    pub(crate) all: bool,

    /// Run the command in a new cgroup, and also record processes that others move into it.
    #[arg(long, conflicts_with_all = ["pid", "cgroup", "all"], help_heading = WHAT)]
    pub(crate) own_cgroup: bool,

    /// What to wait for after the command has exited.
    #[arg(long, value_enum, default_value = "tree", help_heading = LONG)]
    pub(crate) wait: WaitFor,

    /// Maximum time to continue after the command has exited, while descendants are running. With
    /// --per-cgroup: the time after which a cgroup without processes is a job that has ended.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration, help_heading = LONG)]
    pub(crate) grace: Duration,

    /// Families of system calls whose failed look-ups are recorded: all, none, or a comma-separated
    /// list of open, stat, access, readlink, chdir, exec.
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = parse_misses, help_heading = ELSE)]
    pub(crate) misses: Misses,

    /// Do not time failed look-ups. By default, one in 16 is timed.
    #[arg(long, hide_short_help = true, help_heading = ELSE)]
    pub(crate) no_lookup_times: bool,

    /// Record who waited for whom: every time that a task is off the CPU for at least this long, and
    /// every wait for the end of another task. none: do not.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_waits, help_heading = ELSE)]
    pub(crate) waits: WaitsMin,

    /// Interval between samples of all live tasks. The default is 100ms, increased up to 1s where
    /// sampling would use more than 1/2000 of a CPU.
    #[arg(long, value_name = "TIME", value_parser = parse_interval, help_heading = ELSE)]
    pub(crate) interval: Option<Duration>,

    /// Record no environment variables, and not those by which the command knows its batch job.
    #[arg(long, conflicts_with = "env", help_heading = ELSE)]
    pub(crate) no_env: bool,

    /// The socket of the broker, instead of that in PROCTRACE_BROKER or /run/proctrace/broker.sock.
    #[arg(long, value_name = "SOCKET", hide_short_help = true, help_heading = HOW)]
    pub(crate) broker: Option<PathBuf>,

    /// Hook for failed look-ups: the kernel functions that implement the calls (no cost for other
    /// calls, but results forged by seccomp are not seen), the calls' own tracepoints, or the
    /// tracepoint of all system calls. auto uses the first of these that the kernel supports.
    #[arg(long, value_enum, value_name = "HOOK", default_value = "auto", hide_short_help = true, help_heading = HOW)]
    pub(crate) lookup_hook: WhichHook,

    /// Size of each of the two buffers between kernel and recorder: a power of two. The default is
    /// 2MiB per CPU, but at least 4MiB and at most 32MiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = HOW)]
    pub(crate) ring_size: Option<u32>,

    /// What to do when a buffer fills up.
    #[arg(long, value_enum, default_value = "drop", help_heading = HOW)]
    pub(crate) on_full: WhenFull,

    /// With -a: record the jobs of this node, each into a trace of its own. A job is a cgroup that
    /// PATTERN names, with all below it: a path below the mount point of cgroup v2, with * for any
    /// characters. Without PATTERN: the cgroups of Slurm, HTCondor, Docker, Podman and Kubernetes. --output
    /// names the directory of the traces. Can be given several times.
    #[arg(
        help_heading = NODES,
        long,
        value_name = "PATTERN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = parse_job_cgroups,
        requires = "all",
        conflicts_with_all = ["live", "progress"]
    )]
    pub(crate) per_cgroup: Option<Vec<JobCgroups>>,

    /// The command comes first: if it cannot be recorded, it runs without; if its recording or summary
    /// cannot be written, its exit status is passed on all the same. What is lost is said on stderr and
    /// in the node's log.
    #[arg(
        long,
        requires = "command",
        conflicts_with_all = ["live", "user"],
        help_heading = NODES
    )]
    pub(crate) job_first: bool,

    /// Attach programs that record nothing, to measure the overhead of the hooks.
    #[arg(long, hide = true)]
    pub(crate) empty_programs: bool,

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

impl RecordArgs {
    /// The command line that is to be run.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }
}

/// How to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichBackend {
    /// eBPF if this user may load BPF programs, else by a broker if there is one, else by ptrace.
    Auto,
    /// BPF programs in the kernel.
    Ebpf,
    /// BPF programs that a service loads.
    Broker,
    /// A process that traces the command, without privileges.
    Ptrace,
}

/// Where to take failed look-ups from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichHook {
    /// The first of the following that is available.
    Auto,
    /// fexit of the functions that implement the calls.
    Fexit,
    /// tracepoint/syscalls/sys_exit_* of the calls.
    Tracepoint,
    /// tp_btf/sys_exit.
    SysExit,
}

/// What to wait for once the command has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// All its descendants, for at most the time given by --grace.
    Tree,
    /// Nothing: stop at once.
    Root,
}

/// What to do when a buffer fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenFull {
    /// Drop records that do not fit, and count them.
    Drop,
    /// Delay the recorded tasks while a buffer is at least half full.
    Block,
}
