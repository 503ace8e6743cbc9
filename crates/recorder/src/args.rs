//! The arguments of the commands that record, and of those that need no analysis.

pub mod headings;
mod parse;
mod questions;
mod record;
mod top;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use strum::IntoStaticStr;

pub(crate) use self::parse::JobCgroups;
pub use self::parse::{amount, parse_duration, parse_interval};
pub(crate) use self::questions::is_command;
pub use self::questions::screen;
pub use self::record::RecordArgs;
pub(crate) use self::record::{WaitFor, WhenFull, WhichBackend, WhichHook};
pub use self::top::TopArgs;

/// The default trace file of all commands.
pub const DEFAULT_TRACE: &str = "proctrace.ptrace";

/// Check whether this kernel and user can record, and suggest remedies.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print everything as JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// The socket of the broker, instead of that in PROCTRACE_BROKER or /run/proctrace/broker.sock.
    #[arg(long, value_name = "SOCKET", hide_short_help = true)]
    pub(crate) broker: Option<PathBuf>,
}

/// Print a recording's events as JSON, one per line.
#[derive(Debug, Args)]
#[command(
    long_about = "Print a recording's events as JSON, one per line, in chronological order.\n\n\
        Every line has kind, time_ns (CLOCK_BOOTTIME), pid (the thread group) and tid; \
        docs/dump.md lists the keys of each kind. Bytes that are not UTF-8 are escaped as \\xHH, \
        and a backslash that could be mistaken for such an escape as \\x5c.",
    after_long_help = "Examples:\n  \
        proctrace dump job.ptrace --kind exec | jq -r '.argv | join(\" \")'\n  \
        proctrace dump --kind lookup_failed | jq -r .path | sort | uniq -c | sort -rn | head"
)]
pub struct DumpArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Print only events of this kind. Can be given several times.
    #[arg(short, long, value_enum, value_name = "KIND")]
    pub(crate) kind: Vec<EventKind>,

    /// Print the trace's header and trailer instead of its events.
    #[arg(long, conflicts_with = "kind")]
    pub(crate) header: bool,
}

impl DumpArgs {
    /// The trace whose events are printed.
    pub fn trace(&self) -> &Path {
        &self.trace
    }
}

/// Check that a recording is complete and consistent.
#[derive(Debug, Args)]
#[command(
    long_about = "Check that a recording is complete and consistent: no lost records, no damage, as \
        many births as deaths, and the same CPU time as the kernel accounted.",
    after_long_help = "Exit status: 0 if all checks passed, 3 if not, 1 if the trace cannot be read."
)]
pub struct CheckArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Print nothing; report only by the exit status.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl CheckArgs {
    /// The trace that is checked.
    pub fn trace(&self) -> &Path {
        &self.trace
    }
}

/// Name this moment in the recording that is running.
#[derive(Debug, Args)]
#[command(
    long_about = "Name this moment in the recording that is running: report shows marks as phases, in charts \
        and in exports.\n\n\
        It does nothing but exit with 0: the recorder sees that it was started, with its arguments. So it \
        works in every recording, in containers too, and is silent where nothing is recorded. Programs \
        that should not start another one look up a path that does not exist: \
        /proc/proctrace-mark/TEXT.",
    after_long_help = "Examples:\n  \
        proctrace mark 'reconstruction starts'\n  \
        [ -e '/proc/proctrace-mark/reconstruction starts' ]\n  \
        python3 -c 'import os; os.path.exists(\"/proc/proctrace-mark/calibrated\")'\n\n\
        Exit status: 0, or 2 if there is no text or one of more than 200 bytes."
)]
pub struct MarkArgs {
    /// What to call it: at most 200 bytes. Several words are joined by spaces.
    #[arg(required_unless_present = "step", trailing_var_arg = true, value_name = "TEXT")]
    pub(crate) text: Vec<OsString>,

    /// Begin a step of this name instead: it is what the shell or program that calls this starts from now on, up to
    /// its next step. An empty name only ends the one before.
    #[arg(long, value_name = "NAME")]
    pub(crate) step: Option<OsString>,
}

/// Serve users who may not load BPF programs.
#[derive(Debug, Args)]
#[command(
    long_about = "Serve users who may not load BPF programs.\n\n\
        Run it as root, on each node, best by the systemd units in the documentation (docs/broker.md). For each \
        recording of an ordinary user it loads the programs, limited to what that user may trace, and hands \
        them over; records do not pass through it. It prints one line for each recording: who, what, how long.",
    after_long_help = "Examples:\n  \
        sudo proctrace broker\n  \
        proctrace record --backend broker -- make"
)]
pub struct BrokerArgs {
    #[command(flatten)]
    pub(crate) arguments: proctrace_broker::Arguments,
}

/// A kind of event, by the name that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, ValueEnum)]
#[value(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum EventKind {
    /// Start of tracing for a task without a recorded fork, such as the command itself.
    Attach,
    /// fork, vfork, clone, clone3.
    Fork,
    /// A successful exec.
    Exec,
    /// A failed exec.
    ExecFailed,
    /// The end of a task, with its accounting.
    Exit,
    /// A failed path look-up.
    LookupFailed,
    /// A failed path look-up with its duration; one in 16 is timed.
    LookupTime,
    /// A successful open, recorded with --opens.
    Opened,
    /// A rename of a file or directory, or a removal of a file, recorded with --opens.
    Moved,
    /// The size of a file when a descriptor was closed through which it could be written, recorded with --opens.
    Written,
    /// The mount namespace and root of a process.
    Place,
    /// The mount table of a namespace.
    Mounts,
    /// A change of a task's name.
    Rename,
    /// The last working directory of a process that never called exec.
    Workdir,
    /// A sample of a live task.
    Sample,
    /// The end of a sampling pass, with the number of tasks in each state.
    Tick,
    /// A memory reading of a process.
    Memory,
    /// A task uses an interface that is not traced (io_uring).
    Blind,
    /// A time off the CPU: asleep, then waiting for a CPU.
    Wait,
    /// A signal that usually ends a process, with its sender.
    Signal,
    /// A number of lost records.
    Loss,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::ValueEnum;
    use proctrace_record::Misses;
    use proctrace_wire::{Family, Kind};

    use super::EventKind;
    use super::parse::{parse_duration, parse_interval, parse_misses, parse_size};

    #[test]
    fn kinds_of_events_are_kinds_of_records() {
        for kind in EventKind::value_variants() {
            let name = <&str>::from(kind);
            assert_eq!(kind.to_possible_value().unwrap().get_name(), name);
            assert!(name == "opened" || Kind::ALL.iter().any(|kind| kind.name() == name), "{name}");
        }
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
    fn sizes_are_powers_of_two() {
        assert_eq!(parse_size("65536"), Ok(65536));
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        for wrong in ["", "16", "3MiB", "2GiB", "8TiB", "99999999999MiB", "-1MiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
