//! The tasks of all jobs: to which job each belongs, and its serial there.

use foldhash::{HashMap, HashMapExt};

/// A task that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobTask {
    /// Its job.
    pub(crate) group: u32,
    /// Its serial in the trace of the job.
    pub(crate) serial: u32,
    /// The serial of its process.
    pub(crate) process: u32,
    /// The letter of its state, as last sampled.
    pub(crate) state: u16,
    /// Since when it belongs to the job, if it was in another one before; otherwise 0.
    pub(crate) since_ns: u64,
}

/// The tasks by the serials that the kernel's programs gave them. Those that have ended stay for one more
/// interval between flushes: look-ups come through another ring than exits, and later.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    alive: HashMap<u32, JobTask>,
    ended: HashMap<u32, JobTask>,
    ended_before: HashMap<u32, JobTask>,
    /// State of tasks in the jobs that they have left, for as long.
    left: HashMap<u32, JobTask>,
    left_before: HashMap<u32, JobTask>,
}

impl Tasks {
    pub(crate) fn insert(&mut self, serial: u32, task: JobTask) -> Option<JobTask> {
        self.alive.insert(serial, task)
    }

    pub(crate) fn get(&self, serial: u32) -> Option<JobTask> {
        let ended = || self.ended.get(&serial).or_else(|| self.ended_before.get(&serial));
        self.alive.get(&serial).or_else(ended).copied()
    }

    /// The task as it was at this time: records of another ring than that of its birth may be older than its
    /// move to another job.
    pub(crate) fn at(&self, serial: u32, time_ns: u64) -> Option<JobTask> {
        let task = self.get(serial)?;
        if time_ns >= task.since_ns {
            return Some(task);
        }
        let left = self.left.get(&serial).or_else(|| self.left_before.get(&serial));
        Some(left.copied().unwrap_or(task))
    }

    /// A task goes on in another job.
    pub(crate) fn leave(&mut self, serial: u32) {
        if let Some(task) = self.alive.get(&serial) {
            self.left.insert(serial, *task);
        }
    }

    /// The same task if it has not ended.
    pub(crate) fn alive(&self, serial: u32) -> Option<JobTask> {
        self.alive.get(&serial).copied()
    }

    pub(crate) fn set_state(&mut self, serial: u32, state: u16) {
        if let Some(task) = self.alive.get_mut(&serial) {
            task.state = state;
        }
    }

    /// Marks it as ended; false if it had ended before, or was never seen.
    pub(crate) fn end(&mut self, serial: u32) -> bool {
        let Some(task) = self.alive.remove(&serial) else { return false };
        self.ended.insert(serial, task);
        true
    }

    /// Forgets those that ended before the last call.
    pub(crate) fn forget_ended(&mut self) {
        self.ended_before = std::mem::replace(&mut self.ended, HashMap::new());
        self.left_before = std::mem::replace(&mut self.left, HashMap::new());
    }

    /// Forgets all tasks of a job.
    pub(crate) fn forget_job(&mut self, group: u32) {
        let former = [&mut self.left, &mut self.left_before];
        let tasks = [&mut self.alive, &mut self.ended, &mut self.ended_before];
        for tasks in tasks.into_iter().chain(former) {
            tasks.retain(|_, task| task.group != group);
        }
    }

    /// The tasks that are alive.
    pub(crate) fn all_alive(&self) -> impl Iterator<Item = &JobTask> {
        self.alive.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(group: u32) -> JobTask {
        JobTask { group, serial: 1, process: 1, state: u16::from(b'S'), since_ns: 0 }
    }

    #[test]
    fn a_task_that_has_ended_is_known_for_two_flushes() {
        let mut tasks = Tasks::default();
        tasks.insert(7, task(1));
        assert!(tasks.end(7));
        assert!(!tasks.end(7));
        assert_eq!((tasks.get(7), tasks.alive(7)), (Some(task(1)), None));
        tasks.forget_ended();
        assert_eq!(tasks.get(7), Some(task(1)));
        tasks.forget_ended();
        assert_eq!(tasks.get(7), None);
    }

    #[test]
    fn records_from_before_a_move_belong_to_the_job_before() {
        let mut tasks = Tasks::default();
        tasks.insert(7, task(1));
        tasks.leave(7);
        tasks.insert(7, JobTask { since_ns: 100, ..task(2) });
        for _ in 0..2 {
            let groups = [99, 100].map(|time_ns| tasks.at(7, time_ns).map(|task| task.group));
            assert_eq!(groups, [Some(1), Some(2)]);
            tasks.forget_ended();
        }
        assert_eq!(tasks.at(7, 99).map(|task| task.group), Some(2));
        assert_eq!(tasks.at(8, 99), None);
    }

    #[test]
    fn the_tasks_of_a_job_are_forgotten_together() {
        let mut tasks = Tasks::default();
        for (serial, group) in [(1, 1), (2, 2), (3, 1)] {
            tasks.insert(serial, task(group));
        }
        tasks.end(3);
        tasks.forget_job(1);
        assert_eq!([1, 2, 3].map(|serial| tasks.get(serial).is_some()), [false, true, false]);
        assert_eq!(tasks.all_alive().count(), 1);
    }
}
