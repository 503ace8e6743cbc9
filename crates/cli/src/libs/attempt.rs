//! `proctrace libs try`: records a command without and with a remedy, and compares.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{Write, stdout};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{FarmPlan, Fixes, ListChange, Rules, analyse};
use proctrace_findings::{Libs, Outcome, Remedy, Trial, TrialRun};
use proctrace_record::{Command, Identity, Options, RecordError, ResolveError};
use proctrace_report::number::counted;

use crate::args::{Tried, TryArgs};
use crate::libs::{farm, read, tables};
use crate::record::{self, Job};
use crate::silence::{Instead, Silence};
use crate::source::Backend;
use crate::{check, invoker, print, rules, say};

type Environment = Vec<(OsString, OsString)>;

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

/// Whether the command could not be executed, which is not a failure of the recording.
fn is_of_command(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(RecordError::Exec { .. }))
            || cause.downcast_ref::<ResolveError>().is_some()
    })
}

fn compare(args: &TryArgs) -> Result<Trial> {
    let invoker = invoker::find(args.user.as_deref())?;
    let (identity, environment) = match invoker {
        Some(invoker) => (Some(invoker.identity), invoker.environment),
        None => (None, None),
    };
    let mut bench = Bench {
        arguments: &args.command,
        identity,
        options: Options { mounts: true, ..Options::default() },
        backend: Backend::default(),
        directory: directory()?,
        remedy: args.remedy.unwrap_or(Tried::Farm),
    };
    let plain = environment.unwrap_or_else(|| std::env::vars_os().collect());
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let (first, found, fixes) = bench.run(&plain, None)?;
    before.push(first);
    if args.remedy.is_none()
        && let Some(best) = best(&found.remedies)
    {
        bench.remedy = best;
        say::note(&format!("trying the remedy {}", best.name()));
    }
    let bench = bench;
    let remedy = found.remedies.iter().find(|remedy| remedy.name == bench.remedy.name());
    let remedy = remedy.with_context(|| {
        let variable = if bench.remedy == Tried::Path { "PATH" } else { "LD_LIBRARY_PATH" };
        let gone = match found.starts_not_modelled {
            0 => String::new(),
            starts => format!(
                "; {} not modelled{}: the command must leave its programs and libraries where they are",
                counted(starts, "start was", "starts were"),
                tables::reasons(&found)
            ),
        };
        format!("there is nothing to try: no program of the command had {variable}{gone}")
    })?;
    let changed = bench.apply(&plain, &fixes)?;
    let mut last = bench.run(&changed, Some(&fixes))?;
    after.push(last.0);
    for _ in 1..args.repeat {
        before.push(bench.run(&plain, None)?.0);
        last = bench.run(&changed, Some(&fixes))?;
        after.push(last.0);
    }
    let (_, found_last, fixes_last) = last;
    Ok(Trial {
        unreached_starts: bench.unreached(&fixes, &fixes_last),
        repeated_starts: bench.repeated(&fixes, &fixes_last),
        ..trial(remedy, &before, &after, &found_last)
    })
}

/// The remedy about libraries with which fewest look-ups are predicted to fail; of equal ones that which changes least.
fn best(remedies: &[Remedy]) -> Option<Tried> {
    let left = |tried: Tried| {
        let remedy = remedies.iter().find(|remedy| remedy.name == tried.name())?;
        let later = remedy.predicted_dlopen_misses.unwrap_or(0);
        Some((remedy.predicted_misses.saturating_add(later), tried))
    };
    Tried::OF_LIBRARIES.into_iter().filter_map(left).min_by_key(|(left, _)| *left).map(|it| it.1)
}

/// All failed look-ups with a remedy about libraries: the others stay as they were in the run from which it
/// is worked out.
fn predicted_in_all(remedy: &Remedy, run: &TrialRun) -> Option<u64> {
    let later = remedy.predicted_dlopen_misses?;
    let others = run.lookups_failed?.checked_sub(run.misses)?.checked_sub(run.dlopen_misses)?;
    Some(others.saturating_add(remedy.predicted_misses).saturating_add(later))
}

