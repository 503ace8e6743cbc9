//! A recording from its start to its end.

use std::time::Instant;

use nix::unistd::Pid;
use proctrace_trace::PayloadUsage;

use crate::alarm::Alarm;
use crate::cgroup::OwnCgroup;
use crate::command::Command;
use crate::error::RecordError;
use crate::finish::Finished;
use crate::intake::Intake;
use crate::launch::{LaunchError, launch};
use crate::loss::LossCount;
use crate::options::{Options, Scope};
use crate::signals::Signals;
use crate::sink::Sink;
use crate::source::{Hold, Source};

/// Records into `sink` whom the options say, and `command`, which it runs, with all descendants.
///
/// # Errors
/// When the command cannot be started ([`RecordError::Exec`], [`RecordError::Launch`]), or when
/// the source or the kernel's interfaces fail while it runs; the payload is then left alone.
pub fn record(
    source: &mut dyn Source,
    signals: &Signals,
    command: Option<&Command>,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Finished, RecordError> {
    let alarm =
        Alarm::new(signals, &source.wakers()).map_err(RecordError::system("wait for events"))?;
    let root = match command {
        Some(command) => Some(start(source, command, signals)?),
        None => None,
    };
    let mut session = Session {
        source,
        signals,
        alarm,
        options,
        root,
        payload: None,
        exit_seen: None,
        told_of_waiting: false,
        own_cgroup: command.and_then(|command| command.cgroup.as_deref()),
        intake: Intake::new(sink),
        samples: Vec::new(),
        losses: Vec::new(),
    };
    session.adopt()?;
    session.make_sure_of_somebody()?;
    let ended = session.follow()?;
    session.finish(ended)
}

fn start(
    source: &mut dyn Source,
    command: &Command,
    signals: &Signals,
) -> Result<Pid, RecordError> {
    let hold = source.arm()?;
    let cgroup = command.cgroup.as_deref().map(OwnCgroup::descriptor);
    let mut seize = |root| source.seize(root);
    let seize = match hold {
        Hold::No => None,
        Hold::UntilSeized => Some(&mut seize as _),
    };
    launch(command, signals.mask_before(), cgroup, seize).map_err(|error| match error {
        LaunchError::Fork(source) => RecordError::Launch(source),
        LaunchError::Exec(source) => {
            let program = command.program.to_string_lossy().into_owned();
            RecordError::Exec { program, source }
        }
        LaunchError::Source(error) => RecordError::Source(error),
    })
}

/// A recording that is under way.
pub(crate) struct Session<'a> {
    pub(crate) source: &'a mut dyn Source,
    pub(crate) signals: &'a Signals,
    pub(crate) alarm: Alarm,
    pub(crate) options: &'a Options,
    /// The command, where one was launched.
    pub(crate) root: Option<Pid>,
    /// What became of it, once it has exited.
    pub(crate) payload: Option<PayloadUsage>,
    /// When that was first acted upon: the grace begins.
    pub(crate) exit_seen: Option<Instant>,
    pub(crate) told_of_waiting: bool,
    pub(crate) own_cgroup: Option<&'a OwnCgroup>,
    pub(crate) intake: Intake<'a>,
    /// The last pass over all tasks.
    pub(crate) samples: Vec<u8>,
    /// As of the last flush.
    pub(crate) losses: Vec<LossCount>,
}

impl Session<'_> {
    /// Follows who was there before and was asked for.
    pub(crate) fn adopt(&mut self) -> Result<(), RecordError> {
        if self.options.scope == Scope::Launched && self.options.cgroup.is_none() {
            return Ok(());
        }
        // A child may come before its parent, so it takes as many passes as find somebody new.
        let mut known = self.source.task_counts().born;
        loop {
            self.source.adopt()?;
            self.drain()?;
            let now_known = self.source.task_counts().born;
            if now_known == known {
                return Ok(());
            }
            known = now_known;
        }
    }

    /// Says who is followed, unless it is nobody although somebody was named.
    fn make_sure_of_somebody(&mut self) -> Result<(), RecordError> {
        let processes = self.intake.counts.processes;
        if let Scope::Pids(pids) = &self.options.scope
            && processes == 0
        {
            let list = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            return Err(match self.source.why_nobody(pids) {
                Some(reason) => RecordError::Refused(reason),
                None => RecordError::Gone(format!("process {list}")),
            });
        }
        self.intake.sink.ready(processes);
        Ok(())
    }

    /// Whether tasks can come to be asked for without being made by one that is followed.
    pub(crate) fn is_open(&self) -> bool {
        self.options.scope == Scope::All || self.options.cgroup.is_some()
    }

    /// Takes the records that are there; returns how many.
    pub(crate) fn drain(&mut self) -> Result<usize, RecordError> {
        let taken = self.source.drain(&mut self.intake)?;
        self.intake.tell_attached();
        Ok(taken)
    }
}
