//! State of a task and of a process in the tracer.

use std::rc::Rc;

use proctrace_wire::layout::Exit;

use crate::procfs::{Files, Io, LastMemory, RootId, Usage};
use crate::sys::Tid;

/// A traced task.
#[derive(Debug)]
pub(crate) struct TracedTask {
    /// Its number in the recording.
    pub(crate) serial: u32,
    /// Serial of its process.
    pub(crate) process: u32,
    pub(crate) tgid: Tid,
    pub(crate) born_ns: u64,
    pub(crate) comm: [u8; 16],
    pub(crate) opens: u32,
    pub(crate) lookups_failed: u32,
    pub(crate) execs_failed: u32,
    /// The first argument of its system call, where the result overwrites it.
    pub(crate) first_argument: u64,
    /// Address of the flags of its clone3(2), and their value, while they are changed.
    pub(crate) flags_taken: Option<(u64, u64)>,
    /// Data of its end, once it has begun to end.
    pub(crate) leaving: Option<Leaving>,
}

/// Data of a task that has begun to end, and can be read only then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving {
    pub(crate) time_ns: u64,
    /// None if the process has always had one task and no children: its status is known when it is reaped.
    pub(crate) status: Option<u32>,
    /// Usage of a leader, which another thread may replace, so that its end is never reported.
    pub(crate) usage: Option<Usage>,
    pub(crate) io: Option<Io>,
    /// Times that it had left its CPU by itself until then; known of the last task of a process.
    pub(crate) switches: Option<u64>,
    /// Its name, if it is the last task of a process.
    pub(crate) comm: Option<[u8; 16]>,
}

/// A traced process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) parent_tgid: Tid,
    /// Traced tasks.
    pub(crate) tasks: u32,
    /// Number of these that have not begun to end.
    pub(crate) staying: u32,
    /// The task that was the last to begin: its record describes the end of the process.
    pub(crate) last: u32,
    /// The record of that task if it is not the leader, which is reaped after it.
    pub(crate) held: Option<Exit>,
    /// CPU time of the tasks that have ended.
    pub(crate) ended_run_ns: u64,
    /// Its memory at its end.
    pub(crate) memory: LastMemory,
    /// True if it has ever called exec.
    pub(crate) has_executed: bool,
    /// True if it has had children.
    pub(crate) has_forked: bool,
    /// True if another thread has replaced its leader by an exec, so that not all CPU time of that is known.
    pub(crate) has_replaced: bool,
    /// True if it has had threads.
    pub(crate) has_threads: bool,
    /// True if it is in another pid namespace than the tracer.
    pub(crate) is_nested: bool,
    /// The place to which its paths lead, as recorded for it or for an ancestor.
    pub(crate) place: Option<Rc<MountView>>,
    /// Its working directory at the last exec of it or of an ancestor.
    pub(crate) directory: Option<Rc<[u8]>>,
    /// Files of its first task.
    pub(crate) files: Files,
}

/// A mount namespace and a root in it.
#[derive(Debug)]
pub(crate) struct MountView {
    /// Name of the mount namespace, as in /proc/PID/ns/mnt: "mnt:[4026531841]".
    pub(crate) namespace: Vec<u8>,
    pub(crate) root: Vec<u8>,
    /// None if it cannot be asked for.
    pub(crate) root_id: Option<RootId>,
}

impl MountView {
    /// True if it has the same name.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.root == other.root
    }

    /// The inode number of the namespace.
    pub(crate) fn number(&self) -> u32 {
        let digits: Vec<u8> = self.namespace.iter().copied().filter(u8::is_ascii_digit).collect();
        std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

impl Process {
    /// True if it is its first task and nothing else, so that what the kernel counts for one is that of the
    /// other, without children.
    pub(crate) fn has_one_task(&self) -> bool {
        !self.has_threads && !self.has_forked
    }

    /// A process with its first task.
    pub(crate) fn new(parent_tgid: Tid, forker: Option<&Self>) -> Self {
        Self {
            parent_tgid,
            tasks: 1,
            staying: 1,
            last: 0,
            held: None,
            ended_run_ns: 0,
            memory: LastMemory::default(),
            has_executed: false,
            has_forked: false,
            has_replaced: false,
            has_threads: false,
            is_nested: forker.is_some_and(|forker| forker.is_nested),
            place: forker.and_then(|forker| forker.place.clone()),
            directory: forker.and_then(|forker| forker.directory.clone()),
            files: Files::default(),
        }
    }
}

impl TracedTask {
    pub(crate) fn new(serial: u32, process: u32, tgid: Tid, born_ns: u64, comm: [u8; 16]) -> Self {
        Self {
            serial,
            process,
            tgid,
            born_ns,
            comm,
            opens: 0,
            lookups_failed: 0,
            execs_failed: 0,
            first_argument: 0,
            flags_taken: None,
            leaving: None,
        }
    }
}
