//! The interface of a source of records with which a command can be launched and recorded.

use std::io;
use std::os::fd::BorrowedFd;

use nix::unistd::Pid;
use proctrace_trace::{Header, HeldUp, LossCount, PayloadUsage, Program};

use crate::intake::Intake;

/// Error of a source; shown unchanged.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Source of records.
///
/// [`record`](crate::record) calls these methods from one thread, in this order:
///
/// 1. [`wakers`](Self::wakers);
/// 2. [`arm`](Self::arm), the fork, and [`seize`](Self::seize) if the source needs it: only with
///    a command;
/// 3. [`adopt`](Self::adopt), for existing processes: only if the options request it;
/// 4. [`drain`](Self::drain), [`sample`](Self::sample), [`task_counts`](Self::task_counts),
///    [`losses`](Self::losses) and [`reap`](Self::reap), repeatedly;
/// 5. [`detach`](Self::detach), then `drain` until nothing is left, then `losses` once more.
///
/// A source is created, and attached to what it observes, before it is passed in. If it is dropped
/// without [`detach`](Self::detach), the recording has failed; what it observed must continue
/// unharmed.
pub trait Source {
    /// The name of the backend in the header of a trace: "ebpf".
    fn name(&self) -> &'static str;

    /// Fills in the source's part of a header: its hooks and its buffers.
    fn describe(&self, header: &mut Header);

    /// True if recording is limited to processes that the caller could trace.
    fn is_restricted(&self) -> bool {
        false
    }

    /// Descriptors that become readable when records must be drained before the next tick.
    fn wakers(&self) -> Vec<Waker<'_>> {
        Vec::new()
    }

    /// Prepares for the command: the next process that this thread forks.
    ///
    /// # Errors
    /// When the source cannot record it.
    fn arm(&mut self) -> Result<Hold, SourceError>;

    /// Seizes the command's process, which has done nothing yet: it was held as [`arm`](Self::arm)
    /// requested. From here on it must be recorded. (A ptrace source seizes it here. Its exec
    /// closes the pipe that the launcher waits for before it stops for the tracer.)
    ///
    /// # Errors
    /// When the source cannot record it. The command is then not executed.
    fn seize(&mut self, root: Pid) -> Result<(), SourceError> {
        let _ = root;
        Ok(())
    }

    /// Searches once for requested tasks that are not traced yet. It is repeated until
    /// [`task_counts`](Self::task_counts) shows that no new task was found.
    ///
    /// # Errors
    /// When the source cannot search, or may not record the requested tasks.
    fn adopt(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// The reason none of these requested processes is recorded; None if they have just ended.
    fn why_nobody(&self, pids: &[u32]) -> Option<SourceError> {
        let _ = pids;
        None
    }

    /// Passes on the records available now, in the order of each stream; returns how many. Records
    /// that arrive meanwhile are left for the next call, so that this always ends.
    ///
    /// # Errors
    /// When they cannot be read.
    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError>;

    /// True if there are records that are still being written, behind which the next [`drain`](Self::drain) finds more.
    fn has_unfinished(&self) -> bool {
        false
    }

    /// True if so many records have arrived since the last [`drain`](Self::drain) that the next one
    /// is due immediately.
    fn is_behind(&self) -> bool {
        false
    }

    /// Replaces `samples` with one pass over the tasks: sample records, then a tick.
    ///
    /// # Errors
    /// When the tasks cannot be sampled.
    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError>;

    /// Numbers of tasks traced so far, and of those that have ended.
    fn task_counts(&mut self) -> TaskCounts;

    /// Reaps the command, a child of the recorder, if it has ended. A source that waits for all its
    /// tracees must answer from what it has already reaped; all others keep this default.
    ///
    /// # Errors
    /// When it cannot be waited for.
    fn reap(&mut self, root: Pid) -> io::Result<Option<PayloadUsage>> {
        crate::reap::reap(root)
    }

    /// All losses so far: each combination of kind, reason and CPU once, and never decreasing.
    ///
    /// # Errors
    /// When they cannot be read.
    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError>;

    /// Actions from which the source has kept the command, a sentence each; nothing if it changes
    /// nothing.
    fn restraints(&self) -> Vec<String> {
        Vec::new()
    }

    /// Time that tasks have waited because buffers were nearly full; none if none has.
    fn held_up(&mut self) -> Option<HeldUp> {
        None
    }

    /// Ends the recording: no record is created after this, except those already in progress. These
    /// are still drained, and losses still read. Returns the statistics of the source's programs in
    /// the kernel, if it has any.
    ///
    /// # Errors
    /// When it cannot be ended cleanly.
    fn detach(&mut self) -> Result<Vec<Program>, SourceError>;

    /// User and system time in nanoseconds of other processes that belong to the source; asked for
    /// after [`detach`](Self::detach).
    fn helper_cpu_ns(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Requirement to hold the command's process before it executes the command.
#[derive(Debug, Clone)]
pub enum Hold {
    /// No: the source sees it from its birth on.
    No,
    /// Yes, until [`Source::seize`] has returned. This costs a pipe and a wake-up.
    UntilSeized(Preparation),
}

/// Actions of the command's process on itself, on behalf of the source.
#[derive(Debug, Clone, Default)]
pub struct Preparation {
    /// Before it is held: it allows this process to trace it, which Yama allows only to ancestors.
    pub tracer: Option<Pid>,
    /// Just before the exec: a seccomp filter for it and its descendants, together with no_new_privs,
    /// which it needs. Empty: none.
    pub filter: Vec<libc::sock_filter>,
    /// Additions to variables of its environment that hold options separated by colons.
    pub options: &'static [(&'static str, &'static str)],
}

/// A descriptor that wakes the recorder.
#[derive(Debug, Clone, Copy)]
pub struct Waker<'a> {
    /// The descriptor to poll for readability. It must stay open for the whole recording.
    pub descriptor: BorrowedFd<'a>,
    /// Wake only when it becomes readable, not while it is: for descriptors that stay readable
    /// while records wait for the next tick.
    pub edge_triggered: bool,
}

/// The purpose of a sampling pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// A tick: tasks that used no CPU time since the last pass may be skipped.
    Changed,
    /// The last pass: every task still alive, marked with `SAMPLE_FINAL`.
    Final,
    /// Every task, because the memory of each process is read next.
    Every,
}

/// Numbers of traced tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Number of tasks in total.
    pub born: u64,
    /// Number of these that have ended.
    pub ended: u64,
}

impl TaskCounts {
    /// Tasks still alive.
    pub fn alive(self) -> u64 {
        // The two are counted separately, and may be of different moments.
        self.born.saturating_sub(self.ended)
    }
}
