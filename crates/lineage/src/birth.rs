//! The rules of births and ends: whose thread or child a new task is, and with which task a process ends.

use proctrace_wire::layout::{Attach, Exit, Fork};

/// Processes by their ids.
pub trait Register {
    /// Handle of a process, such as its serial or its index.
    type Process: Copy + Eq;

    /// The process with this serial.
    fn process(&self, serial: u32) -> Option<Self::Process>;

    /// The process that is alive and has this pid. Pids are used again: that of the latest birth.
    fn alive(&self, pid: i32) -> Option<Self::Process>;
}

/// The place of a new task among those that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Birth<P> {
    /// A thread of this process.
    Thread(P),
    /// A process; or a thread whose process is not known, for which it stands from then on.
    Process {
        /// The parent, by the kernel's rule: under CLONE_PARENT that of the forker, which may have adopted it.
        parent: Option<P>,
        /// The process that forked it.
        forker: Option<P>,
    },
}

impl<P: Copy + Eq> Birth<P> {
    /// Returns true for a thread of a process that is known.
    pub fn is_thread(self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// The place of a task that was there before.
    pub fn of_attach(attach: &Attach, known: &impl Register<Process = P>) -> Self {
        let process = attach.is_thread().then(|| known.process(attach.process)).flatten();
        let as_process = || Self::Process { parent: known.alive(attach.parent_tgid), forker: None };
        process.map_or_else(as_process, Self::Thread)
    }

    /// The place of a task that is born now.
    pub fn of_fork(fork: &Fork, known: &impl Register<Process = P>) -> Self {
        let process = fork.is_thread().then(|| known.process(fork.child_process)).flatten();
        if let Some(process) = process {
            return Self::Thread(process);
        }
        let forker = known.process(fork.process);
        // Of a forker that is not known, the pid may have been another's.
        let parent = match forker {
            Some(_) if fork.parent_tgid != fork.tgid => known.alive(fork.parent_tgid),
            forker => forker,
        };
        Self::Process { parent, forker }
    }
}

impl Birth<u32> {
    /// The serial of the process of a task that was born thus.
    pub fn process(self, task: u32) -> u32 {
        match self {
            Self::Thread(process) => process,
            Self::Process { .. } => task,
        }
    }
}

/// Returns true if this record tells the end of a process of which an end at `known_ns` has been told already. Several
/// threads may claim to be the last before Linux 6.16; the latest is right.
pub fn ends_process(exit: &Exit, known_ns: Option<u64>) -> bool {
    exit.is_process() && known_ns.is_none_or(|known_ns| known_ns <= exit.head.time_ns)
}
