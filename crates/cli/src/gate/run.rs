//! `proctrace gate run`: records a command several times and judges these runs.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_gate::RunMetrics;
use proctrace_outputs::Access;
use proctrace_trace::Outcome;

use super::{budget, judge};
use crate::args::GateRunArgs;
use crate::experiment::Experiment;
use crate::{exit_code, invoker, runs, say};

pub(super) fn run(args: &GateRunArgs) -> Result<ExitCode> {
    // Errors in the budget are reported before the command runs for hours.
    let Some(budget) = budget(&args.gate)? else { return Ok(exit_code::USAGE.into()) };
    let baselines = runs::of_files(&args.gate.baseline, &args.gate.rules)?;
    let experiment = Experiment::new(&args.command, args.user.as_deref())?.keeping();
    let command = experiment.command(experiment.environment.clone())?;
    let directory = match &args.keep {
        Some(directory) => {
            invoker::outputs()
                .create_directory(directory, Access::Umask)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            directory.as_path()
        }
        None => experiment.scratch(),
    };
    let (mut runs, mut traces) = (Vec::new(), Vec::new());
    for number in 1..=args.runs {
        let name = format!("run-{number}.ptrace");
        let trace = directory.join(&name);
        say::note(&format!("run {number} of {}", args.runs));
        let outcome = experiment.run_into(&trace, &command, &format!("run {number}"))?;
        check(outcome, number, args.allow_failure)?;
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
fn check(outcome: Outcome, number: u32, allow_failure: bool) -> Result<()> {
    match outcome {
        Outcome::Code(code) if code != 0 && !allow_failure => {
            bail!(
                "the command exited with {code} in run {number}; use --allow-failure to judge it anyway"
            )
        }
        Outcome::Signal(signal) if !allow_failure => {
            bail!(
                "signal {signal} killed the command in run {number}; use --allow-failure to judge it anyway"
            )
        }
        _ => Ok(()),
    }
}
