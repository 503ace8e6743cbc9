//! The arguments of `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DEFAULT_TRACE;

/// Turn a log of strace or prmon into a recording.
#[derive(Debug, Args)]
#[command(
    subcommand_value_name = "KIND",
    long_about = "Turn a log of strace or prmon into a recording.\n\n\
        All commands that read recordings read the result. What the log does not contain, such as \
        CPU time, is shown as not known, never as 0. docs/import.md says what each kind of log \
        yields.",
    after_long_help = "Examples:\n  \
        strace -f -ttt -o job.log ./job.sh\n  \
        proctrace import strace job.log -o job.ptrace\n  \
        proctrace report job.ptrace"
)]
pub(crate) struct ImportArgs {
    /// The kind of log.
    #[command(subcommand)]
    pub(crate) log: ImportLog,
}

/// What is imported.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportLog {
    Strace(StraceArgs),
    Prmon(PrmonArgs),
}

/// Import logs of strace: processes, threads, execs, exits, failed look-ups and opens.
#[derive(Debug, Args)]
#[command(
    long_about = "Import logs of strace: processes, threads, execs, exits, failed look-ups and \
        opens.\n\n\
        Best is strace -f -ttt -y -v -s 4096 -o FILE. Without times (-ttt, -tt, -t or -r) only \
        counts are known. \
        Of logs in one file per task (-ff) give all files.",
    after_long_help = "Examples:\n  \
        proctrace import strace job.log -o job.ptrace\n  \
        proctrace import strace job.log.*\n  \
        zcat job.log.gz | proctrace import strace -"
)]
pub(crate) struct StraceArgs {
    /// Logs; - is standard input.
    #[arg(value_name = "LOG", required = true)]
    pub(crate) logs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: ImportOutput,
}

/// Import what prmon wrote: CPU time, memory, input and output of a process tree.
#[derive(Debug, Args)]
#[command(
    long_about = "Import what prmon wrote: CPU time, memory, input and output of a process \
        tree.\n\n\
        prmon does not record single processes, so the recording has one that stands for all.",
    after_long_help = "Examples:\n  \
        proctrace import prmon prmon.txt -o job.ptrace\n  \
        proctrace query 'SELECT time_s, pss_bytes FROM memory' job.ptrace"
)]
pub(crate) struct PrmonArgs {
    /// prmon.txt, the time series, or prmon.json, its summary; - is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) text: PathBuf,

    #[command(flatten)]
    pub(crate) output: ImportOutput,
}

/// Where the recording goes.
#[derive(Debug, Args)]
pub(crate) struct ImportOutput {
    /// Output file.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) output: PathBuf,

    /// Print only warnings.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
