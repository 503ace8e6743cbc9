//! The tasks of all jobs: to which job each belongs, and its serial there.

use foldhash::{HashMap, HashMapExt};

/// A task that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its job.
    pub(crate) group: u32,
    /// Its serial in the trace of the job.
    pub(crate) serial: u32,
    /// That of its process.
    pub(crate) process: u32,
    /// The letter of its state, as last sampled.
    pub(crate) state: u16,
}

/// The tasks by the serials that the kernel's programs gave them. Those that have ended stay for one more
/// interval between flushes: look-ups come through another ring than exits, and later.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    alive: HashMap<u32, Task>,
    ended: HashMap<u32, Task>,
    ended_before: HashMap<u32, Task>,
}

impl Tasks {
    pub(crate) fn insert(&mut self, serial: u32, task: Task) -> Option<Task> {
        self.alive.insert(serial, task)
    }

    pub(crate) fn get(&self, serial: u32) -> Option<Task> {
        let ended = || self.ended.get(&serial).or_else(|| self.ended_before.get(&serial));
        self.alive.get(&serial).or_else(ended).copied()
    }

    /// The same task if it has not ended.
    pub(crate) fn alive(&self, serial: u32) -> Option<Task> {
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
    }

    /// Forgets all tasks of a job.
    pub(crate) fn forget_job(&mut self, group: u32) {
        for tasks in [&mut self.alive, &mut self.ended, &mut self.ended_before] {
            tasks.retain(|_, task| task.group != group);
        }
    }

    /// The tasks that are alive.
    pub(crate) fn all_alive(&self) -> impl Iterator<Item = &Task> {
        self.alive.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(group: u32) -> Task {
        Task { group, serial: 1, process: 1, state: u16::from(b'S') }
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
