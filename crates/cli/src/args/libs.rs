//! The arguments of `libs`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use strum::IntoStaticStr;

use super::DEFAULT_TRACE;
use super::csv::CsvArgs;
use super::report::{CeilingArgs, SectionFormat};

/// Show which lists of directories cause failed look-ups, and what would avoid them.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    long_about = "Show which lists of directories cause failed look-ups, and what would avoid them.\n\n\
        Each failed look-up is attributed to its cause: an entry of LD_LIBRARY_PATH, the RPATH or RUNPATH \
        of an object, the linker's default directories, dlopen(3), an entry of PATH or PYTHONPATH, and \
        others. For the dynamic linker a model repeats the search of each start with the recorded \
        environment; it reads the executables and libraries of this machine, so run it where the job \
        ran. The same model predicts what a changed list would leave.\n\n\
        --farm, --env and --patchelf make or print what carries a remedy out; `try` does so, and \
        measures it.",
    after_long_help = "Examples:\n  \
        proctrace libs job.ptrace\n  \
        proctrace libs --json job.ptrace | jq '.remedies[0]'\n  \
        proctrace libs --farm /opt/job/links job.ptrace && . /opt/job/links/env.sh\n  \
        proctrace libs --farm /opt/job/links --merge job.ptrace && . /opt/job/links/env.sh\n  \
        eval \"$(proctrace libs --env job.ptrace)\"\n  \
        proctrace libs --patchelf job.ptrace > fix.sh\n  \
        sudo proctrace libs try -- ./job.sh"
)]
pub(crate) struct LibsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<LibsAction>,

    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Make DIR, a directory of links to all libraries that are found by LD_LIBRARY_PATH, with a
    /// file env.sh that puts it first there. A DIR made before is renewed; any other directory
    /// that is not empty is refused.
    #[arg(long, value_name = "DIR", group = "remedy")]
    pub(crate) farm: Option<PathBuf>,

    /// With --farm: link to the libraries of the system, such as libc, as well.
    #[arg(long, requires = "farm")]
    pub(crate) with_system: bool,

    /// With --farm: link to all libraries in the directories of LD_LIBRARY_PATH and to those of
    /// the system, so that DIR replaces these directories in env.sh.
    #[arg(long, requires = "farm", conflicts_with = "with_system")]
    pub(crate) merge: bool,

    /// Print LD_LIBRARY_PATH and PATH without the entries in which nothing was found, as
    /// commands for a shell that has one of the recorded values.
    #[arg(long, group = "remedy", conflicts_with_all = ["json", "format", "top", "all"])]
    pub(crate) env: bool,

    /// Print the commands that make the application's own programs and libraries name their
    /// libraries by absolute paths.
    #[arg(long, group = "remedy", conflicts_with_all = ["json", "format", "top", "all"])]
    pub(crate) patchelf: bool,

    /// Print everything as JSON.
    #[arg(long, conflicts_with_all = ["format", "top", "all"])]
    pub(crate) json: bool,

    /// Format of the tables.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = SectionFormat::Text)]
    pub(crate) format: SectionFormat,

    #[command(flatten)]
    pub(crate) csv: CsvArgs,

    /// Maximum number of rows printed per table.
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    pub(crate) top: usize,

    /// Print all rows of each table.
    #[arg(long, conflicts_with = "top")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) ceiling: CeilingArgs,
}

/// What else `libs` does.
#[derive(Debug, Subcommand)]
pub(crate) enum LibsAction {
    // Documented on its struct.
    Try(TryArgs),
}

/// Record a command, apply a remedy, record it again, and compare.
#[derive(Debug, Args)]
#[command(
    override_usage = "proctrace libs try [OPTIONS] [--] COMMAND [ARGUMENT]...",
    long_about = "Record a command, apply a remedy, record it again, and compare what was predicted with \
        what is observed.\n\n\
        The remedy is worked out from the first run. A directory of links is temporary; a list is \
        changed in the environment of the command, so a command that sets its own list does not have \
        the remedy, which is pointed out. Each run has an empty standard input, and its standard \
        output goes to standard error. Later runs find more files in memory than the first: with \
        --repeat, runs with and without the remedy alternate.",
    after_long_help = "Examples:\n  \
        sudo proctrace libs try -- ./job.sh --events 10\n  \
        sudo -E proctrace libs try --remedy clean --repeat 5 --json -- make -j4\n\n\
        Exit status: that of the command's last run, which has the remedy; otherwise as `record`."
)]
pub(crate) struct TryArgs {
    /// The remedy; by default the one about libraries after which fewest look-ups are predicted to
    /// fail.
    #[arg(long, value_enum, value_name = "REMEDY")]
    pub(crate) remedy: Option<Tried>,

    /// Number of runs without the remedy, and of runs with it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,

    /// Run the command as this user. Under sudo the default is the user who invoked sudo.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Print everything as JSON.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Format of the table.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = SectionFormat::Text)]
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

/// The remedies that can be applied from outside, and those that cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, ValueEnum)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Tried {
    /// A directory of links to the libraries found by LD_LIBRARY_PATH.
    Farm,
    /// The same with the libraries of the system.
    FarmSystem,
    /// One directory of links in place of the directories of LD_LIBRARY_PATH.
    Merge,
    /// LD_LIBRARY_PATH without unused entries.
    Drop,
    /// LD_LIBRARY_PATH with the most used entries first.
    Reorder,
    /// Both.
    Clean,
    /// PATH without unused entries.
    Path,
    // Accepted so that the error says why.
    #[value(hide = true)]
    Unset,
    #[value(hide = true)]
    Needed,
}

impl Tried {
    /// The stable name of the remedy.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}
