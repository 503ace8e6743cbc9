//! The events of a recording, with all associated data.

use std::sync::Arc;

use proctrace_wire::layout::{
    self, Attach, Blind, ExecFixed, Loss, Memory, MissFixed, MovedFixed, PlaceFixed, Rename,
    Signal, Tick, Wait, WorkdirFixed, WrittenFixed,
};
use proctrace_wire::{Architecture, Outcome, WaitFor, Woken, dumped_core};
use strum::IntoStaticStr;

use crate::lookups::Lookup;
use crate::mounts::MountTable;

/// An event of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time, in CLOCK_BOOTTIME.
    pub time_ns: u64,
    /// Serial of the task; 0 for ticks and losses.
    pub task: u32,
    /// Thread-group id; None if the record that contained it was lost.
    pub pid: Option<i32>,
    /// Thread id; None likewise.
    pub tid: Option<i32>,
    /// The event's data.
    pub body: Body,
}

/// The kinds of events with their data.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Body {
    /// A task traced from now on that has no fork record.
    Attach(Attach),
    /// A new task.
    Fork(layout::Fork),
    /// A successful exec.
    Exec(Box<Exec>),
    /// A failed exec.
    ExecFailed(Miss),
    /// A failed look-up.
    LookupFailed(Miss),
    /// Duration of a failed look-up; it has its own event, too.
    LookupTime(TimedMiss),
    /// A successful open; its path is that of the file.
    Opened(Miss),
    /// A file or directory was renamed.
    Moved(Moved),
    /// A descriptor was closed through which a file could be written.
    Written(Written),
    /// Place to which the paths of a process lead from its next exec on.
    Place(Place),
    /// Mount table of a namespace from now on.
    Mounts(MountTable),
    /// A new name.
    Rename(Rename),
    /// The final working directory of a process that never called exec.
    Workdir(Workdir),
    /// The end of a task.
    Exit(Box<Exit>),
    /// A live task at a tick.
    Sample(Box<Sample>),
    /// The end of a pass of samples.
    Tick(Tick),
    /// The memory of a process.
    Memory(Memory),
    /// A task uses an interface that is not traced.
    Blind(Blind),
    /// A time off the CPU, which ends with the event.
    Wait(Box<TimeOff>),
    /// A signal that usually ends a process.
    Signal(Box<Signal>),
    /// Records were lost.
    Loss(Loss),
}

/// The end of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The record.
    pub record: layout::Exit,
    /// Page size of the recorded machine.
    pub page_bytes: u32,
}

impl Exit {
    /// Outcome by which it ended.
    pub fn outcome(&self) -> Outcome {
        Outcome::of_status(self.record.status)
    }

    /// True if it left a core dump.
    pub fn dumped_core(&self) -> bool {
        dumped_core(self.record.status)
    }

    /// Peak RSS of the program that ended.
    pub fn maxrss_bytes(&self) -> u64 {
        self.record.maxrss_pages.saturating_mul(u64::from(self.page_bytes))
    }
}

/// A live task at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The record.
    pub record: layout::Sample,
    /// Page size of the recorded machine.
    pub page_bytes: u32,
}

impl Sample {
    /// Resident memory of its address space.
    pub fn rss_bytes(&self) -> u64 {
        self.record.rss_pages.saturating_mul(u64::from(self.page_bytes))
    }
}

/// The search variables of an environment, name and value.
pub type Environment = Vec<(Vec<u8>, Vec<u8>)>;

/// A successful exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The fixed part of the record.
    pub record: ExecFixed,
    /// The path as given to execve.
    pub path: Vec<u8>,
    /// The `#!` interpreter, if there is one.
    pub interpreter: Option<Vec<u8>>,
    /// The executable: resolved, as seen by the task.
    pub exe: Vec<u8>,
    /// The working directory.
    pub cwd: Vec<u8>,
    /// The arguments.
    pub argv: Vec<Vec<u8>>,
    /// True if arguments are missing: beyond the size limit, unreadable, or lost.
    pub argv_truncated: bool,
    /// The search variables, if recorded and not lost.
    pub environment: Option<Arc<Environment>>,
}

/// A rename of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The fixed part of the record.
    pub record: MovedFixed,
    /// The path before; empty if it is not known.
    pub from: Vec<u8>,
    /// The path since; empty likewise.
    pub path: Vec<u8>,
}

/// The size of a file when a descriptor was closed through which it could be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The fixed part of the record.
    pub record: WrittenFixed,
    /// The path of the file; empty if it is not known.
    pub path: Vec<u8>,
}

/// The final working directory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workdir {
    /// The record.
    pub record: WorkdirFixed,
    /// The directory.
    pub path: Vec<u8>,
}

/// The mount namespace and the root of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The record.
    pub record: PlaceFixed,
    /// The root in the mount namespace.
    pub root: Vec<u8>,
}

/// A time off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOff {
    /// The record.
    pub record: Wait,
    /// The recorded machine.
    pub architecture: Architecture,
}

impl TimeOff {
    /// Object of the wait.
    pub fn waits_for(&self) -> WaitFor {
        WaitFor::of(&self.record, self.architecture)
    }

    /// The task or event that ended its sleep.
    pub fn woken(&self) -> Woken {
        Woken::of(&self.record, self.architecture)
    }
}

/// A failed look-up that was timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedMiss {
    /// The look-up.
    pub miss: Miss,
    /// Time from entry to return of the system call; `u32::MAX` stands for that or more.
    pub duration_ns: u32,
}

impl From<Lookup<'_, ()>> for Miss {
    fn from(lookup: Lookup<'_, ()>) -> Self {
        Self { record: lookup.miss, path: lookup.path.to_vec() }
    }
}

/// A failed look-up or exec, or an open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The fixed part of the record.
    pub record: MissFixed,
    /// The path as given to the call.
    pub path: Vec<u8>,
}
