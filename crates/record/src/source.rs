//! What a source of records has to do, so that a command can be launched and followed with it.

use std::io;
use std::os::fd::BorrowedFd;

use nix::unistd::Pid;
use proctrace_trace::{Header, PayloadUsage, Program};

use crate::intake::Intake;
use crate::loss::LossCount;

/// Why a source failed, in its own words. It is shown as it is.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Where records come from.
///
/// [`record`](crate::record) calls these methods from one thread, in this order:
///
/// 1. [`wakers`](Self::wakers);
/// 2. [`arm`](Self::arm), the fork, and [`seize`](Self::seize) if the source asked for it: only with
///    a command;
/// 3. [`adopt`](Self::adopt), for what was running before: only if the options ask for it;
/// 4. [`drain`](Self::drain), [`sample`](Self::sample), [`task_counts`](Self::task_counts),
///    [`losses`](Self::losses) and [`reap`](Self::reap), again and again;
/// 5. [`detach`](Self::detach), then `drain` until nothing is left, then `losses` once more.
///
/// A source is made, and attached to whatever it observes, before it is handed over. If it is dropped
/// without [`detach`](Self::detach), the recording has failed; what it observed must go on
/// unharmed.
pub trait Source {
    /// The name of the backend in the header of a trace: "ebpf".
    fn name(&self) -> &'static str;

    /// Fills in what only the source knows of a header: its hooks and its buffers.
    fn describe(&self, header: &mut Header);

    /// Whether only processes are recorded that the caller could trace.
    fn is_restricted(&self) -> bool {
        false
    }

    /// Descriptors that become readable when records must be taken before the next tick.
    fn wakers(&self) -> Vec<Waker<'_>> {
        Vec::new()
    }

    /// Gets ready for the command: the next process that this thread forks.
    ///
    /// # Errors
    /// When the source cannot record it.
    fn arm(&mut self) -> Result<Hold, SourceError>;

    /// Takes hold of the command's process, which has done nothing yet: it was held as
    /// [`arm`](Self::arm) asked. From here on it must be recorded. (A ptrace source seizes it here. Its
    /// exec closes the pipe that the launcher waits for before it stops for the tracer.)
    ///
    /// # Errors
    /// When the source cannot record it. The command is then not executed.
    fn seize(&mut self, root: Pid) -> Result<(), SourceError> {
        let _ = root;
        Ok(())
    }

    /// Looks once for tasks that were asked for and are not followed yet. It is repeated until
    /// [`task_counts`](Self::task_counts) says that nobody new was found.
    ///
    /// # Errors
    /// When the source cannot look, or may not record who was asked for.
    fn adopt(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Why none of these processes, which were asked for, is recorded; None if they have just ended.
    fn why_nobody(&self, pids: &[u32]) -> Option<SourceError> {
        let _ = pids;
        None
    }

    /// Hands over the records that are there now, in the order of each stream; returns how many.
    /// Records that arrive meanwhile are left for the next time, so that this always ends.
    ///
    /// # Errors
    /// When they cannot be had.
    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError>;

    /// Whether so much has arrived since the last [`drain`](Self::drain) that the next one is due at
    /// once.
    fn is_behind(&self) -> bool {
        false
    }

    /// Replaces `samples` by one pass over the tasks: sample records, then a tick.
    ///
    /// # Errors
    /// When the source cannot look.
    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError>;

    /// How many tasks have been followed so far, and how many of these have ended.
    fn task_counts(&mut self) -> TaskCounts;

    /// Collects the command, which is our child, if it has ended. A source that waits for all its
    /// tracees has to answer from what it has collected already; all others leave it at this.
    ///
    /// # Errors
    /// When it cannot be waited for.
    fn reap(&mut self, root: Pid) -> io::Result<Option<PayloadUsage>> {
        crate::reap::reap(root)
    }

    /// Everything that was lost so far: by kind, reason and CPU, each once, and never less than the
    /// last time.
    ///
    /// # Errors
    /// When it cannot be told.
    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError>;

    /// Ends the recording: no record is made after this, but for what is on its way. Those are still
    /// drained, and losses still told. Returns the figures of the source's programs in the kernel, if
    /// it has any.
    ///
    /// # Errors
    /// When it cannot be ended in good order.
    fn detach(&mut self) -> Result<Vec<Program>, SourceError>;
}

/// Whether the command's process has to be held before it executes the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// No: the source sees it from its birth on.
    No,
    /// Yes, until [`Source::seize`] has returned. This costs a pipe and a wake-up.
    UntilSeized,
}

/// A descriptor that wakes the recorder.
#[derive(Debug, Clone, Copy)]
pub struct Waker<'a> {
    /// What is polled for being readable. It must stay open for the whole recording.
    pub descriptor: BorrowedFd<'a>,
    /// Wake only when it becomes readable, not for as long as it is: for what stays readable while
    /// records wait for the next tick.
    pub edge_triggered: bool,
}

/// What a pass of samples is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// A tick: tasks that have used nothing since the last pass may be left out.
    Changed,
    /// The last one: every task that is still there, marked with `SAMPLE_FINAL`.
    Final,
    /// Every task, because the memory of each process is looked at next.
    Every,
}

/// How many tasks were followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// So many in all.
    pub born: u64,
    /// So many of these have ended.
    pub ended: u64,
}

impl TaskCounts {
    /// So many are still there.
    pub fn alive(self) -> u64 {
        // The two are counted apart, and need not be of the same moment.
        self.born.saturating_sub(self.ended)
    }
}
