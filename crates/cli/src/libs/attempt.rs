//! `proctrace libs try`: records a command without and with a remedy, and compares.

use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;

use anyhow::{Context, Error, Result, anyhow, bail};
use proctrace_analysis::{Applied, Fixes, Rules, analyse, best_of};
use proctrace_findings::{Findings, Libs, Outcome, Trial, TrialRun};
use proctrace_record::{RecordError, ResolveError};
use proctrace_remedies::{
    changed, figures, found_here, make_farm, notes, reasons, trial_table, variable,
};
use proctrace_report::number::counted;
use proctrace_stats::{Order, Plan, Side};

use crate::args::{Tried, TryArgs};
use crate::experiment::Experiment;
use crate::invoker::Environment;
use crate::silence::{Instead, Silence};
use crate::{incomplete, invoker, print, record, rules, say};

pub(crate) fn run(args: &TryArgs) -> Result<ExitCode> {
    args.remedy.map_or(Ok(()), refuse)?;
    let silence = Silence::begin(Instead::StandardError)?;
    let trial = match compare(args) {
        Err(error) if is_of_command(&error) => return Ok(record::cannot_execute(&error)),
        result => result?,
    };
    drop(silence);
    for note in notes(&trial) {
        say::note(&note);
    }
    if args.json {
        print::answer(true, &trial, String::new)?;
    } else {
        let tables = [trial_table(&trial)];
        print::table_answer(&tables, (args.format, &args.csv), print::style(None))?;
    }
    Ok(record::status_of(trial.after.outcome))
}

/// Some remedies cannot be applied by starting the command in another way.
fn refuse(remedy: Tried) -> Result<()> {
    let why = match remedy {
        Tried::Unset => {
            "LD_LIBRARY_PATH would have to be unset by whatever starts these programs, which can only \
             be done there"
        }
        Tried::Needed => {
            "it changes files; run the commands that `proctrace libs --patchelf` prints on copies, and \
             record again"
        }
        _ => return Ok(()),
    };
    bail!("the remedy {} cannot be tried from outside: {why}", remedy.name())
}

/// Returns whether the error is that the command could not be executed, which is not a failure of the recording.
fn is_of_command(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(RecordError::Exec { .. }))
            || cause.downcast_ref::<ResolveError>().is_some()
    })
}

fn compare(args: &TryArgs) -> Result<Trial> {
    let bench = Bench {
        experiment: Experiment::new(&args.command, args.user.as_deref())?.with_mounts(),
        directory: directory()?,
    };
    let plain = bench.experiment.environment.clone();
    let first = bench.run(&plain, "without")?;
    let (found, fixes) = (&first.found, &first.fixes);
    let best = best_of(&found.remedies).filter(|_| args.remedy.is_none());
    if let Some(best) = best {
        say::note(&format!("trying the remedy {}", best.name));
    }
    let name = best.map_or(args.remedy.unwrap_or(Tried::Farm).name(), |best| best.name);
    let remedy = found.remedies.iter().find(|remedy| remedy.name == name);
    let remedy = remedy.with_context(|| {
        let variable = variable(name);
        let gone = match found.starts_not_modelled {
            0 => String::new(),
            starts => format!(
                "; {} not modelled{}: the command must leave its programs and libraries where they are",
                counted(starts, "start was", "starts were"),
                reasons(found)
            ),
        };
        format!("there is nothing to try: no program of the command had {variable}{gone}")
    })?;
    let farm = bench.directory.path().join("farm");
    let applied = Applied { remedy: remedy.name, fixes, farm: farm.as_os_str().as_bytes() };
    if let Some(plan) = fixes.plan(remedy.name) {
        // The place is ours: what is wrong with it is no misuse of an argument.
        let made = make_farm(&invoker::outputs(), &farm, remedy.name, plan).map_err(Error::from);
        made.map_err(|error| anyhow!("{error:#} (TMPDIR decides where it is)"))?;
    }
    let changed = changed(&applied, &plain);
    let (mut made, mut last) = (Some(first.figures(name)), None);
    let plan = Plan { warm_ups: 0, rounds: args.repeat, order: Order::Fixed };
    let run = |_, side| match (side, made.take()) {
        // The remedy comes from it.
        (Side::A, Some(first)) => Ok(first),
        (Side::A, None) => Ok(bench.run(&plain, "without")?.figures(name)),
        (Side::B, _) => Ok(last.insert(bench.run(&changed, "with")?).figures(name)),
    };
    let (before, after) = plan.run(run, |_, _, _| anyhow::Ok(()))?;
    let last = last.context("there was no run with the remedy")?;
    Ok(applied.trial(remedy, (&before, &after), (&last.found, &last.fixes)))
}

/// A directory for links, which the command's user can read.
fn directory() -> Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("proctrace-try-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .context("cannot create a temporary directory")
}

/// Parts that all runs have in common.
struct Bench<'a> {
    experiment: Experiment<'a>,
    /// Directory in which links are made.
    directory: tempfile::TempDir,
}

/// A run, and what its recording shows.
struct Run {
    outcome: Outcome,
    findings: Findings,
    found: Libs,
    fixes: Fixes,
}

impl Bench<'_> {
    /// Records one run, with or without the remedy, and reads the recording.
    fn run(&self, environment: &Environment, with: &str) -> Result<Run> {
        let command = self.experiment.command(environment.clone())?;
        let run = self.experiment.run(&command);
        let (trace, outcome) =
            run.with_context(|| format!("cannot record the command {with} the remedy"))?;
        let recording = rules::read(&trace, &Rules::generic())?;
        incomplete::warn(&trace, &recording);
        let findings = analyse(&recording);
        let (found, fixes) = found_here(recording, &trace)?;
        Ok(Run { outcome, findings, found, fixes })
    }
}

impl Run {
    /// The figures that are compared for a remedy.
    fn figures(&self, remedy: &str) -> TrialRun {
        figures(remedy, self.outcome, &self.findings, &self.found)
    }
}