fn trial(remedy: &Remedy, before: &[TrialRun], after: &[TrialRun], last: &Libs) -> Trial {
    Trial {
        remedy: remedy.name,
        about: remedy.about,
        runs: before.len() as u64,
        predicted_misses: remedy.predicted_misses,
        predicted_dlopen_misses: remedy.predicted_dlopen_misses,
        predicted_lookups_failed: before.first().and_then(|run| predicted_in_all(remedy, run)),
        before: medians(before),
        after: medians(after),
        unreached_starts: 0,
        repeated_starts: 0,
        starts_not_modelled: last.starts_not_modelled,
    }
}

/// What has to be known to interpret a trial.
fn notes(trial: &Trial) -> Vec<String> {
    let says = |outcome| match outcome {
        Outcome::Code(code) => format!("exited with {code}"),
        Outcome::Signal(signal) => format!("was killed by signal {signal}"),
    };
    let (before, after) = (trial.before.outcome, trial.after.outcome);
    let mut notes = Vec::new();
    if before != after {
        notes.push(format!(
            "the command {} without the remedy, but {} with it: the figures are not comparable",
            says(before),
            says(after)
        ));
    } else if before != Outcome::Code(0) {
        notes.push(format!("the command {}, with and without the remedy", says(before)));
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

/// A directory for traces and links, which the command's user can read.
fn directory() -> Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("proctrace-try-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .context("cannot create a temporary directory")
}

/// The parameters common to all runs.
struct Bench<'a> {
    arguments: &'a [OsString],
    identity: Option<Identity>,
    options: Options,
    backend: Backend,
    directory: tempfile::TempDir,
    remedy: Tried,
}

impl Bench<'_> {
    /// Records one run and reads the recording; `fixes` are those that were applied to it.
    fn run(
        &self,
        environment: &Environment,
        fixes: Option<&Fixes>,
    ) -> Result<(TrialRun, Libs, Fixes)> {
        let command = record::command(self.arguments, environment.clone())?;
        let command = match &self.identity {
            Some(identity) => command.run_as(identity.clone()),
            None => command,
        };
        let trace = self.directory.path().join("run.ptrace");
        let outcome = self.record(&command, &trace).with_context(|| {
            let with = if fixes.is_some() { "with" } else { "without" };
            format!("cannot record the command {with} the remedy")
        })?;
        let recording = rules::read(&trace, &Rules::generic())?;
        check::warn(&trace, &recording);
        let findings = analyse(&recording)?;
        let (found, fixes) = read(recording, &trace)?;
        let summary = &findings.summary;
        let run = TrialRun {
            outcome,
            misses: self.misses(&found),
            dlopen_misses: found
                .remedies
                .iter()
                .find_map(|remedy| remedy.predicted_dlopen_misses.filter(|_| remedy.name == "none"))
                .unwrap_or_default(),
            lookups_failed: summary.lookups_in_vain,
            opens: summary.opens,
            lookups: summary.opens.zip(summary.lookups_in_vain).map(|(a, b)| a.saturating_add(b)),
            cpu_ns: summary.cpu_ns,
            system_ns: summary.system_ns,
            wall_ns: findings.run.wall_ns.unwrap_or_default(),
        };
        Ok((run, found, fixes))
    }

    fn record(&self, command: &Command, trace: &Path) -> Result<Outcome> {
        let job = Job {
            arguments: self.arguments,
            batch_job: std::collections::BTreeMap::new(),
            command: Some(command),
            options: &self.options,
            backend: &self.backend,
            output: trace,
            owner: None,
            announced: false,
            quiet: true,
        };
        match job.record_quietly()? {
            None => bail!("the measurement was interrupted"),
            Some(Outcome::Signal(signal @ (2 | 15))) => {
                bail!("the measurement was interrupted by signal {signal}")
            }
            Some(outcome) => Ok(outcome),
        }
    }

    /// The failed look-ups that were recorded of those which the remedy is about.
    fn misses(&self, found: &Libs) -> u64 {
        if self.remedy == Tried::Path {
            let of_path = found.causes.iter().filter(|cause| cause.kind == "PATH");
            return of_path.map(|cause| cause.misses).sum();
        }
        found.confirmed_library_misses.saturating_add(found.unexplained_library_misses)
    }

    fn farm(&self) -> PathBuf {
        self.directory.path().join("farm")
    }

    /// The environment with the remedy.
    fn apply(&self, plain: &Environment, fixes: &Fixes) -> Result<Environment> {
        let mut changed = plain.clone();
        let name = if self.remedy == Tried::Path { "PATH" } else { "LD_LIBRARY_PATH" };
        let was = plain.iter().find(|(known, _)| known == name);
        let was = was.map(|(_, value)| value.as_bytes()).filter(|value| !value.is_empty());
        let value = match self.remedy {
            Tried::Farm | Tried::FarmSystem | Tried::Merge => {
                let plan = self.plan(fixes);
                // The place is ours: what is wrong with it is no misuse of an argument.
                farm::make(&self.farm(), self.remedy.name(), plan)
                    .map_err(|error| anyhow::anyhow!("{error:#} (TMPDIR decides where it is)"))?;
                Some(plan.list(self.farm().as_os_str().as_bytes(), was.unwrap_or_default()))
            }
            _ => was.and_then(|was| self.changed(was, fixes)),
        };
        changed.retain(|(known, _)| known != name);
        if let Some(value) = value {
            changed.push((name.into(), OsString::from_vec(value)));
        }
        Ok(changed)
    }

    /// The directory of links of the remedy.
    fn plan<'f>(&self, fixes: &'f Fixes) -> &'f FarmPlan {
        match self.remedy {
            Tried::Merge => &fixes.merge,
            Tried::FarmSystem => &fixes.farm_system,
            _ => &fixes.farm,
        }
    }

    /// A list with the remedy.
    fn changed(&self, was: &[u8], fixes: &Fixes) -> Option<Vec<u8>> {
        if self.remedy == Tried::Path {
            let change = fixes.paths.iter().find(|change| change.was == was);
            let becomes = change.and_then(|change| change.becomes.clone());
            return becomes.or_else(|| Some(was.to_vec()));
        }
        fixes.library_path(self.remedy.name(), was)
    }

    /// Starts with a list to which the remedy was not applied.
    fn unreached(&self, fixes: &Fixes, last: &Fixes) -> u64 {
        let farm = self.farm().into_os_string();
        let reached = |change: &&ListChange| match self.remedy {
            Tried::Farm | Tried::FarmSystem | Tried::Merge => {
                let first = change.was.split(|byte| matches!(byte, b':' | b';')).next();
                first.map(OsStr::from_bytes) == Some(&*farm)
            }
            _ => self.changed(&change.was, fixes).as_ref() == Some(&change.was),
        };
        let lists = if self.remedy == Tried::Path { &last.paths } else { &last.library_paths };
        lists.iter().filter(|change| !reached(change)).map(|change| change.starts).sum()
    }

    /// Starts whose list has directories behind the links that these replace.
    fn repeated(&self, fixes: &Fixes, last: &Fixes) -> u64 {
        if self.remedy != Tried::Merge {
            return 0;
        }
        let repeats = |change: &&ListChange| {
            let mut entries = change.was.split(|byte| matches!(byte, b':' | b';'));
            entries.any(|entry| fixes.merge.replaced.iter().any(|replaced| replaced == entry))
        };
        last.library_paths.iter().filter(repeats).map(|change| change.starts).sum()
    }
}

/// The medians of the figures, and how the last run ended.
fn medians(runs: &[TrialRun]) -> TrialRun {
    let some = |of: fn(&TrialRun) -> Option<u64>| -> Option<u64> {
        let mut values = runs.iter().map(of).collect::<Option<Vec<u64>>>()?;
        values.sort_unstable();
        let (low, high) =
            (values.get((values.len().max(1) - 1) / 2)?, values.get(values.len() / 2)?);
        Some(low.midpoint(*high))
    };
    TrialRun {
        outcome: runs.last().map_or(Outcome::Code(0), |run| run.outcome),
        misses: some(|run| Some(run.misses)).unwrap_or_default(),
        dlopen_misses: some(|run| Some(run.dlopen_misses)).unwrap_or_default(),
        lookups_failed: some(|run| run.lookups_failed),
        opens: some(|run| run.opens),
        lookups: some(|run| run.lookups),
        cpu_ns: some(|run| run.cpu_ns),
        system_ns: some(|run| run.system_ns),
        wall_ns: some(|run| Some(run.wall_ns)).unwrap_or_default(),
    }
}
