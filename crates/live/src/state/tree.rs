//! The processes that are alive, and their tasks.

use std::collections::BTreeSet;

use proctrace_replay::ticks::{Own, Ticks};
use proctrace_wire::layout::Sample;

use super::FastMap;
use super::counters::Counters;
use super::process::Process;

/// PID_MAX_LIMIT of the kernel: a sound trace never has more tasks alive.
const TASKS_MAX: usize = 1 << 22;

/// Samples that wait for the birth of their task, which another stream has.
const EARLY_MAX: usize = 1 << 12;

/// A task that is alive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) process: u32,
    /// The last reading.
    pub(crate) seen: Counters,
    /// CPU time and ticks that no stretch has used yet.
    pending_run_ns: u64,
    pending: Ticks,
}

impl Task {
    fn new(process: u32, seen: Counters) -> Self {
        Self { process, seen, pending_run_ns: 0, pending: Ticks::default() }
    }

    /// A stretch of at least so much time in ticks, if that has passed since the last.
    fn stretch(&mut self, stretch_ns: u64) -> Own {
        if self.pending.total_ns() < stretch_ns.max(1) {
            return Own::default();
        }
        let (run_ns, ticks) = (self.pending_run_ns, self.pending);
        (self.pending_run_ns, self.pending) = (0, Ticks::default());
        Own { run_ns, ticks, system_ns: run_ns as f64 * ticks.system_share() }
    }
}

/// What a task has used since its last reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Added {
    pub(crate) used: Counters,
    /// The stretch that ended.
    pub(crate) own: Own,
}

/// What lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    processes: FastMap<u32, Process>,
    tasks: FastMap<u32, Task>,
    roots: BTreeSet<u32>,
    /// Serials by pid.
    pids: FastMap<i32, u32>,
    /// Attached processes whose parent may be attached later, by its pid.
    waiting: FastMap<i32, Vec<u32>>,
    early: FastMap<u32, Sample>,
    /// Failed look-ups by task, likewise.
    early_misses: FastMap<u32, u64>,
    /// Tasks that did not fit.
    pub(crate) untracked: u64,
}

impl Tree {
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn roots(&self) -> &BTreeSet<u32> {
        &self.roots
    }

    pub(crate) fn get(&self, serial: u32) -> Option<&Process> {
        self.processes.get(&serial)
    }

    pub(crate) fn get_mut(&mut self, serial: u32) -> Option<&mut Process> {
        self.processes.get_mut(&serial)
    }

