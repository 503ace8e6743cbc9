//! `proctrace gate run`: records a command several times and judges these runs.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_gate::RunMetrics;
use proctrace_outputs::Access;
use proctrace_record::Options;
use proctrace_trace::Outcome;

use super::{budget, judge};
use crate::args::GateRunArgs;
use crate::record::{self, Job};
use crate::source::Backend;
use crate::{exit_code, invoker, runs, say};

pub(super) fn run(args: &GateRunArgs) -> Result<ExitCode> {
    // Errors in the budget are reported before the command runs for hours.
    let Some(budget) = budget(&args.gate)? else { return Ok(exit_code::USAGE.into()) };
    let baselines = runs::of_files(&args.gate.baseline, &args.gate.rules)?;
    let invoker = invoker::find(args.user.as_deref())?;
    let (identity, environment) = match invoker {
        Some(invoker) => (Some(invoker.identity), invoker.environment),
        None => (None, None),
    };
    let environment = environment.unwrap_or_else(|| std::env::vars_os().collect());
    let command = record::command(&args.command, environment)?;
    let command = match &identity {
        Some(identity) => command.run_as(identity.clone()),
        None => command,
    };
    let scratch = tempfile::tempdir().context("cannot create a directory for traces")?;
    let directory = match &args.keep {
        Some(directory) => {
            invoker::outputs()
                .create_directory(directory, Access::Umask)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            directory.as_path()
        }
        None => scratch.path(),
    };
    let (options, backend) = (Options::default(), Backend::default());
    let (mut runs, mut traces) = (Vec::new(), Vec::new());
    for number in 1..=args.runs {
        let name = format!("run-{number}.ptrace");
        let trace = directory.join(&name);
        say::note(&format!("run {number} of {}", args.runs));
        let job = Job {
            arguments: &args.command,
            batch_job: std::collections::BTreeMap::new(),
            command: Some(&command),
            options: &options,
            backend: &backend,
            output: &trace,
            owner: identity.as_ref(),
            announced: false,
            quiet: false,
        };
        check(job.record_quietly()?, number, args.allow_failure)?;
        let metrics = runs::of_trace(&trace, &args.gate.rules)?;
        runs.push(RunMetrics { name: shown(&trace, args.keep.is_some(), name), metrics });
        traces.push(trace);
    }
    judge(&args.gate, &budget, &baselines, &runs, &traces)
}

/// The name of a run in reports: its file, if that is kept.
fn shown(trace: &Path, kept: bool, name: String) -> String {
    if kept { trace.display().to_string() } else { name }
}

/// A failed command did not complete its work, so its metrics are meaningless.
fn check(outcome: Option<Outcome>, number: u32, allow_failure: bool) -> Result<()> {
    match outcome {
        None => bail!("run {number} was interrupted"),
        Some(Outcome::Signal(signal @ (2 | 15))) => {
            bail!("run {number} was interrupted by signal {signal}")
        }
        Some(Outcome::Code(code)) if code != 0 && !allow_failure => {
            bail!(
                "the command exited with {code} in run {number}; use --allow-failure to judge it anyway"
            )
        }
        Some(Outcome::Signal(signal)) if !allow_failure => {
            bail!(
                "signal {signal} killed the command in run {number}; use --allow-failure to judge it anyway"
            )
        }
        Some(_) => Ok(()),
    }
}
