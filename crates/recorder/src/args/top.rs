//! The arguments of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parse::parse_interval;

/// Watch a recording while it is made.
#[derive(Debug, Args)]
#[command(
    long_about = "Watch a recording while it is made: births and deaths per second, CPU time by category \
        and program, the tree of what is alive, directories that are searched in vain, losses. It \
        reads the growing trace file, so the recorder does no more than without it; ? explains \
        the keys. `record --live` shows the same.",
    after_long_help = "Examples:\n  \
        proctrace top\n  \
        proctrace top job.ptrace --exit\n  \
        proctrace top job.ptrace --progress=5s\n\n\
        It may be started at any time, by any user who may read the trace. Of a trace that is \
        complete it shows the sums."
)]
pub struct TopArgs {
    /// Trace file. By default, the newest trace in the current directory that is being written.
    #[arg(value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Exit when the recording has ended.
    #[arg(long)]
    pub exit: bool,

    /// Print a line at this interval instead, until the recording has ended; every 10s if TIME is
    /// omitted. This is what happens if standard output is not a terminal.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10s",
        value_parser = parse_interval
    )]
    pub(crate) progress: Option<Duration>,

    /// Started by `record`: stay in the background, and end with it.
    #[arg(long, hide = true)]
    pub of_record: bool,
}
