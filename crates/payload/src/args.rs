//! The command line: the single definition from which the help is generated.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use proctrace_payload::{MOST_BYTES, Request, Scenario, catalog};

/// Simulation jobs of known counts, made of real processes.
///
/// A scenario says how many processes, threads, execs and failed look-ups a job makes; this
/// program makes them, for real, and says beforehand what a recording must show.
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
    /// List the scenarios: what each is, from which paper, and what to look for.
    List,
    Run(RunArgs),
    Declare(DeclareArgs),
}

/// What to run, and how large.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// A scenario of the list, or a file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) scenario: String,

    /// Multiply counts by this; 1 is what the paper's figures are for. Without it the scenario's own
    /// default is taken, for 20 s on 2 cores or less.
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<f64>,

    /// Tasks, worker processes or threads at a time. Without it the scenario's own default.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u32>,

    /// Choose other uneven event times. The same seed makes the same run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Multiply CPU work by this, for a faster or slower machine; counts stay. 0 leaves counts
    /// only.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) work_factor: f64,
}

/// Run a scenario.
#[derive(Debug, Args)]
#[command(
    long_about = "Run a scenario: real processes that really compute, search and write. What they do is \
        fixed beforehand, down to the number of execs.",
    after_long_help = "Examples:\n  \
        proctrace-payload run alice-o2-before --scale 0.05 --workers 4\n  \
        sudo proctrace record -o after.ptrace -- proctrace-payload run alice-o2-after\n  \
        proctrace-payload run athena-mp --declare counts.json --keep\n  \
        proctrace-payload run my.toml --seed 7\n\n\
        Exit status: 0 if all processes did what was planned, 1 if not, 2 for wrong arguments, 128+N \
        if signal N ended it."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) size: SizeArgs,

    /// Work in this directory, which must be empty or not there yet, instead of a new one below
    /// TMPDIR. It is removed at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,

    /// Keep the work directory.
    #[arg(long)]
    pub(crate) keep: bool,

    /// Write what a recording must show to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) declare: Option<PathBuf>,

    /// Say nothing but errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Say what a recording of a scenario must show, without running it.
#[derive(Debug, Args)]
#[command(
    long_about = "Say what a recording of a scenario must show, without running it: processes, threads, \
        execs and detached processes by program, failed look-ups in the payload's own directories, \
        events and phases. proctrace-payload itself is counted.",
    after_long_help = "Examples:\n  \
        proctrace-payload declare alice-o2-before --scale 1\n  \
        proctrace-payload declare athena-mp --json | jq .events"
)]
pub(crate) struct DeclareArgs {
    #[command(flatten)]
    pub(crate) size: SizeArgs,

    /// Print it as JSON.
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
        bail!("there is no scenario {name}: `proctrace-payload list` names them, or give a file");
    }
    let length = path.metadata().with_context(|| format!("cannot read {name}"))?.len();
    if length > MOST_BYTES as u64 {
        bail!("{name} is larger than 1 MiB: not a scenario");
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
