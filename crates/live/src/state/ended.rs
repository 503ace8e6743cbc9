//! Processes that have ended lately, and tasks whose look-ups may still come.

use std::collections::VecDeque;

use super::FastMap;
use super::process::Process;

/// Ended processes that are kept.
pub(crate) const PROCESSES_MAX: usize = 1 << 13;

/// The time for which is kept what has ended. Look-ups and samples are in other streams than ends; a recorder
/// writes all of them at least once a second, but one that is behind writes later.
const LATE_NS: u64 = 10_000_000_000;

/// Children of an ended process that are kept.
const CHILDREN_MAX: usize = 64;

/// Bytes of each string of an ended process that are kept.
const STRING_MAX: usize = 1024;

/// Ended tasks that are kept: those of ten seconds on a busy machine.
const TASKS_MAX: usize = 1 << 18;

/// Processes and tasks that have ended lately, in bounded memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    processes: FastMap<u32, Process>,
    /// End of each, and its serial; the first that ended comes first.
    order: VecDeque<(u64, u32)>,
    /// The latest end of those that were dropped to make room.
    dropped_ns: u64,
    /// Process and program of each task.
    tasks: FastMap<u32, (u32, u32)>,
    tasks_order: VecDeque<(u64, u32)>,
}

impl Ended {
    /// Keeps a process that ended at this time. Ends need not come in order of time: large records of one CPU
    /// are read after smaller ones of others.
    pub(crate) fn add(&mut self, mut process: Process, time_ns: u64) {
        // Those that came first.
        if let Some(first_left) = process.children.iter().nth(CHILDREN_MAX).copied() {
            process.children.split_off(&first_left);
        }
        process.shrink(STRING_MAX);
        let at = self.order.partition_point(|(ended_ns, _)| *ended_ns <= time_ns);
        self.order.insert(at, (time_ns, process.serial));
        self.processes.insert(process.serial, process);
        let due_ns = self.order.back().map_or(0, |(last_ns, _)| last_ns.saturating_sub(LATE_NS));
        while let Some((ended_ns, serial)) = self.order.front().copied()
            && (ended_ns < due_ns || self.order.len() > PROCESSES_MAX)
        {
            if ended_ns >= due_ns {
                self.dropped_ns = self.dropped_ns.max(ended_ns);
            }
            self.order.pop_front();
            self.processes.remove(&serial);
        }
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

    /// Returns whether some that ended after this time were dropped.
    pub(crate) fn is_cut(&self, time_ns: u64) -> bool {
        self.dropped_ns > time_ns
    }

    /// The process of an ended task, and the program that it ran then.
    pub(crate) fn of_task(&self, task: u32) -> Option<(u32, u32)> {
        self.tasks.get(&task).copied()
    }

    pub(crate) fn get(&self, serial: u32) -> Option<&Process> {
        self.processes.get(&serial)
    }

    pub(crate) fn get_mut(&mut self, serial: u32) -> Option<&mut Process> {
        self.processes.get_mut(&serial)
    }

    /// Processes that ended after this time, the last first.
    pub(crate) fn since(&self, time_ns: u64) -> impl Iterator<Item = &Process> {
        let late = self.order.iter().rev().take_while(move |(ended_ns, _)| *ended_ns > time_ns);
        late.filter_map(|(_, serial)| self.processes.get(serial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::process::CommandLine;

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
    fn the_last_come_first_in_whatever_order_they_are_told() {
        let mut ended = Ended::default();
        for (serial, time_ns) in [(1, 10), (3, 30), (2, 20)] {
            ended.add(process(serial), time_ns);
        }
        let since =
            |time_ns| ended.since(time_ns).map(|process| process.serial).collect::<Vec<_>>();
        assert_eq!((since(10), since(20)), (vec![3, 2], vec![3]));
        assert!(!ended.is_cut(0));
    }

    #[test]
    fn what_is_dropped_for_its_number_is_told() {
        let mut ended = Ended::default();
        for serial in 0..PROCESSES_MAX as u32 {
            ended.add(process(serial), 100);
        }
        assert!(!ended.is_cut(0));
        // The first that ended goes, not the first that was told.
        ended.add(process(1 << 20), 50);
        assert!((ended.is_cut(49), ended.is_cut(50)) == (true, false));
        assert!(ended.get(0).is_some() && ended.get(1 << 20).is_none());
    }

    #[test]
    fn a_large_process_is_kept_in_part() {
        let mut large = process(1);
        large.children = (0..100_000).collect();
        let path = vec![b'x'; 100_000];
        let command = CommandLine {
            path: path.clone(),
            exe: path.clone(),
            cwd: path.clone(),
            argv: path,
            ..CommandLine::default()
        };
        large.command = Some(Box::new(command));
        let mut ended = Ended::default();
        ended.add(large, 1);
        let kept = ended.get(1).unwrap();
        assert_eq!(kept.children.len(), CHILDREN_MAX);
        let command = kept.command.as_ref().unwrap();
        for string in [&command.path, &command.exe, &command.cwd, &command.argv] {
            assert!((STRING_MAX..STRING_MAX + 8).contains(&string.len()), "{}", string.len());
        }
        assert!(command.is_cut);
        assert!(command.path.ends_with("x…".as_bytes()));
    }
}
