//! `proctrace record`: writes the activity of a command, or of running processes, to a trace.

pub mod closing;
mod condor;
mod job_first;
mod node;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use proctrace_record::{
    Command, Fate, Finished, Identity, Options, OwnCgroup, RecordError, ResolveError, Scope,
    Signals, find_program, header, job_variables, record, usage,
};
use proctrace_trace::{self as trace, Outcome};
use proctrace_wire::escape::to_bytes;

use crate::args::RecordArgs;
use crate::invoker::Environment;
use crate::output::Output;
use crate::source::Backend;
use crate::summaries::Summaries;
use crate::watch::Watch;
use crate::{exit_code, invoker, say};
use closing::tell;
use settings::{backend, options};

/// Runs the command. Returns its exit code, or that of a shell that cannot execute it.
///
/// # Errors
/// If the recording failed.
pub fn run(args: &RecordArgs, summaries: &dyn Summaries) -> Result<ExitCode> {
    // Without the recorder, nobody would make the command one of another user.
    if args.job_first && matches!(invoker::find(args.user.as_deref()), Ok(None)) {
        return job_first::run(args, |fate| run_or_fail(args, summaries, fate));
    }
    run_or_fail(args, summaries, Fate::default())
}

fn run_or_fail(args: &RecordArgs, summaries: &dyn Summaries, fate: Fate) -> Result<ExitCode> {
    summaries.check()?;
    if let Some(patterns) = &args.per_cgroup {
        return node::run(args, patterns, summaries);
    }
    let (identity, environment) = invoker::of_command(args.user.as_deref())?;
    let own_cgroup = match args.own_cgroup {
        true => Some(Arc::new(OwnCgroup::create().context("cannot create a cgroup")?)),
        false => None,
    };
    let mut job = BTreeMap::new();
    let command = match args.command.is_empty() {
        true => None,
        false => {
            if !args.no_env {
                job = batch_job(&environment);
            }
            match command(&args.command, environment, identity.as_ref()) {
                Ok(command) => Some(command.telling(fate)),
                Err(error) => return Ok(cannot_execute(&error)),
            }
        }
    };
    let command = match (command, &own_cgroup) {
        (Some(command), Some(cgroup)) => Some(command.run_in(Arc::clone(cgroup))),
        (command, _) => command,
    };

    let options = options(args, own_cgroup.as_deref());
    let job = Job {
        arguments: &args.command,
        batch_job: job,
        command: command.as_ref(),
        options: &options,
        backend: &backend(args)?,
        output: &args.output,
        owner: identity.as_ref(),
        announced: command.is_none() && !args.quiet,
        quiet: args.quiet,
    };
    match job.record(Watch::asked(args, identity.as_ref())?) {
        Ok(recorded) => finish(args, recorded, summaries),
        Err(error) if matches!(error.downcast_ref(), Some(RecordError::Exec { .. })) => {
            Ok(cannot_execute(&error))
        }
        Err(error) => Err(error),
    }
}

/// The parameters of a recording.
pub struct Job<'a> {
    /// The command line; empty if no command is launched.
    pub arguments: &'a [OsString],
    /// The variables by which the command knows its batch job.
    pub batch_job: BTreeMap<String, String>,
    /// None: processes that are already running.
    pub command: Option<&'a Command>,
    /// Options: what is recorded, and how long.
    pub options: &'a Options,
    /// By what it is recorded.
    pub backend: &'a Backend,
    /// The path of the trace.
    pub output: &'a Path,
    /// The owner of the trace, if not our own user.
    pub owner: Option<&'a Identity>,
    /// True to announce that the recording has started.
    pub announced: bool,
    /// True to suppress all messages except warnings.
    pub quiet: bool,
}

/// A finished recording whose trace is not yet completed.
struct Recorded {
    header: trace::Header,
    output: Output,
    finished: Finished,
    loading_ns: u64,
}

impl Job<'_> {
    fn record(&self, watch: Option<Watch>) -> Result<Recorded> {
        // Before the output starts a thread, which inherits the signal mask.
        let signals = Signals::block().context("cannot handle signals")?;
        let mut source = self.backend.load(self.options, self.arguments, self.quiet)?;
        let of_others = self.options.scope == Scope::All
            || (self.options.cgroup.is_some() && self.command.is_none());
        if source.is_restricted() && of_others {
            say::note(
                "only processes that this user may trace are recorded; recording all processes \
                 requires root or CAP_SYS_PTRACE",
            );
        }
        let header = trace::Header {
            job: self.batch_job.clone(),
            ..header(self.arguments, self.options, &*source)?
        };
        let mut output = Output::create(self.output, &invoker::outputs_for(self.owner), &header)?
            .announced(self.announced)
            .quiet(self.quiet)
            .watched(watch, self.output)?;
        let loading = usage(0);
        let loading_ns = loading.user_ns.saturating_add(loading.system_ns);
        match record(&mut *source, &signals, self.command, self.options, &mut output) {
            Ok(finished) => Ok(Recorded { header, output, finished, loading_ns }),
            Err(error) => {
                use RecordError::{Exec, Gone, Launch, Refused};
                if matches!(error, Exec { .. } | Launch(_) | Gone(_) | Refused(_)) {
                    output.discard();
                } else {
                    output.take_name();
                }
                Err(error.into())
            }
        }
    }

    /// Records silently, and returns how the command ended; None if it is still running.
    pub fn record_quietly(&self) -> Result<Option<Outcome>> {
        let Recorded { output, mut finished, loading_ns, .. } = self.record(None)?;
        let sink_error = finished.sink_error.take();
        let written = output.finish(&finished.trailer(usage(loading_ns)))?;
        if !self.quiet {
            closing::tell_kept(&written);
        }
        if let Some(error) = sink_error {
            return Err(error).with_context(|| format!("cannot write {}", self.output.display()));
        }
        Ok(finished.payload.map(|payload| payload.outcome))
    }
}

