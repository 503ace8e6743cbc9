//! The main loop of a recorder, between the launch and the end.

use std::time::{Duration, Instant};

use proctrace_trace::Ended;

use crate::command::Stage;
use crate::error::RecordError;
use crate::options::Wait;
use crate::session::Session;
use crate::source::Pass;
use crate::timers::{Awaited, Timers};

/// Minimum time of waiting before a message about it: the remaining commands of a pipeline, or a dead task before its
/// last switch, end within it.
const UNTOLD: Duration = Duration::from_millis(200);

impl Session<'_> {
    /// Runs until the tree has ended, or is no longer waited for.
    pub(crate) fn follow(&mut self) -> Result<Ended, RecordError> {
        let mut timers = Timers::new(self.options, Instant::now());
        loop {
            self.sleep(&timers)?;
            self.drain()?;
            let now = Instant::now();
            self.do_what_is_due(&mut timers, now)?;
            if self.is_interrupted()? {
                return Ok(Ended::Interrupted);
            }
            if timers.is_time_over(now) {
                return Ok(Ended::TimeOver);
            }
            self.reap()?;
            if let Some(ended) = self.has_ended(now) {
                return Ok(ended);
            }
        }
    }

    fn sleep(&self, timers: &Timers) -> Result<(), RecordError> {
        let awaited = if self.payload.is_some() {
            Awaited::Stragglers
        } else if self.root.is_some() {
            Awaited::Command
        } else {
            Awaited::Others
        };
        let pause = match self.source.is_behind() {
            true => Duration::ZERO,
            false => timers.pause(Instant::now(), awaited),
        };
        self.alarm.wait(pause).map_err(RecordError::system("wait for events"))
    }

    fn do_what_is_due(&mut self, timers: &mut Timers, now: Instant) -> Result<(), RecordError> {
        if timers.is_tick_due(now) {
            let before = cpu_time();
            if self.is_open() {
                self.adopt()?;
            }
            self.sample(Pass::Changed)?;
            timers.ticked(now, cpu_time().saturating_sub(before));
        }
        if timers.take_memory(now) {
            self.sample_memory()?;
        }
        if timers.take_flush(now) {
            self.intake.tell_changed_mounts();
            self.note_losses()?;
            self.intake.flush();
        }
        Ok(())
    }

    /// Forwards signals to the command; returns whether one of them stops the recorder.
    fn is_interrupted(&self) -> Result<bool, RecordError> {
        let next = || self.signals.next().map_err(RecordError::system("read a signal"));
        while let Some(received) = next()? {
            let running = self.root.filter(|_| self.payload.is_none());
            match (received.number, running) {
                (libc::SIGCHLD, _) => {}
                // Signals from the terminal reach the payload, too; signals sent to the recorder
                // alone are meant for the payload. In both cases the recording ends when the
                // payload does.
                (_, Some(_)) if received.is_kernels => {}
                (_, Some(root)) => received.pass_on(root),
                (libc::SIGINT | libc::SIGQUIT | libc::SIGTERM | libc::SIGHUP, None) => {
                    return Ok(true);
                }
                // Messages to a command that is not there, or has ended.
                (_, None) => {}
            }
        }
        Ok(false)
    }

    /// Checked in every iteration, because SIGCHLD can get lost: to a tracer of the recorder, or to
    /// a thread of a program that uses this crate.
    fn reap(&mut self) -> Result<(), RecordError> {
        if let Some(root) = self.root
            && self.payload.is_none()
        {
            let reaped = self.source.reap(root);
            self.payload = reaped.map_err(RecordError::system("wait for the command"))?;
            if let (Some(fate), Some(payload)) = (self.fate, &self.payload) {
                fate.set(Stage::Ended(payload.outcome));
            }
        }
        Ok(())
    }

    /// The reason the recording is over, if it is.
    fn has_ended(&mut self, now: Instant) -> Option<Ended> {
        let command_exited = self.payload.is_some();
        let others_only = self.root.is_none() && !self.is_open();
        if !(command_exited || others_only) {
            return None;
        }
        let alive = self.source.task_counts().alive();
        if alive == 0 {
            return Some(Ended::TreeExited);
        }
        if !command_exited {
            return None;
        }
        let waited = now.saturating_duration_since(*self.exit_seen.get_or_insert(now));
        if self.options.wait == Wait::Root || waited >= self.options.grace {
            return Some(Ended::RootExited);
        }
        if waited >= UNTOLD && !self.told_of_waiting {
            self.told_of_waiting = true;
            self.intake.sink.waiting(alive, self.options.grace);
        }
        None
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}
