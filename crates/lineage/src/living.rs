//! The processes and tasks that are alive, and who hangs below whom.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Deref, DerefMut};

use foldhash::fast::RandomState;
use proctrace_wire::layout::{ATTACH_ZOMBIE, Attach, Exit, Fork};

use crate::birth::{Birth, Register, ends_process};

type FastMap<K, V> = HashMap<K, V, RandomState>;

/// PID_MAX_LIMIT of the kernel: a sound trace never has more tasks alive.
const TASKS_MAX: usize = 1 << 22;

/// A process that is alive, or was until its last task ended; it dereferences to what its user adds.
#[derive(Debug, Clone, Default)]
pub struct Process<P> {
    /// Its serial, which is never used again.
    pub serial: u32,
    /// Its thread-group id.
    pub pid: i32,
    /// The process that was its parent when it began, if that is recorded.
    pub born_of: Option<u32>,
    /// Its nearest ancestor that is alive and recorded.
    pub parent: Option<u32>,
    /// The thread-group id of its parent when it began.
    pub parent_pid: i32,
    /// The serials of its children, and of children of those that ended.
    pub children: BTreeSet<u32>,
    /// Its tasks that are alive.
    pub tasks: u32,
    /// Time and wait(2) status of its end.
    pub end: Option<(u64, u32)>,
    /// Further knowledge about it.
    pub more: P,
}

impl<P> Process<P> {
    /// Returns true if its parent was recorded and has ended.
    pub fn is_orphan(&self) -> bool {
        self.born_of != self.parent
    }
}

impl<P> Deref for Process<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.more
    }
}

impl<P> DerefMut for Process<P> {
    fn deref_mut(&mut self) -> &mut P {
        &mut self.more
    }
}

/// The end of a task.
#[derive(Debug, Clone)]
pub struct Exited<P> {
    /// The serial of its process.
    pub process: u32,
    /// The process, if the task was its last.
    pub ended: Option<Process<P>>,
}

/// Result of a record about a process whose birth was lost.
#[derive(Debug, Clone)]
pub struct Told<P> {
    /// True if the process was not known.
    pub is_new: bool,
    /// The process that had stood for it, if this was the last of its tasks.
    pub stood_for_it: Option<Process<P>>,
}

/// All that is alive, with a `P` for each process and a `T` for each task.
#[derive(Debug, Clone, Default)]
pub struct Living<P, T> {
    processes: FastMap<u32, Process<P>>,
    /// The process of each task, and what is known of the task.
    tasks: FastMap<u32, (u32, T)>,
    roots: BTreeSet<u32>,
    /// Serials by pid.
    pids: FastMap<i32, u32>,
    /// Attached processes whose parent may be attached later, by its pid.
    waiting: FastMap<i32, Vec<u32>>,
    untracked: u64,
    is_flat: bool,
}

impl<P, T> Register for Living<P, T> {
    type Process = u32;

    fn process(&self, serial: u32) -> Option<u32> {
        self.processes.contains_key(&serial).then_some(serial)
    }

    fn alive(&self, pid: i32) -> Option<u32> {
        self.pids.get(&pid).copied()
    }
}

impl<P: Default, T: Default> Living<P, T> {
    /// A register of processes and tasks alone, which does not keep who hangs below whom.
    pub fn flat() -> Self {
        Self { is_flat: true, ..Self::default() }
    }

    /// Number of processes.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Tasks that are left out, because there are more than a kernel can have.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// The processes without a recorded parent that is alive.
    pub fn roots(&self) -> &BTreeSet<u32> {
        &self.roots
    }

