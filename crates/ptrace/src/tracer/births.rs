//! Births of tasks.

use proctrace_wire::layout::{Attach, Fork};
use proctrace_wire::{Call, Kind, Stream};
use zerocopy::FromZeros;

use super::Tracer;
use crate::arch::Registers;
use crate::process::{Process, TracedTask};
use crate::procfs::{self, Kin};
use crate::records::{assemble, head};
use crate::sys::{self, Go, Tid};

/// The lower byte of the flags of clone(2).
const SIGNAL_BITS: u64 = 0xff;
const CLONE_VFORK_AND_VM: u64 = (libc::CLONE_VFORK | libc::CLONE_VM) as u64;
const CLONE_THREAD: u64 = libc::CLONE_THREAD as u64;
const CLONE_NEWPID: u64 = libc::CLONE_NEWPID as u64;
const CLONE_PARENT: u64 = libc::CLONE_PARENT as u64;

/// Way in which a task was created.
#[derive(Debug, Clone, Copy)]
struct Way {
    call: Call,
    /// CLONE_* without the exit signal.
    flags: u64,
    exit_signal: i16,
    /// True if the new task may be in another pid namespace than its creator.
    may_be_elsewhere: bool,
}

impl Way {
    /// Way of a creation, from the registers of the forker, which is still in the call.
    fn of(forker: Tid, event: i32) -> Self {
        let sigchld = libc::SIGCHLD as u64;
        let of_event = match event {
            libc::PTRACE_EVENT_VFORK => CLONE_VFORK_AND_VM,
            _ => 0,
        };
        let Some(registers) = Registers::of(forker) else {
            return Self::new(Call::Unknown, of_event, sigchld);
        };
        let call = registers.birth();
        match call {
            Call::Clone => {
                // The flags of 32-bit programs fit, too; the kernel uses 32 bits.
                let argument = registers.argument(0) & 0xffff_ffff;
                Self::new(call, argument & !SIGNAL_BITS, argument & SIGNAL_BITS)
            }
            Call::Clone3 => {
                // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal.
                let mut arguments = [0; 40];
                let read = sys::read_memory(forker, registers.argument(0), &mut arguments);
                let word = |at: usize| {
                    arguments[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or(0)
                };
                match read {
                    40 => Self::new(call, word(0), word(32)),
                    _ => Self::new(call, of_event, sigchld),
                }
            }
            Call::Vfork => Self::new(call, CLONE_VFORK_AND_VM, sigchld),
            call => Self::new(call, of_event, sigchld),
        }
    }

    fn new(call: Call, flags: u64, signal: u64) -> Self {
        // A thread sends none.
        let exit_signal = if flags & CLONE_THREAD != 0 { -1 } else { signal as i16 & 0xff };
        Self { call, flags, exit_signal, may_be_elsewhere: true }
    }
}

impl Tracer<'_> {
    /// A task has created another, which has not run yet. Both go on as soon as what only a stopped task
    /// tells is known.
    pub(super) fn born(&mut self, forker: Tid, event: i32) {
        let now = self.now();
        let child = sys::event_message(forker).ok().and_then(|tid| Tid::try_from(tid).ok());
        // If it was killed, the message was its exit status, and the child will be found without it.
        let child = child.filter(|_| !sys::has_moved_on(forker, libc::SIGTRAP | event << 8));
        // The child first: its creator usually waits for it.
        if let Some(child) = child
            && let Some(at) = self.early.iter().position(|(tid, _)| *tid == child)
        {
            self.early.swap_remove(at);
            sys::resume(child, Go::On, 0);
        }
        let mut way = child.map(|_| Way::of(forker, event));
        if let Some(way) = &mut way
            && way.flags & (CLONE_THREAD | CLONE_NEWPID) == 0
        {
            way.may_be_elsewhere = self.sends_children_elsewhere(forker);
        }
        // See untraced.rs.
        let waits = self.tasks.get(&forker).is_some_and(|task| task.flags_taken.is_some());
        sys::resume(forker, if waits { Go::ToReturn } else { Go::On }, 0);
        let (Some(child), Some(way)) = (child, way) else { return };
        if let Some(at) = self.settled.iter().position(|tid| *tid == child) {
            self.settled.swap_remove(at);
            return;
        }
        let kin = match way.call {
            // Not known from the call.
            Call::Unknown => procfs::kin(child),
            _ => None,
        };
        let is_thread = match kin {
            Some(kin) => kin.tgid != child,
            None => way.flags & CLONE_THREAD != 0,
        };
        if !self.tasks.contains_key(&child) {
            self.add(forker, child, is_thread, way, now);
        }
    }

    /// A task whose creator was killed before it could report it.
    pub(super) fn born_unreported(&mut self, child: Tid) {
        if self.tasks.contains_key(&child) {
            return;
        }
        let Some(kin) = procfs::kin(child) else { return };
        let is_thread = kin.tgid != child;
        let forker = if is_thread { kin.tgid } else { kin.parent_tgid };
        let way = Way::new(Call::Unknown, if is_thread { CLONE_THREAD } else { 0 }, 17);
        if self.tasks.contains_key(&forker) {
            self.add(forker, child, is_thread, way, self.now());
        } else if !is_thread {
            self.add_stray(child, kin);
        }
    }

