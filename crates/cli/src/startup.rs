//! `proctrace startup`: measures a command's start-up cost in this environment and in a clean one.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, stderr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{Rules, StartRun, environments, health};
use proctrace_record::tick_ns;
use proctrace_stats::{Order, Plan, Round, Side};
use proctrace_trace::Outcome;

use crate::args::StartupArgs;
use crate::experiment::Experiment;
use crate::invoker::Environment;
use crate::silence::{Instead, Silence};
use crate::{print, rules, say};

pub(crate) fn run(args: &StartupArgs) -> Result<ExitCode> {
    let experiment = Experiment::new(&args.command, args.user.as_deref())?;
    let job = &experiment.environment;
    let clean = if args.without.is_empty() {
        clean_environment(job, &args.clean)
    } else {
        without(job, &args.without)
    };
    let (this_one, clean) = (experiment.command(job.clone())?, experiment.command(clean)?);
    // The first run in each environment starts with a cold page cache; it is not counted.
    let plan = Plan { warm_ups: 1, rounds: args.runs, order: Order::Alternating };
    let measure = |round: Round, side| {
        if round.first == side {
            progress(round.number, args.runs);
        }
        let (command, environment) = match side {
            Side::A => (&this_one, "this environment"),
            Side::B => (&clean, "the clean environment"),
        };
        let run = experiment.run(command);
        let (trace, outcome) =
            run.with_context(|| format!("cannot record the command in {environment}"))?;
        Ok((read(&trace)?, outcome))
    };
    let silence = Silence::begin(Instead::Discarded)?;
    let (of_job, of_clean) =
        plan.run(measure, |round, job, clean| same_end(round, job.1, clean.1))?;
    drop(silence);
    let runs = |of: Vec<(StartRun, Outcome)>| of.into_iter().map(|run| run.0).collect::<Vec<_>>();
    let tables = environments(&runs(of_job), &runs(of_clean), tick_ns().unwrap_or(0));
    print::table_answer(&tables, (args.format, &args.csv), print::style(None))
}

/// Refuses to compare work with an early end.
fn same_end(round: Round, job: Outcome, clean: Outcome) -> Result<()> {
    if job != clean {
        bail!(
            "the command {} in this environment, but {} in the clean one; use --clean NAME to add \
             the variables it needs",
            says(job),
            says(clean)
        );
    }
    if round.is_warm_up() && job != Outcome::Code(0) {
        say::note(&format!("the command {}, in both environments", says(job)));
    }
    Ok(())
}

fn read(trace: &Path) -> Result<StartRun> {
    let recording = rules::read(trace, &Rules::generic())?;
    if !health(&recording).is_good() {
        bail!("a recording is incomplete or inconsistent; use `proctrace record` to see why");
    }
    Ok(StartRun::of(&recording))
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