    /// All processes, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Process<P>> {
        self.processes.values()
    }

    /// The process with this serial.
    pub fn get(&self, serial: u32) -> Option<&Process<P>> {
        self.processes.get(&serial)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, serial: u32) -> Option<&mut Process<P>> {
        self.processes.get_mut(&serial)
    }

    /// Knowledge about the task with this serial, and its process.
    pub fn task_mut(&mut self, serial: u32) -> Option<(&mut T, &mut Process<P>)> {
        let (process, more) = self.tasks.get_mut(&serial)?;
        Some((more, self.processes.get_mut(process)?))
    }

    /// Adds a task that was there before.
    pub fn attach(&mut self, attach: &Attach, process: P, task: T) -> Birth<u32> {
        let birth = Birth::of_attach(attach, self);
        let (serial, pids) = (attach.head.task, (attach.tgid, attach.parent_tgid));
        // A leader that ended before its threads has no exit record.
        let task = (attach.bits & ATTACH_ZOMBIE == 0).then_some(task);
        if self.add(serial, birth, pids, process, task) && !self.is_flat {
            self.join_attached(serial);
        }
        birth
    }

    /// Adds a task that is born now; `process` is told the forker's process if it is known.
    pub fn fork(
        &mut self,
        fork: &Fork,
        process: impl FnOnce(Option<&mut Process<P>>) -> P,
        task: T,
    ) -> Birth<u32> {
        let birth = Birth::of_fork(fork, self);
        let process = match birth {
            Birth::Thread(_) => P::default(),
            Birth::Process { .. } => process(self.processes.get_mut(&fork.process)),
        };
        self.add(fork.child, birth, (fork.child_tgid, fork.parent_tgid), process, Some(task));
        birth
    }

    /// Takes it from a record that this task is of this process: one whose birth was lost, or which stood for its process
    /// until now, as nothing was known of that.
    pub fn add_unborn(&mut self, process: u32, pid: i32, task: u32) -> Told<P> {
        let is_known = self.processes.contains_key(&process);
        let birth = Birth::Process { parent: None, forker: None };
        let is_new = !is_known && self.add(process, birth, (pid, 0), P::default(), None);
        let mut stood_for_it = None;
        if (is_known || is_new) && self.tasks.len() < TASKS_MAX {
            let more = self.tasks.get_mut(&task).map(|(_, more)| std::mem::take(more));
            stood_for_it = self.add_task(task, process, more.unwrap_or_default());
        }
        Told { is_new, stood_for_it }
    }

    /// Removes a task, and its process with the last; `None` if it is not known.
    pub fn exit(&mut self, exit: &Exit) -> Option<Exited<P>> {
        let (process, _) = self.tasks.remove(&exit.head.task)?;
        let known = self.processes.get_mut(&process)?;
        known.tasks = known.tasks.saturating_sub(1);
        let is_last = known.tasks == 0;
        let known_ns = known.end.map(|(end_ns, _)| end_ns);
        // The record that claims to be that of the last may be lost.
        if ends_process(exit, known_ns) || (is_last && known_ns.is_none()) {
            known.end = Some((exit.head.time_ns, exit.status));
        }
        let ended = if is_last { self.remove(process) } else { None };
        Some(Exited { process, ended })
    }

    /// Adds what is born; returns true if that is a process. Only in a hostile trace, there is one of its serial, or no
    /// room for another.
    fn add(
        &mut self,
        serial: u32,
        birth: Birth<u32>,
        (pid, parent_pid): (i32, i32),
        more: P,
        task: Option<T>,
    ) -> bool {
        if self.tasks.len() >= TASKS_MAX || self.processes.len() >= TASKS_MAX {
            self.untracked = self.untracked.saturating_add(1);
            return false;
        }
        let mut is_new = false;
        if let Birth::Process { parent, .. } = birth
            && !self.processes.contains_key(&serial)
        {
            is_new = true;
            if !self.is_flat {
                self.siblings(parent).insert(serial);
            }
            self.pids.insert(pid, serial);
            let born_of = parent;
            let born =
                Process { serial, pid, born_of, parent, parent_pid, more, ..Process::default() };
            self.processes.insert(serial, born);
        }
        if let Some(task) = task {
            self.add_task(serial, birth.process(serial), task);
        }
        is_new
    }

    /// Makes a task one of a process; returns the process that it was the last task of until now.
    fn add_task(&mut self, serial: u32, process: u32, more: T) -> Option<Process<P>> {
        let before = self.tasks.insert(serial, (process, more)).map(|(before, _)| before);
        if before == Some(process) {
            return None;
        }
        if let Some(process) = self.processes.get_mut(&process) {
            process.tasks = process.tasks.saturating_add(1);
        }
        let left = self.processes.get_mut(&before?)?;
        left.tasks = left.tasks.saturating_sub(1);
        let (serial, is_last) = (left.serial, left.tasks == 0);
        if is_last { self.remove(serial) } else { None }
    }

    /// The children of a process, or the roots.
    fn siblings(&mut self, parent: Option<u32>) -> &mut BTreeSet<u32> {
        match parent.and_then(|parent| self.processes.get_mut(&parent)) {
            Some(parent) => &mut parent.children,
            None => &mut self.roots,
        }
    }

    /// Removes a process; its children become those of its parent.
    fn remove(&mut self, serial: u32) -> Option<Process<P>> {
        let process = self.processes.remove(&serial)?;
        if self.pids.get(&process.pid) == Some(&serial) {
            self.pids.remove(&process.pid);
        }
        if self.is_flat {
            return Some(process);
        }
        if let Some(waiting) = self.waiting.get_mut(&process.parent_pid) {
            waiting.retain(|waits| *waits != serial);
            if waiting.is_empty() {
                self.waiting.remove(&process.parent_pid);
            }
        }
        for child in &process.children {
            if let Some(child) = self.processes.get_mut(child) {
                child.parent = process.parent;
            }
        }
        let siblings = self.siblings(process.parent);
        siblings.remove(&serial);
        siblings.extend(&process.children);
        Some(process)
    }

    /// Joins an attached process with children that were attached before it.
    fn join_attached(&mut self, serial: u32) {
        let Some(&Process { pid, parent_pid, parent, .. }) = self.processes.get(&serial) else {
            return;
        };
        if parent.is_none() {
            self.waiting.entry(parent_pid).or_default().push(serial);
        }
        let Some(waiting) = self.waiting.remove(&pid) else { return };
        let above = self.top_of(serial);
        for child in waiting {
            // Only a hostile trace makes a process its own ancestor.
            if child != above
                && let Some(known) = self.processes.get_mut(&child)
                && self.roots.remove(&child)
            {
                (known.parent, known.born_of) = (Some(serial), Some(serial));
                self.siblings(Some(serial)).insert(child);
            }
        }
    }

    /// The ancestor without parent.
    fn top_of(&self, mut serial: u32) -> u32 {
        while let Some(parent) = self.get(serial).and_then(|process| process.parent) {
            serial = parent;
        }
        serial
    }
}
