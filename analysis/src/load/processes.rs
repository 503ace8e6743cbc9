//! From tasks to processes: when each ended, who could wait for it, what it used.

use proctrace_wire::layout::{EXIT_AUTOREAP, EXIT_PROCESS, EXIT_RELEASED};

use super::Loader;
use crate::recording::process::Task;
use crate::recording::split::divide;
use crate::recording::usage::Usage;

impl Loader<'_> {
    /// Finds who could wait for each process, by the pid that its parent had at its end: pids are
    /// used again, so it must have been alive then.
    pub(super) fn find_reapers(&mut self, parent_pids: &[Option<i32>]) {
        let processes = self.processes.iter().enumerate();
        let mut by_pid: Vec<(i32, u64, u32)> = processes
            .map(|(at, process)| {
                (process.pid, process.born_ns, u32::try_from(at).unwrap_or(u32::MAX))
            })
            .collect();
        by_pid.sort_unstable();
        for (at, parent_pid) in parent_pids.iter().enumerate() {
            let reaper = parent_pid.zip(self.processes[at].ended_ns);
            let reaper = reaper.and_then(|(parent_pid, ended_ns)| {
                // The last of that pid that was there by then.
                let after = by_pid.partition_point(|(pid, born_ns, _)| {
                    (*pid, *born_ns) <= (parent_pid, ended_ns)
                });
                let (pid, _, at) = by_pid.get(after.checked_sub(1)?)?;
                let parent = self.processes.get(*at as usize)?;
                let lives = parent.ended_ns.is_none_or(|gone_ns| gone_ns >= ended_ns);
                (*pid == parent_pid && lives).then_some(*at as usize)
            });
            self.processes[at].set_reaper(reaper);
        }
    }

    /// From the ends of tasks to those of processes. Says what pid the parent of each had then.
    pub(super) fn end_processes(&mut self) -> Vec<Option<i32>> {
        let mut parent_pids = Vec::with_capacity(self.processes.len());
        for process in &mut self.processes {
            let tasks = || process.tasks.iter().map(|task| &self.tasks[*task]);
            if tasks().all(|task| task.ended_ns().is_some() || task.zombie) {
                process.ended_ns = tasks().filter_map(Task::ended_ns).max();
            }
            // Kernels before 6.16 may call several threads the last; the latest is right.
            let last = tasks()
                .filter_map(Task::end)
                .filter(|end| end.record.bits & EXIT_PROCESS != 0)
                .max_by_key(|end| end.time_ns);
            if let Some(last) = &last {
                let record = &last.record;
                process.status = Some(record.status);
                process.autoreaped = record.bits & EXIT_AUTOREAP != 0;
                let waited_ns = record.waited_utime_ns.saturating_add(record.waited_stime_ns);
                process.change_waits(|waits| waits.waited_ns = waited_ns);
                process.maxrss_bytes = record.maxrss_pages.saturating_mul(self.page_bytes);
            }
            parent_pids.push(last.map(|last| last.record.parent_tgid));
        }
        parent_pids
    }

    /// From the tasks' figures to the processes'.
    pub(super) fn sum_up_processes(&mut self) {
        for process in &mut self.processes {
            let tasks = || process.tasks.iter().map(|task| &self.tasks[*task]);
            let used = tasks().fold(Usage::default(), |sum, task| sum.plus(&task.used()));
            process.ticks = used.ticks();
            process.cpu = process
                .tasks
                .iter()
                .map(|task| {
                    let used = self.tasks[*task].used();
                    let share = self.pools.share(process.program);
                    let cpu = divide(used.run_ns, &self.stretches.own(*task), share);
                    self.balance.of_time(cpu)
                })
                .sum();
            let before_ns = tasks()
                .filter_map(Task::before)
                .fold(0, |sum: u64, before| sum.saturating_add(before.run_ns));
            let tail_ns = tasks()
                .filter_map(Task::end)
                .filter(|end| end.record.bits & EXIT_RELEASED != 0)
                .map(|end| end.record.run_ns.saturating_sub(end.record.run_at_exit_ns))
                .fold(0, u64::saturating_add);
            // The end of a process has told it, if there was one.
            if process.status.is_none() {
                process.maxrss_bytes = tasks()
                    .filter_map(|task| Some(task.seen()?.rss_pages))
                    .max()
                    .unwrap_or(0)
                    .saturating_mul(self.page_bytes);
            }
            process.change_waits(|waits| (waits.before_ns, waits.tail_ns) = (before_ns, tail_ns));
        }
    }
}
