//! A recording that is under way: whom it follows, and the records that have arrived.

use std::time::Instant;

use nix::unistd::Pid;
use proctrace_trace::{LossCount, PayloadUsage};

use crate::alarm::Alarm;
use crate::cgroup::OwnCgroup;
use crate::command::Fate;
use crate::error::RecordError;
use crate::intake::Intake;
use crate::machine::Reading;
use crate::options::{Options, Scope};
use crate::signals::Signals;
use crate::source::Source;

/// Passes over all tasks at the start of a recording.
const ADOPTIONS_MAX: u32 = 64;

/// A recording that is under way.
pub(crate) struct Session<'a> {
    pub(crate) source: &'a mut dyn Source,
    pub(crate) signals: &'a Signals,
    pub(crate) alarm: Alarm,
    /// Work of all CPUs before.
    pub(crate) machine: Option<Reading>,
    pub(crate) options: &'a Options,
    /// The command, where one was launched.
    pub(crate) root: Option<Pid>,
    /// Its outcome and usage, once it has exited.
    pub(crate) payload: Option<PayloadUsage>,
    /// Time at which that was first acted upon: the grace begins.
    pub(crate) exit_seen: Option<Instant>,
    pub(crate) told_of_waiting: bool,
    /// Where it is told what becomes of the command, if there is one.
    pub(crate) fate: Option<&'a Fate>,
    pub(crate) own_cgroup: Option<&'a OwnCgroup>,
    pub(crate) intake: Intake<'a>,
    /// The last pass over all tasks.
    pub(crate) samples: Vec<u8>,
    /// Losses as of the last flush.
    pub(crate) losses: Vec<LossCount>,
}

impl Session<'_> {
    /// Follows who was there before and was asked for.
    pub(crate) fn adopt_all(&mut self) -> Result<(), RecordError> {
        if self.options.scope == Scope::Launched && self.options.cgroup.is_none() {
            return Ok(());
        }
        // A child may come before its parent, so it takes as many passes as find somebody new. Births of
        // those who are followed count, too: where there always are some, each tick makes another pass.
        let mut known = self.source.task_counts().born;
        for _ in 0..ADOPTIONS_MAX {
            self.adopt()?;
            let now_known = self.source.task_counts().born;
            if now_known == known {
                break;
            }
            known = now_known;
        }
        Ok(())
    }

    /// Follows those who were asked for and have not been found before: one pass over all tasks.
    pub(crate) fn adopt(&mut self) -> Result<(), RecordError> {
        self.source.adopt()?;
        self.drain()?;
        Ok(())
    }

    /// Says who is followed, unless it is nobody although somebody was named.
    pub(crate) fn make_sure_of_somebody(&mut self) -> Result<(), RecordError> {
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

    /// True if tasks can come to be asked for without being made by one that is followed.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.options.scope, Scope::All | Scope::Jobs(_)) || self.options.cgroup.is_some()
    }

    /// Takes the records that are there; returns how many.
    pub(crate) fn drain(&mut self) -> Result<usize, RecordError> {
        let taken = self.source.drain(&mut self.intake)?;
        self.intake.complete_from_proc();
        Ok(taken)
    }
}
