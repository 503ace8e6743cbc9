//! The walk backwards in time: from a task to whoever it waited for, and from its birth to its forker.

use proctrace_classify::fast::FastMap;
use proctrace_recording::Recording;
use proctrace_recording::polls::Role;
use proctrace_recording::waits::{Wait, Waker, indices_of};
use proctrace_wire::WaitFor;

use super::{Doing, Part, number};

/// The parts from `begin_ns` to `end_ns`, in order of time, of the chain that ends with a task.
pub(super) fn back(recording: &Recording, last: u32, begin_ns: u64, end_ns: u64) -> Vec<Part> {
    let mut walk = Walk {
        recording,
        begin_ns,
        now_ns: end_ns,
        task: last,
        visited_at_ns: FastMap::default(),
        forkers: FastMap::default(),
        parts: Vec::new(),
    };
    while walk.now_ns > begin_ns {
        walk.step();
    }
    walk.parts.reverse();
    walk.parts
}

/// Position of the walk: everything after `now_ns` is explained.
///
/// A step either goes back in time or to another task at the same time. The latter happens at most
/// once for a task and a time, so that the walk ends even if tasks claim to have woken each other in the
/// same instant.
struct Walk<'a> {
    recording: &'a Recording,
    begin_ns: u64,
    now_ns: u64,
    task: u32,
    /// Time at which each task was last left for its waker.
    visited_at_ns: FastMap<u32, u64>,
    /// The tasks to which the walk went instead of tasks that were not born yet when it came to
    /// them.
    forkers: FastMap<u32, u32>,
    /// Parts from the last to the first.
    parts: Vec<Part>,
}

impl Walk<'_> {
    fn step(&mut self) {
        self.task = self.alive();
        let born_ns = self.born_ns(self.task);
        if born_ns >= self.now_ns {
            // The command itself, in a recording whose first record is of another task.
            return self.spend(Doing::Running, self.begin_ns);
        }
        match self.latest_wait() {
            Some((at, wait)) if wait.until_ns() >= self.now_ns => {
                self.go_through(at, &wait, born_ns)
            }
            Some((_, wait)) => self.spend(Doing::Running, wait.until_ns().max(born_ns)),
            None => self.spend(Doing::Running, born_ns),
        }
    }

    /// The walk is after the beginning of a wait, and not after its end.
    fn go_through(&mut self, at: usize, wait: &Wait, born_ns: u64) {
        let woken_ns = match (wait.waits_for, wait.waker()) {
            (WaitFor::Cpu, _) => wait.since_ns(),
            // When it was woken is not known either.
            (_, Waker::Unknown) => wait.until_ns(),
            _ => wait.woken_ns(),
        };
        if self.now_ns > woken_ns {
            return self.spend(Doing::WaitingForCpu, woken_ns.max(born_ns));
        }
        // Usually at `woken_ns`; earlier only if the clocks of two CPUs differ, or if the trace is
        // inconsistent. What the waker did until now explains the rest of the sleep all the same.
        let from = match wait.waker() {
            Waker::Task(waker) => Some(waker),
            // What the timer adds to the life of the child is a sleep.
            Waker::Interrupt => match self.recording.polls().role(self.recording, at) {
                Some(Role::Ends(_, ended_ns)) if ended_ns < self.now_ns => {
                    let since_ns = ended_ns.max(wait.since_ns()).max(born_ns);
                    return self.spend(Doing::Waiting(wait.waits_for), since_ns);
                }
                Some(Role::Ends(child, _)) => Some(child),
                _ => None,
            },
            _ => None,
        };
        match from {
            Some(from) if from != self.task && self.may_leave() => self.task = from,
            _ => self.spend(Doing::Waiting(wait.waits_for), wait.since_ns().max(born_ns)),
        }
    }

    /// Adds what the task did from `since_ns`, which is before now, and goes there.
    fn spend(&mut self, doing: Doing, since_ns: u64) {
        let begin_ns = since_ns.max(self.begin_ns);
        self.parts.push(Part { task: self.task, doing, begin_ns, end_ns: self.now_ns });
        self.now_ns = begin_ns;
    }

    /// Returns true the first time the walk leaves this task at this time, and notes that it does.
    fn may_leave(&mut self) -> bool {
        self.visited_at_ns.insert(self.task, self.now_ns) != Some(self.now_ns)
    }

    /// The latest wait of the task that began before now, and its index. Waits that overlap, which no task has, may
    /// hide others.
    fn latest_wait(&self) -> Option<(usize, Wait)> {
        let all = self.recording.waits().unwrap_or_default();
        let of_task = indices_of(all, self.task);
        let waits = &all[of_task.clone()];
        let ended = waits.partition_point(|wait| wait.until_ns() < self.now_ns);
        let is_current = waits.get(ended).is_some_and(|wait| wait.since_ns() < self.now_ns);
        let at = if is_current { ended } else { ended.checked_sub(1)? };
        Some((of_task.start + at, waits[at]))
    }

    /// The task, or the nearest of its ancestors that was born before now; if none was, the first task.
    ///
    /// Time only decreases, so that an ancestor passed once need not be looked at again.
    fn alive(&mut self) -> u32 {
        let mut passed = Vec::new();
        let mut task = self.task;
        while task != 0 && self.born_ns(task) >= self.now_ns {
            passed.push(task);
            task = self.forkers.get(&task).copied().unwrap_or_else(|| self.forker(task));
        }
        self.forkers.extend(passed.into_iter().map(|passed| (passed, task)));
        task
    }

    /// The forker of a task. If it is not known, the command: all tasks descend from it. Only a broken
    /// trace has a forker that was added after the task.
    fn forker(&self, task: u32) -> u32 {
        let forker = self.recording.forker_of(task as usize).map(number);
        forker.filter(|forker| *forker < task).unwrap_or(0)
    }

    fn born_ns(&self, task: u32) -> u64 {
        self.recording.tasks()[task as usize].born_ns
    }
}
