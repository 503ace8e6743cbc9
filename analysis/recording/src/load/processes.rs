//! From tasks to processes: when each ended, which process could wait for it, what it used.

use std::sync::{Mutex, PoisonError};

use proctrace_classify::fast::FastSet;
use proctrace_replay::CpuTime;

use super::Loader;
use crate::at_once::with_helpers;
use crate::counts::Totals;
use crate::process::Process;
use crate::split::divide;

impl Loader<'_> {
    /// Keeps who could wait for a process that has just ended: the process that was its parent then, by the pid.
    pub(super) fn note_reaper(&mut self, at: usize, parent_pid: i32) {
        // Even if the parent's end was recorded first: its children are handed on some time after that
        // (exit_notify() in kernel/exit.c). Whoever adopts a child is older than its parent, and cannot have had
        // the same pid.
        let parent = self.made.processes[at].parent();
        let parent = parent.filter(|parent| self.made.processes[*parent].pid == parent_pid);
        self.made.processes[at].set_reaper(parent);
        if parent.is_none() {
            self.adopted.push((at, parent_pid));
        }
    }

    /// Finds the process that could wait for each process, where that is not its parent.
    pub(super) fn find_reapers(&mut self) {
        // A process keeps its pid for life, so the live process with that pid is the one.
        let ended = std::mem::take(&mut self.adopted).into_iter().filter_map(|(at, parent_pid)| {
            let process = &self.made.processes[at];
            Some((at, parent_pid, process.ended_ns().filter(|_| process.reaper().is_none())?))
        });
        let adopted: Vec<_> = ended.collect();
        let wanted: FastSet<i32> = adopted.iter().map(|(_, parent_pid, _)| *parent_pid).collect();
        let processes = self.made.processes.iter().enumerate();
        let mut by_pid: Vec<(i32, u64, usize)> = processes
            .filter(|(_, process)| wanted.contains(&process.pid))
            .map(|(at, process)| (process.pid, process.born_ns, at))
            .collect();
        by_pid.sort_unstable();
        for (at, parent_pid, ended_ns) in adopted {
            // The last process with that pid born by then.
            let after = by_pid
                .partition_point(|(pid, born_ns, _)| (*pid, *born_ns) <= (parent_pid, ended_ns));
            let last = after.checked_sub(1).and_then(|last| by_pid.get(last));
            let reaper = last.filter(|(pid, _, reaper)| {
                *pid == parent_pid && lives(&self.made.processes[*reaper], ended_ns)
            });
            self.made.processes[at].set_reaper(reaper.map(|(.., reaper)| *reaper));
        }
    }

    /// Derives the ends of processes from those of their tasks.
    pub(super) fn end_processes(&mut self) {
        for process in &mut self.made.processes {
            let (mut all_ended, mut ended_ns) = (true, None);
            for task in process.tasks().map(|task| &self.made.tasks[task]) {
                let task_ended_ns = task.ended_ns();
                all_ended &= task_ended_ns.is_some() || task.zombie;
                ended_ns = ended_ns.max(task_ended_ns);
            }
            process.set_ended_ns(ended_ns.filter(|_| all_ended));
            if process.ended_ns().is_none() {
                process.set_reaper(None);
            }
        }
    }

    /// Sums the counters of tasks per process, on all cores.
    pub(super) fn sum_up_processes(&mut self) {
        let mut processes = std::mem::take(&mut self.made.processes);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let part = processes.len().div_ceil(cores).max(PART_MIN);
        let this = &*self;
        let threads = processes.len().div_ceil(part).saturating_sub(1);
        let parts = Mutex::new(processes.chunks_mut(part));
        let totals = Mutex::new(Totals::default());
        let work = || {
            let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(part) = next() {
                let of_part = this.sum_up(part);
                let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                *totals = totals.plus(&of_part);
            }
        };
        with_helpers(threads, work, || ());
        let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.made.processes, self.made.totals) = (processes, totals);
    }

    fn sum_up(&self, processes: &mut [Process]) -> Totals {
        let mut totals = Totals::default();
        for process in processes {
            let mut cpu = CpuTime::default();
            let (mut before_ns, mut tail_ns) = (0_u64, 0_u64);
            let share = self.pools.share(process.program());
            for at in process.tasks() {
                let task = &self.made.tasks[at];
                totals.add(task);
                let (run_ns, _) = task.cpu_used();
                cpu += self.balance.of_time(divide(run_ns, &self.stretches.own(at), share));
                before_ns = before_ns.saturating_add(task.before().map_or(0, |used| used.run_ns));
                tail_ns = tail_ns.saturating_add(task.tail_ns());
            }
            process.cpu = cpu;
            process.change_waits(|waits| (waits.before_ns, waits.tail_ns) = (before_ns, tail_ns));
        }
        totals
    }
}

/// Minimum size of a part: a small recording starts no thread.
const PART_MIN: usize = 1 << 14;

/// Returns whether the process had not ended before that time.
fn lives(process: &Process, at_ns: u64) -> bool {
    process.ended_ns().is_none_or(|ended_ns| ended_ns >= at_ns)
}
