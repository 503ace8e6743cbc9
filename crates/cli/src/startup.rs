//! `proctrace startup`: measures a command's start-up cost in this environment and in a clean one.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Rules, StartRun, environments, health};
use proctrace_record::{Command, Identity, Options};
use proctrace_trace::Outcome;
use rustix::time::{ClockId, clock_getres};

use crate::args::StartupArgs;
use crate::record::{self, Job};
use crate::silence::{Instead, Silence};
use crate::source::Backend;
use crate::{invoker, print, rules, say};

type Environment = Vec<(OsString, OsString)>;

pub(crate) fn run(args: &StartupArgs) -> Result<ExitCode> {
    let invoker = invoker::find(args.user.as_deref())?;
    let (identity, environment) = match invoker {
        Some(invoker) => (Some(invoker.identity), invoker.environment),
        None => (None, None),
    };
    let job = environment.unwrap_or_else(|| std::env::vars_os().collect());
    let clean = if args.without.is_empty() {
        clean_environment(&job, &args.clean)
    } else {
        without(&job, &args.without)
    };
    let bench = Bench {
        arguments: &args.command,
        identity,
        options: Options::default(),
        backend: Backend::default(),
        directory: tempfile::tempdir().context("cannot create a directory for traces")?,
    };
    let (this_one, clean) = (bench.command(job)?, bench.command(clean)?);
    let (mut of_job, mut of_clean) = (Vec::new(), Vec::new());
    let silence = Silence::begin(Instead::Discarded)?;
    // The first run in each environment starts with a cold page cache; it is not counted.
    for turn in 0..=args.runs {
        progress(turn, args.runs);
        let run_job = || bench.run(&this_one, "this environment");
        let run_clean = || bench.run(&clean, "the clean environment");
        // The environments alternate, and so does the first of each pair, so that the order favours
        // neither.
        let (job, clean) = if turn % 2 == 0 {
            let job = run_job()?;
            (job, run_clean()?)
        } else {
            let clean = run_clean()?;
            (run_job()?, clean)
        };
        if job.1 != clean.1 {
            bail!(
                "the command {} in this environment, but {} in the clean one; use --clean NAME to add \
                 the variables it needs",
                says(job.1),
                says(clean.1)
            );
        }
        if turn > 0 {
            of_job.push(job.0);
            of_clean.push(clean.0);
        } else if job.1 != Outcome::Code(0) {
            say::note(&format!("the command {}, in both environments", says(job.1)));
        }
    }
    drop(silence);
    let tables = environments(&of_job, &of_clean, tick_ns());
    let mut out = stdout().lock();
    let style = print::style(None);
    print::tables(&mut out, &tables, args.format, args.csv.dialect(), style)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The parameters common to all runs.
struct Bench<'a> {
    arguments: &'a [OsString],
    identity: Option<Identity>,
    options: Options,
    backend: Backend,
    directory: tempfile::TempDir,
}

impl Bench<'_> {
    fn command(&self, environment: Environment) -> Result<Command> {
        let command = record::command(self.arguments, environment)?;
        Ok(match &self.identity {
            Some(identity) => command.run_as(identity.clone()),
            None => command,
        })
    }

    /// Records one run and reads the recording.
    fn run(&self, command: &Command, environment: &str) -> Result<(StartRun, Outcome)> {
        let trace = self.directory.path().join("run.ptrace");
        let job = Job {
            arguments: self.arguments,
            batch_job: std::collections::BTreeMap::new(),
            command: Some(command),
            options: &self.options,
            backend: &self.backend,
            output: &trace,
            owner: None,
            announced: false,
            quiet: true,
        };
        let outcome = job
            .record_quietly()
            .with_context(|| format!("cannot record the command in {environment}"))?;
        let Some(outcome) = outcome else { bail!("the measurement was interrupted") };
        if let Outcome::Signal(signal @ (2 | 15)) = outcome {
            bail!("the measurement was interrupted by signal {signal}");
        }
        Ok((read(&trace)?, outcome))
    }
}

fn read(trace: &Path) -> Result<StartRun> {
    let recording = rules::read(trace, &Rules::generic())?;
    if !health(&recording).is_good() {
        bail!("a recording is incomplete or inconsistent; use `proctrace record` to see why");
    }
    Ok(StartRun::of(&recording))
}

/// The tick of the kernel's coarse clocks: their value is constant between ticks.
fn tick_ns() -> u64 {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    whole(resolution.tv_sec) * 1_000_000_000 + whole(resolution.tv_nsec)
}

fn says(outcome: Outcome) -> String {
    match outcome {
        Outcome::Code(code) => format!("exits with {code}"),
        Outcome::Signal(signal) => format!("is killed by signal {signal}"),
    }
}

fn progress(turn: u32, runs: u32) {
    if stderr().is_terminal() && turn > 0 && (turn == 1 || turn.is_multiple_of(5)) {
        say::note(&format!("run {turn} of {runs} in each environment"));
    }
}

/// PATH and HOME, and the requested variables.
fn clean_environment(job: &Environment, wanted: &[OsString]) -> Environment {
    let of_job = |name: &OsStr| job.iter().find(|(known, _)| known == name).cloned();
    let mut clean: Environment =
        ["PATH", "HOME"].into_iter().map(OsStr::new).filter_map(of_job).collect();
    for variable in wanted {
        let pair = match variable.as_bytes().iter().position(|byte| *byte == b'=') {
            Some(at) => {
                let (name, value) = variable.as_bytes().split_at(at);
                Some((OsStr::from_bytes(name).into(), OsStr::from_bytes(&value[1..]).into()))
            }
            None => of_job(variable),
        };
        if let Some((name, value)) = pair {
            clean.retain(|(known, _)| *known != name);
            clean.push((name, value));
        }
    }
    clean
}

fn without(job: &Environment, unwanted: &[OsString]) -> Environment {
    job.iter().filter(|(name, _)| !unwanted.contains(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_clean_environment_has_what_is_asked_for() {
        let job = environment(&[("PATH", "/bin"), ("LANG", "C"), ("X", "1"), ("HOME", "/root")]);
        let clean = |wanted: &[&str]| {
            clean_environment(&job, &wanted.iter().map(OsString::from).collect::<Vec<_>>())
        };
        assert_eq!(clean(&[]), environment(&[("PATH", "/bin"), ("HOME", "/root")]));
        assert_eq!(
            clean(&["X", "PATH=/opt=x", "NONE", "NEW="]),
            environment(&[("HOME", "/root"), ("X", "1"), ("PATH", "/opt=x"), ("NEW", "")])
        );
        assert_eq!(
            without(&job, &["X".into(), "LANG".into()]),
            environment(&[("PATH", "/bin"), ("HOME", "/root")])
        );
    }
}
