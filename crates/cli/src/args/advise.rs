//! The arguments of `advise`.

use std::path::PathBuf;

use clap::Args;

use super::DEFAULT_TRACE;
use super::parse::parse_percent;
use super::report::RulesArgs;

/// Show what to change in a job, and what that is predicted to gain.
#[derive(Debug, Args)]
#[command(
    long_about = "Show what to change in a job, and what that is predicted to gain: the change that saves \
        most wall time first.\n\n\
        Each change has a predicted gain of wall time and of CPU time, with the range in which it is \
        expected. Gains of wall time follow from the critical path of the command: what is not on it \
        gains nothing. What may gain nothing is listed below, as possible. docs/advice.md lists all kinds of advice and how their gains are predicted.",
    after_long_help = "Examples:\n  \
        proctrace advise job.ptrace\n  \
        proctrace advise --explain 1 job.ptrace\n  \
        proctrace advise --json job.ptrace | jq '.advice[0]'\n  \
        proctrace advise --min 5 --cures ours.toml job.ptrace\n  \
        proctrace advise --against before.ptrace after.ptrace"
)]
pub(crate) struct AdviseArgs {
    /// Trace file.
    #[arg(value_name = "FILE", default_value = DEFAULT_TRACE)]
    pub(crate) trace: PathBuf,

    /// Leave out what gains less than this part of the wall time and of the CPU time.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = parse_percent)]
    pub(crate) min: f64,

    /// Number of CPUs that the job may use, if it differs from that of the recorder: below taskset, or in a job that asked
    /// for fewer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cores: Option<u32>,

    /// Also look for the cures in this file, before those that are built in (docs/advice.md). Can be given
    /// several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) cures: Vec<PathBuf>,

    /// Compare the gains that were predicted from BEFORE with those observed in FILE, a recording of the
    /// changed job.
    #[arg(long, value_name = "BEFORE")]
    pub(crate) against: Option<PathBuf>,

    /// Show what the processes did that a piece of advice is about: when they lived, their time on the critical path, and what
    /// they waited for. The number is that of the list.
    #[arg(long, value_name = "NUMBER", conflicts_with = "against")]
    pub(crate) explain: Option<usize>,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Print everything as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
