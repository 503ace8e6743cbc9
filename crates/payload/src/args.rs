//! The command line: the single definition from which the help is generated.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use proctrace_payload::{MOST_BYTES, Request, Scenario, catalog};

/// Run simulation jobs made of real processes with known counts.
///
/// A scenario defines the number of processes, threads, execs and failed look-ups of a job; this
/// program runs the job with real processes, and declares in advance what a recording must show.
#[derive(Debug, Parser)]
#[command(
    name = "proctrace-payload",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Start with: proctrace-payload list\n\
        then: sudo proctrace record -- proctrace-payload run alice-o2-before"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the scenarios, with their source and what to look for in a recording.
    List,
    Run(RunArgs),
    Declare(DeclareArgs),
}

/// The scenario to run, and its size.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// Name of a listed scenario, or a scenario file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) scenario: String,

    /// Multiply counts by this factor; the paper's figures refer to 1. Default: that of the scenario,
    /// chosen for a run of at most 20 s on 2 cores.
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<f64>,

    /// Number of concurrent tasks, worker processes or threads. Default: that of the scenario.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u32>,

    /// Seed for the variable durations of events. The same seed gives the same run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Multiply CPU work by this factor, for a faster or slower machine, without changing counts;
    /// 0 disables CPU work.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) work_factor: f64,
}

/// Run a scenario.
#[derive(Debug, Args)]
#[command(
    long_about = "Run a scenario with real processes that compute, search for files and write. Their work \
        is fixed in advance, down to the number of execs.",
    after_long_help = "Examples:\n  \
        proctrace-payload run alice-o2-before --scale 0.05 --workers 4\n  \
        sudo proctrace record -o after.ptrace -- proctrace-payload run alice-o2-after\n  \
        proctrace-payload run athena-mp --declare counts.json --keep\n  \
        proctrace-payload run my.toml --seed 7\n\n\
        Exit status: 0 if all processes ran as planned, 1 if not, 2 for invalid arguments, 128+N \
        if stopped by signal N."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) size: SizeArgs,

    /// Use this work directory, which must be empty or not exist, instead of a new one in TMPDIR.
    /// It is removed at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,

    /// Keep the work directory.
    #[arg(long)]
    pub(crate) keep: bool,

    /// Keep the work directory of --work, and use it again if an earlier run with --reuse left it:
    /// programs and libraries are at the same paths in each run.
    #[arg(long, requires = "work")]
    pub(crate) reuse: bool,

    /// Search for libraries in the directories of LD_LIBRARY_PATH, as it is now, before those of
    /// the scenario, which otherwise replace it.
    #[arg(long)]
    pub(crate) inherit_library_path: bool,

    /// Write the declaration of what a recording must show to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) declare: Option<PathBuf>,

    /// Print only errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Print what a recording of a scenario must show, without running it.
#[derive(Debug, Args)]
#[command(
    long_about = "Print what a recording of a scenario must show, without running it: processes, threads, \
        execs and detached processes by program, failed look-ups in the payload's own directories, \
        events and phases. The counts include proctrace-payload itself.",
    after_long_help = "Examples:\n  \
        proctrace-payload declare alice-o2-before --scale 1\n  \
        proctrace-payload declare athena-mp --json | jq .events"
)]
pub(crate) struct DeclareArgs {
    #[command(flatten)]
    pub(crate) size: SizeArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SizeArgs {
    /// The scenario, and the requested size.
    pub(crate) fn read(&self) -> Result<(Scenario, Request)> {
        let scenario = load(&self.scenario)?;
        let default = scenario.default_request();
        let request = Request {
            scale: self.scale.unwrap_or(default.scale),
            workers: self.workers.unwrap_or(default.workers),
            seed: self.seed,
            work: self.work_factor,
        };
        Ok((scenario, request))
    }
}

/// Loads a scenario from the catalogue, or from a file.
pub(crate) fn load(name: &str) -> Result<Scenario> {
    if let Some(text) = catalog::text(name) {
        return Ok(Scenario::parse(name, text)?);
    }
    let path = std::path::Path::new(name);
    if !path.exists() {
        bail!("no scenario or file {name}: `proctrace-payload list` lists the scenarios");
    }
    let length = path.metadata().with_context(|| format!("cannot read {name}"))?.len();
    if length > MOST_BYTES as u64 {
        bail!("{name} is larger than 1 MiB, the limit for a scenario");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    Ok(Scenario::parse(name, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
