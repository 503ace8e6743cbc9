//! `proctrace libs try`: records a command without and with a remedy, and compares.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{Write, stdout};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Applied, Fixes, Rules, analyse, best_of, misses};
use proctrace_findings::{Findings, Libs, Outcome, Trial, TrialRun};
use proctrace_record::{RecordError, ResolveError};
use proctrace_report::number::counted;
use proctrace_stats::{Order, Plan, Side};

use crate::args::{Tried, TryArgs};
use crate::experiment::Experiment;
use crate::invoker::Environment;
use crate::libs::{farm, read, tables};
use crate::record::{self, ended};
use crate::silence::{Instead, Silence};
use crate::{incomplete, print, rules, say};

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
    let mut out = stdout().lock();
    if args.json {
        print::json(&mut out, &trial)?;
    } else {
        let dialect = args.csv.dialect();
        let tables = [tables::trial(&trial)];
        print::tables(&mut out, &tables, args.format, dialect, print::style(None))?;
    }
    out.flush()?;
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
                tables::reasons(found)
            ),
        };
        format!("there is nothing to try: no program of the command had {variable}{gone}")
    })?;
    let farm = bench.directory.path().join("farm");
    let applied = Applied { remedy: remedy.name, fixes, farm: farm.as_os_str().as_bytes() };
    let changed = apply(&applied, &farm, &plain)?;
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

/// The variable that a remedy changes.
fn variable(remedy: &str) -> &'static str {
    if remedy == "path" { "PATH" } else { "LD_LIBRARY_PATH" }
}

/// An environment with the remedy, whose links are made.
fn apply(applied: &Applied<'_>, farm: &Path, plain: &Environment) -> Result<Environment> {
    if let Some(plan) = applied.fixes.plan(applied.remedy) {
        // The place is ours: what is wrong with it is no misuse of an argument.
        farm::make(farm, applied.remedy, plan)
            .map_err(|error| anyhow::anyhow!("{error:#} (TMPDIR decides where it is)"))?;
    }
    let name = variable(applied.remedy);
    let was = plain.iter().find(|(known, _)| known == name);
    let was = was.map(|(_, value)| value.as_bytes()).filter(|value| !value.is_empty());
    let mut changed = plain.clone();
    changed.retain(|(known, _)| known != name);
    changed.extend(applied.list(was).map(|list| (name.into(), OsString::from_vec(list))));
    Ok(changed)
}

/// Notes that are needed to interpret a trial.
fn notes(trial: &Trial) -> Vec<String> {
    let (before, after) = (trial.before.outcome, trial.after.outcome);
    let mut notes = Vec::new();
    if before != after {
        notes.push(format!(
            "the command {} without the remedy, but {} with it: the figures are not comparable",
            ended(before),
            ended(after)
        ));
    } else if before != Outcome::Code(0) {
        notes.push(format!("the command {}, with and without the remedy", ended(before)));
    }
    if trial.unreached_starts > 0 {
        notes.push(format!(
            "{} without the remedy, because a program of the command sets its own list: apply the \
             remedy there",
            counted(trial.unreached_starts, "start was", "starts were")
        ));
    }
    if trial.repeated_starts > 0 {
        notes.push(format!(
            "{} directories behind the links that these replace, because a program of the command adds \
             them: what no run has asked for is still searched there",
            counted(trial.repeated_starts, "start had", "starts had")
        ));
    }
    if trial.starts_not_modelled > 0 {
        notes.push(format!(
            "{} not modelled; these look-ups are not compared",
            counted(trial.starts_not_modelled, "start was", "starts were")
        ));
    }
    notes
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
        let (found, fixes) = read(recording, &trace)?;
        Ok(Run { outcome, findings, found, fixes })
    }
}

impl Run {
    /// The figures that are compared for a remedy.
    fn figures(&self, remedy: &str) -> TrialRun {
        let summary = &self.findings.summary;
        let (misses, dlopen_misses) = misses(&self.found, remedy);
        TrialRun {
            outcome: self.outcome,
            misses,
            dlopen_misses,
            lookups_failed: summary.lookups_in_vain,
            opens: summary.opens,
            lookups: summary.opens.zip(summary.lookups_in_vain).map(|(a, b)| a.saturating_add(b)),
            cpu_ns: summary.cpu_ns,
            system_ns: summary.system_ns,
            wall_ns: self.findings.run.wall_ns.unwrap_or_default(),
        }
    }
}