/// The command of a user, if not our own, resolved along the PATH of the environment it will have.
///
/// # Errors
/// If there is no such program.
pub fn command(
    arguments: &[OsString],
    environment: Environment,
    identity: Option<&Identity>,
) -> Result<Command> {
    let search_path = environment.iter().find(|(name, _)| name == "PATH");
    let program = find_program(&arguments[0], search_path.map(|(_, path)| &**path))?;
    let command = Command::new(program, arguments.iter().cloned(), environment);
    Ok(match identity {
        Some(identity) => command.run_as(identity.clone()),
        None => command,
    })
}

/// The variables of an environment by which a command knows its batch job.
fn batch_job(environment: &[(OsString, OsString)]) -> BTreeMap<String, String> {
    let all = environment.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut found = job_variables(all);
    if let Some(ad) = found.get(condor::JOB_AD) {
        for (name, value) in condor::variables(Path::new(OsStr::from_bytes(&to_bytes(ad)))) {
            found.entry(name.to_owned()).or_insert(value);
        }
    }
    found
}

/// Reports the reason, and selects one of a shell's two exit codes for it.
pub fn cannot_execute(error: &anyhow::Error) -> ExitCode {
    say::error(error);
    let not_found = error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(ResolveError::NotFound { .. }))
            || cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    if not_found { exit_code::NOT_FOUND } else { exit_code::NOT_EXECUTABLE }.into()
}

/// Completes the trace, reports the result, and passes the command's exit status on.
fn finish(args: &RecordArgs, recorded: Recorded, summaries: &dyn Summaries) -> Result<ExitCode> {
    let outcome = recorded.finished.payload.as_ref().map(|payload| payload.outcome);
    if args.job_first {
        job_first::outlive_file_limit();
    }
    let completed = match args.job_first {
        true => job_first::guarded(|| complete(args, recorded, outcome, summaries)),
        false => complete(args, recorded, outcome, summaries),
    };
    match (completed, outcome) {
        (Err(error), Some(outcome)) if args.job_first => job_first::incomplete(&error, outcome),
        (Err(error), Some(outcome)) => return Err(error.context(of_both(outcome))),
        (completed, _) => completed?,
    }
    Ok(match outcome {
        Some(outcome) => status_of(outcome),
        None if args.command.is_empty() => ExitCode::SUCCESS,
        None => exit_code::RECORDING_FAILED.into(),
    })
}

/// Completes the trace, and makes the summary.
fn complete(
    args: &RecordArgs,
    recorded: Recorded,
    outcome: Option<Outcome>,
    summaries: &dyn Summaries,
) -> Result<()> {
    let Recorded { header, mut output, mut finished, loading_ns } = recorded;
    let sink_error = finished.sink_error.take();
    let path = output.take_name().to_owned();
    let written = output.finish(&finished.trailer(usage(loading_ns)));
    if sink_error.is_some() || written.is_err() {
        let how = match outcome {
            Some(outcome) => format!("the command continued and {outcome}"),
            None if args.command.is_empty() => "the processes are still running".to_owned(),
            None => "the command is still running".to_owned(),
        };
        // The part of the file written before can still be read.
        say::note(&format!(
            "{} contains the recording only up to the failure; {how}",
            path.display()
        ));
    }
    // The writing thread knows the cause of an error; the sink only knows that it failed.
    let written = written?;
    if let Some(error) = sink_error {
        return Err(error).with_context(|| format!("cannot write {}", path.display()));
    }
    tell(args, &header, &finished, &written);
    summaries.recorded(&written.path, args.quiet)
}

/// Message that tells whose failure it is: who sees only the status 125 takes it for the command's.
fn of_both(outcome: Outcome) -> String {
    let whose = match outcome {
        Outcome::Code(0) => "the recording failed, not the command, which exited with 0".to_owned(),
        outcome => format!("both failed: the command, which {outcome}, and its recording"),
    };
    format!(
        "{whose} (status {} is the recording's; --job-first passes the command's on)",
        exit_code::RECORDING_FAILED
    )
}

/// The exit status by which a command's own is passed on.
pub fn status_of(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Code(code) => u8::try_from(code).unwrap_or(u8::MAX).into(),
        Outcome::Signal(signal) => {
            (exit_code::SIGNALLED + u8::try_from(signal & 0x7f).unwrap_or(0)).into()
        }
    }
}