    /// Returns true if the process that has created a task is not traced any more.
    pub(super) fn has_lost_its_creator(&self, child: Tid) -> bool {
        procfs::kin(child).is_none_or(|kin| {
            let creator = if kin.tgid == child { kin.parent_tgid } else { kin.tgid };
            !self.tasks.contains_key(&creator)
        })
    }

    fn add(&mut self, forker_tid: Tid, child: Tid, is_thread: bool, way: Way, now: u64) {
        let Some(forker) = self.tasks.get(&forker_tid) else { return };
        let (forker_serial, founder, tgid, comm) =
            (forker.serial, forker.process, forker.tgid, forker.comm);
        let Some(process) = self.processes.get_mut(&founder) else { return };
        let forker_is_nested = process.is_nested;
        let serial = self.next_serial();
        let mut fork = Fork::new_zeroed();
        let Some(process) = self.processes.get_mut(&founder) else { return };
        if is_thread {
            process.tasks += 1;
            process.has_threads = true;
            process.staying += 1;
            fork.parent_tgid = process.parent_tgid;
        } else {
            process.has_forked = true;
            fork.parent_tgid = match way.flags & CLONE_PARENT {
                0 => tgid,
                _ => process.parent_tgid,
            };
            let fresh = Process::new(fork.parent_tgid, Some(&*process));
            self.processes.insert(serial, fresh);
        }
        fork.head = head(Kind::Fork, forker_serial, now);
        (fork.process, fork.tgid, fork.tid) = (founder, tgid, forker_tid);
        fork.child = serial;
        fork.child_process = if is_thread { founder } else { serial };
        fork.child_tgid = if is_thread { tgid } else { child };
        fork.child_tid = child;
        let is_nested =
            forker_is_nested || !is_thread && way.may_be_elsewhere && self.is_elsewhere(child);
        (fork.child_tgid_ns, fork.child_tid_ns) =
            self.ids_in_namespace(child, fork.child_tgid, fork.child_process, is_nested);
        (fork.call, fork.exit_signal, fork.flags) = (way.call as u16, way.exit_signal, way.flags);
        fork.start_ns = now;
        fork.comm = comm;
        let task = TracedTask::new(serial, fork.child_process, fork.child_tgid, now, comm);
        self.tasks.insert(child, task);
        assemble(&mut self.record, &fork, &[]);
        self.write(Stream::Lifecycle);
        if !is_thread {
            self.open_files(serial, child);
        }
    }

    /// Opens the files about a process that has just been born, while it runs.
    pub(super) fn open_files(&mut self, process: u32, tid: Tid) {
        let Some(process) = self.processes.get_mut(&process) else { return };
        if self.with_files >= self.with_files_max {
            return;
        }
        process.files.open(tid);
        self.with_files += u64::from(process.files.are_open());
    }

    /// True if unshare(2) or setns(2) may have changed the namespace of the children of a stopped task. Asking
    /// their creator is cheaper than asking each child, whose directory in /proc the kernel would have to create.
    fn sends_children_elsewhere(&self, forker: Tid) -> bool {
        let Some(task) = self.tasks.get(&forker) else { return true };
        let Some(process) = self.processes.get(&task.process) else { return true };
        let namespace = || match task.tgid == forker {
            true => process.files.link(forker, "ns/pid_for_children"),
            false => procfs::link(forker, "ns/pid_for_children"),
        };
        // Where all descendants are nested, nothing is asked.
        process.is_nested || namespace() != self.own_pid_namespace
    }

    /// True if the pid namespace of a task is not that of the tracer, as far as it may be read.
    fn is_elsewhere(&self, tid: Tid) -> bool {
        let its = procfs::link(tid, "ns/pid");
        its.zip(self.own_pid_namespace.as_ref()).is_some_and(|(its, own)| its != *own)
    }

    /// The ids of a task in its own pid namespace.
    fn ids_in_namespace(
        &mut self,
        tid: Tid,
        tgid: Tid,
        process: u32,
        is_nested: bool,
    ) -> (Tid, Tid) {
        if !is_nested {
            return (tgid, tid);
        }
        if let Some(process) = self.processes.get_mut(&process) {
            process.is_nested = true;
        }
        procfs::kin(tid).map_or((tgid, tid), |kin| (kin.tgid_ns, kin.tid_ns))
    }

    /// A process whose creator is not known any more.
    fn add_stray(&mut self, child: Tid, kin: Kin) {
        let now = self.now();
        let serial = self.next_serial();
        let comm = procfs::Usage::of(child, child).map(|usage| usage.comm).unwrap_or_default();
        let mut attach = Attach::new_zeroed();
        attach.head = head(Kind::Attach, serial, now);
        attach.process = serial;
        (attach.tgid, attach.tid) = (child, child);
        attach.parent_tgid = kin.parent_tgid;
        (attach.tgid_ns, attach.tid_ns) = (kin.tgid_ns, kin.tid_ns);
        attach.start_ns = now;
        attach.comm = comm;
        self.tasks.insert(child, TracedTask::new(serial, serial, child, now, comm));
        self.processes.insert(serial, Process::new(kin.parent_tgid, None));
        assemble(&mut self.record, &attach, &[]);
        self.write(Stream::Lifecycle);
    }
}
