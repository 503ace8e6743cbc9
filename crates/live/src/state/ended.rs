//! Processes that have ended lately, and tasks whose look-ups may still come.

use std::collections::VecDeque;

use super::FastMap;
use super::process::Process;

/// Ended processes that are kept.
pub(crate) const PROCESSES_MAX: usize = 1 << 13;

/// The blocks of a stream are written at least once a second, and not much later than those of others.
const LATE_NS: u64 = 10_000_000_000;

/// Ended tasks that are kept: those of ten seconds on a busy machine.
const TASKS_MAX: usize = 1 << 18;

/// What has ended lately, in bounded memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    processes: FastMap<u32, Process>,
    /// When each ended, and its serial.
    order: VecDeque<(u64, u32)>,
    /// Process and program of each task.
    tasks: FastMap<u32, (u32, u32)>,
    tasks_order: VecDeque<(u64, u32)>,
}

impl Ended {
    /// Keeps a process that ended at this time.
    pub(crate) fn add(&mut self, process: Process, time_ns: u64) {
        let due_ns = time_ns.saturating_sub(LATE_NS);
        while let Some((ended_ns, serial)) = self.order.front().copied()
            && (ended_ns < due_ns || self.order.len() >= PROCESSES_MAX)
        {
            self.order.pop_front();
            self.processes.remove(&serial);
        }
        self.order.push_back((time_ns, process.serial));
        self.processes.insert(process.serial, process);
    }

    /// Keeps a task that ended at this time.
    pub(crate) fn add_task(&mut self, task: u32, process: u32, program: u32, time_ns: u64) {
        let due_ns = time_ns.saturating_sub(LATE_NS);
        while let Some((ended_ns, task)) = self.tasks_order.front().copied()
            && (ended_ns < due_ns || self.tasks_order.len() >= TASKS_MAX)
        {
            self.tasks_order.pop_front();
            self.tasks.remove(&task);
        }
        self.tasks_order.push_back((time_ns, task));
        self.tasks.insert(task, (process, program));
    }

    /// Whether some that ended after this time were dropped.
    pub(crate) fn is_cut(&self, time_ns: u64) -> bool {
        self.order.len() >= PROCESSES_MAX
            && self.order.front().is_some_and(|(ended_ns, _)| *ended_ns > time_ns)
    }

    /// The process of an ended task, and the program that it ran.
    pub(crate) fn of_task(&self, task: u32) -> Option<(u32, u32)> {
        self.tasks.get(&task).copied()
    }

    pub(crate) fn get(&self, serial: u32) -> Option<&Process> {
        self.processes.get(&serial)
    }

    pub(crate) fn get_mut(&mut self, serial: u32) -> Option<&mut Process> {
        self.processes.get_mut(&serial)
    }

    /// Those that ended after this time, the last first.
    pub(crate) fn since(&self, time_ns: u64) -> impl Iterator<Item = &Process> {
        let late = self.order.iter().rev().take_while(move |(ended_ns, _)| *ended_ns > time_ns);
        late.filter_map(|(_, serial)| self.processes.get(serial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(serial: u32) -> Process {
        Process { serial, ..Process::default() }
    }

    #[test]
    fn memory_is_bounded_by_number_and_by_time() {
        let mut ended = Ended::default();
        for serial in 0..300_000 {
            ended.add(process(serial), 1);
            ended.add_task(serial, serial, 7, 1);
        }
        assert_eq!((ended.processes.len(), ended.order.len()), (PROCESSES_MAX, PROCESSES_MAX));
        assert_eq!((ended.tasks.len(), ended.tasks_order.len()), (TASKS_MAX, TASKS_MAX));
        assert_eq!((ended.of_task(0), ended.of_task(299_999)), (None, Some((299_999, 7))));
        ended.add(process(1), LATE_NS + 2);
        ended.add_task(1, 1, 7, LATE_NS + 2);
        assert_eq!((ended.processes.len(), ended.tasks.len()), (1, 1));
    }

    #[test]
    fn the_last_come_first() {
        let mut ended = Ended::default();
        for (serial, time_ns) in [(1, 10), (2, 20), (3, 30)] {
            ended.add(process(serial), time_ns);
        }
        let since: Vec<u32> = ended.since(10).map(|process| process.serial).collect();
        assert_eq!(since, [3, 2]);
    }
}