    pub(crate) fn task(&self, serial: u32) -> Option<&Task> {
        self.tasks.get(&serial)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// Adds a process below the parent that it names. False if there is one of this serial, which
    /// happens only in a hostile trace, or no room for another.
    pub(crate) fn add(&mut self, process: Process) -> bool {
        if self.processes.contains_key(&process.serial) {
            return false;
        }
        if self.tasks.len() >= TASKS_MAX || self.processes.len() >= TASKS_MAX {
            self.untracked = self.untracked.saturating_add(1);
            return false;
        }
        let siblings = match process.parent.and_then(|parent| self.processes.get_mut(&parent)) {
            Some(parent) => &mut parent.children,
            None => &mut self.roots,
        };
        siblings.insert(process.serial);
        self.pids.insert(process.pid, process.serial);
        self.processes.insert(process.serial, process);
        true
    }

    /// Adds a task to a process; `seen` is what it used before it was recorded. Returns its sample
    /// if that came first.
    pub(crate) fn add_task(&mut self, task: u32, process: u32, seen: Counters) -> Option<Sample> {
        if self.tasks.len() >= TASKS_MAX {
            self.untracked = self.untracked.saturating_add(1);
            return None;
        }
        if self.tasks.insert(task, Task::new(process, seen)).is_none()
            && let Some(process) = self.processes.get_mut(&process)
        {
            process.tasks = process.tasks.saturating_add(1);
        }
        self.early.remove(&task)
    }

    /// Keeps a sample until its task is born.
    pub(crate) fn keep_early(&mut self, sample: Sample) {
        if self.early.len() >= EARLY_MAX {
            self.early.clear();
        }
        self.early.insert(sample.head.task, sample);
    }

    /// Counts a failed look-up of a task that is not born yet; false if there is no room.
    pub(crate) fn keep_early_miss(&mut self, task: u32) -> bool {
        if self.early_misses.len() >= EARLY_MAX && !self.early_misses.contains_key(&task) {
            return false;
        }
        let misses = self.early_misses.entry(task).or_default();
        *misses = misses.saturating_add(1);
        true
    }

    /// The failed look-ups that came before the birth of their task.
    pub(crate) fn take_early_misses(&mut self, task: u32) -> u64 {
        if self.early_misses.is_empty() { 0 } else { self.early_misses.remove(&task).unwrap_or(0) }
    }

    /// Failed look-ups of tasks whose birth has not been seen.
    pub(crate) fn early_misses(&self) -> u64 {
        self.early_misses.values().fold(0, |sum, misses| sum.saturating_add(*misses))
    }

    /// Notes a later reading of a task; returns its process and what was added since the last. At a
    /// sample and at the end, `stretch_ns` is how much time in ticks a stretch needs.
    pub(crate) fn read(
        &mut self,
        task: u32,
        reading: Counters,
        stretch_ns: Option<u64>,
    ) -> Option<(u32, Added)> {
        let task = self.tasks.get_mut(&task)?;
        let later = task.seen.or_later(reading);
        let used = later.since(task.seen);
        task.seen = later;
        task.pending_run_ns = task.pending_run_ns.saturating_add(used.run_ns);
        task.pending = task.pending.plus(used.ticks());
        let own = stretch_ns.map_or(Own::default(), |stretch_ns| task.stretch(stretch_ns));
        Some((task.process, Added { used, own }))
    }

    /// Removes a task. Returns its process, and whether it was the last task of it.
    pub(crate) fn remove_task(&mut self, task: u32) -> Option<(u32, bool)> {
        let task = self.tasks.remove(&task)?;
        let process = self.processes.get_mut(&task.process)?;
        process.tasks = process.tasks.saturating_sub(1);
        Some((task.process, process.tasks == 0))
    }

    /// Removes a process; its children become those of its parent.
    pub(crate) fn remove(&mut self, serial: u32) -> Option<Process> {
        let process = self.processes.remove(&serial)?;
        if self.pids.get(&process.pid) == Some(&serial) {
            self.pids.remove(&process.pid);
        }
        if let Some(waiting) = self.waiting.get_mut(&process.parent_pid) {
            waiting.retain(|waits| *waits != serial);
            if waiting.is_empty() {
                self.waiting.remove(&process.parent_pid);
            }
        }
        let parent = process.parent.filter(|parent| self.processes.contains_key(parent));
        for child in &process.children {
            if let Some(child) = self.processes.get_mut(child) {
                child.parent = parent;
                child.is_orphan = true;
            }
        }
        let siblings = match parent.and_then(|parent| self.processes.get_mut(&parent)) {
            Some(parent) => &mut parent.children,
            None => &mut self.roots,
        };
        siblings.remove(&serial);
        siblings.extend(&process.children);
        Some(process)
    }

    /// The process of this pid.
    pub(crate) fn of_pid(&self, pid: i32) -> Option<u32> {
        self.pids.get(&pid).copied()
    }

    /// Joins an attached process with children that were attached before it.
    pub(crate) fn join_attached(&mut self, serial: u32) {
        let Some((pid, parent_pid, parent)) =
            self.processes.get(&serial).map(|p| (p.pid, p.parent_pid, p.parent))
        else {
            return;
        };
        if parent.is_none() {
            self.waiting.entry(parent_pid).or_default().push(serial);
        }
        let Some(waiting) = self.waiting.remove(&pid) else { return };
        let above = self.top_of(serial);
        for child in waiting {
            // Only a hostile trace makes a process its own ancestor.
            if child == above || !self.roots.remove(&child) {
                continue;
            }
            if let Some(child) = self.processes.get_mut(&child) {
                child.parent = Some(serial);
            }
            if let Some(process) = self.processes.get_mut(&serial) {
                process.children.insert(child);
            }
        }
    }

    /// The ancestor without parent.
    fn top_of(&self, mut serial: u32) -> u32 {
        while let Some(parent) = self.processes.get(&serial).and_then(|process| process.parent) {
            serial = parent;
        }
        serial
    }
}
