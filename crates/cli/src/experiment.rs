//! A command that is recorded several times to measure it: as whom, in which environment, and what a run may be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proctrace_record::{Command, Identity, Options};
use proctrace_recorder::invoker::{self, Environment};
use proctrace_recorder::record::{self, Job};
use proctrace_recorder::source::Backend;
use proctrace_trace::Outcome;
use tempfile::TempDir;

/// The command, and what its runs have in common.
pub(crate) struct Experiment<'a> {
    arguments: &'a [OsString],
    identity: Option<Identity>,
    /// The environment that the command has by itself.
    pub(crate) environment: Environment,
    options: Options,
    backend: Backend,
    /// True if traces are a result, so that they belong to the command's user, and messages about them are wanted.
    keeps: bool,
    scratch: TempDir,
}

impl<'a> Experiment<'a> {
    /// A command of the user who is named, or who called sudo.
    pub(crate) fn new(arguments: &'a [OsString], user: Option<&str>) -> Result<Self> {
        let (identity, environment) = invoker::of_command(user)?;
        let scratch = tempfile::tempdir().context("cannot create a directory for traces")?;
        let (options, backend) = (Options::default(), Backend::default());
        Ok(Self { arguments, identity, environment, options, backend, keeps: false, scratch })
    }

    pub(crate) fn keeping(self) -> Self {
        Self { keeps: true, ..self }
    }

    /// Records the mount tables as well.
    pub(crate) fn with_mounts(mut self) -> Self {
        self.options.mounts = true;
        self
    }

    /// The command in an environment.
    pub(crate) fn command(&self, environment: Environment) -> Result<Command> {
        record::command(self.arguments, environment, self.identity.as_ref())
    }

    /// A directory for traces, which goes with this.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Records a run into a trace that the next one replaces.
    pub(crate) fn run(&self, command: &Command) -> Result<(PathBuf, Outcome)> {
        let trace = self.scratch().join("run.ptrace");
        let outcome = self.run_into(&trace, command, "the measurement")?;
        Ok((trace, outcome))
    }

    /// Records a run into a trace. It fails if the run was interrupted: its figures would mean nothing.
    pub(crate) fn run_into(&self, trace: &Path, command: &Command, what: &str) -> Result<Outcome> {
        let job = Job {
            arguments: self.arguments,
            batch_job: BTreeMap::new(),
            command: Some(command),
            options: &self.options,
            backend: &self.backend,
            output: trace,
            owner: self.identity.as_ref().filter(|_| self.keeps),
            announced: false,
            quiet: !self.keeps,
        };
        match job.record_quietly()? {
            None => bail!("{what} was interrupted"),
            Some(Outcome::Signal(signal @ (2 | 15))) => {
                bail!("{what} was interrupted by signal {signal}")
            }
            Some(outcome) => Ok(outcome),
        }
    }
}
