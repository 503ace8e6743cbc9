//! Membership of each process in the command's tree, where a sampler finds it, and the time for
//! which the CPU time it used is counted there.

use std::collections::HashMap;

use proctrace_classify::sparse::Sparse;

use crate::Recording;
use crate::process::Process;
use crate::task::Task;

/// A time per process that is the same for nearly all; only exceptions take memory.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    usual_ns: u64,
    len: usize,
    /// The exceptions, with the index of their process.
    pub(crate) others: Sparse<u64>,
}

/// Never, of any process.
impl Default for Times {
    fn default() -> Self {
        Self::usually(u64::MAX)
    }
}

impl Times {
    fn usually(usual_ns: u64) -> Self {
        Self { usual_ns, len: 0, others: Sparse::default() }
    }

    fn push(&mut self, time_ns: u64) {
        if time_ns != self.usual_ns {
            self.others.push(self.len, time_ns);
        }
        self.len += 1;
    }

    #[inline]
    pub(crate) fn of(&self, process: usize) -> u64 {
        self.others.get(process).copied().unwrap_or(self.usual_ns)
    }
}

#[cfg(test)]
impl<const N: usize> PartialEq<[u64; N]> for Times {
    fn eq(&self, times: &[u64; N]) -> bool {
        (0..self.len).map(|at| self.of(at)).eq(times.iter().copied())
    }
}

/// Time at which each process, and the CPU time it used, becomes invisible.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// Time at which a live process stops being a descendant of the command, because an ancestor
    /// has ended and a process outside the tree has adopted it; `u64::MAX`: it stays until it ends.
    pub(crate) leaves_ns: Times,
    /// Time at which its CPU time drops out of the counters of all members, its own as well as
    /// those of the process that waited for it; `u64::MAX`: never. An ended child is assumed to be
    /// waited for at once.
    pub(crate) forgotten_ns: Times,
    /// Time until which its CPU time is in no counter found by following
    /// /proc/PID/task/PID/children alone. That file lists the children of the main thread, so
    /// children of other threads and their descendants are not found. 0: visible from birth.
    pub(crate) hidden_until_ns: Times,
}

impl Membership {
    /// Builds the membership of all processes. If `launched`, the first process is the command;
    /// otherwise every process without a recorded parent is the root of a tree.
    ///
    /// A parent first seen after its child, which happens only if both predate the recording,
    /// counts as outside the tree: this rules out cycles, whatever a trace contains.
    pub(crate) fn of(recording: &Recording, launched: bool) -> Self {
        let processes = &recording.processes;
        let (mut leaves_ns, mut forgotten_ns) = (Times::default(), Times::default());
        for (at, process) in processes.iter().enumerate() {
            let ended_ns = process.ended_ns().unwrap_or(u64::MAX);
            let reaper = process.reaper().filter(|reaper| *reaper < at);
            let parent = process.parent().filter(|parent| *parent < at);
            let leaves = match parent {
                None if at == 0 || !launched => u64::MAX,
                None => process.born_ns,
                Some(parent) => {
                    let parent_ended_ns = processes[parent].ended_ns().unwrap_or(u64::MAX);
                    if parent_ended_ns > ended_ns || parent_ended_ns > leaves_ns.of(parent) {
                        leaves_ns.of(parent)
                    } else if reaper == Some(parent) {
                        // Both ended at the same time.
                        leaves_ns.of(parent)
                    } else {
                        reaper.map_or(parent_ended_ns, |reaper| leaves_ns.of(reaper))
                    }
                }
            };
            let is_top = leaves == u64::MAX && parent.is_none();
            let forgotten = if leaves <= ended_ns && leaves != u64::MAX {
                leaves
            } else if is_top || process.ended_ns().is_none() {
                u64::MAX
            } else if process.autoreaped {
                ended_ns
            } else {
                reaper.map_or(ended_ns, |reaper| forgotten_ns.of(reaper))
            };
            leaves_ns.push(leaves);
            forgotten_ns.push(forgotten);
        }
        let shown_ns = shown_ns(recording);
        let mut hidden_until_ns = Times::usually(0);
        for (at, process) in processes.iter().enumerate() {
            // Then it becomes invisible for other reasons.
            let until_ns = shown_ns.of(at).min(leaves_ns.of(at)).min(forgotten_ns.of(at));
            hidden_until_ns.push(if until_ns <= process.born_ns { 0 } else { until_ns });
        }
        Self { leaves_ns, forgotten_ns, hidden_until_ns }
    }
}

/// Time from which on the CPU time of each process is in a counter that a reader of
/// /proc/PID/task/PID/children finds: its own, once it descends through main threads only, or that
/// of the process that waited for it, whose counters include the children of all its threads.
fn shown_ns(recording: &Recording) -> Times {
    let Recording { processes, tasks, forked_by_thread, .. } = recording;
    if forked_by_thread.is_empty() {
        return Times::usually(0);
    }
    let execs = execs(recording);
    // When the live process itself can be found, and when the CPU time it used is counted.
    let (mut found_ns, mut counted_ns) = (Times::usually(0), Times::usually(0));
    for (at, process) in processes.iter().enumerate() {
        let ended_ns = process.ended_ns().unwrap_or(u64::MAX);
        let reaper = process.reaper().filter(|reaper| *reaper < at);
        let parent = process.parent().filter(|parent| *parent < at);
        let thread = forked_by_thread.get(at);
        let listed_ns = thread.map_or(0, |task| listed_ns(process, &tasks[*task as usize], &execs));
        let found = parent.map_or(0, |parent| {
            let found = listed_ns.max(found_ns.of(parent));
            let parent_ended_ns = processes[parent].ended_ns().unwrap_or(u64::MAX);
            if found <= parent_ended_ns {
                return found;
            }
            // The adopting process has it among the children of its main thread.
            reaper.map_or(u64::MAX, |reaper| parent_ended_ns.max(found_ns.of(reaper)))
        });
        let counted = if found <= ended_ns {
            found
        } else {
            reaper.map_or(ended_ns, |reaper| ended_ns.max(counted_ns.of(reaper)))
        };
        found_ns.push(found);
        counted_ns.push(counted);
    }
    counted_ns
}

/// Time at which a child of a thread becomes a child of the main thread: when its thread ends, the
/// kernel reparents it to another thread of the process, and an exec leaves a process with only its
/// main thread.
fn listed_ns(process: &Process, forker: &Task, execs: &HashMap<usize, Vec<u64>>) -> u64 {
    let thread_ended_ns = forker.ended_ns().unwrap_or(u64::MAX);
    let execs = execs.get(&forker.process()).map_or(&[][..], Vec::as_slice);
    let exec_ns = execs.iter().find(|exec_ns| **exec_ns >= process.born_ns);
    exec_ns.map_or(thread_ended_ns, |exec_ns| thread_ended_ns.min(*exec_ns))
}

/// Times of the execs of processes whose threads other than the main one forked children, in order.
fn execs(recording: &Recording) -> HashMap<usize, Vec<u64>> {
    let Recording { tasks, runs, forked_by_thread, .. } = recording;
    let forker = |(_, task): (usize, &u32)| (tasks[*task as usize].process(), Vec::new());
    let mut execs: HashMap<usize, Vec<u64>> = forked_by_thread.iter().map(forker).collect();
    for run in runs.iter().filter(|run| run.happened_here) {
        if let Some(times) = execs.get_mut(&(run.process as usize)) {
            times.push(run.time_ns);
        }
    }
    execs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BEGIN_NS, MS, Scene, pid_of};

    fn of(scene: &Scene) -> Membership {
        Membership::of(&scene.load(None), true)
    }

    #[test]
    fn a_child_that_is_waited_for_stays_in_the_books() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3);
        scene.exit(30 * MS, 3, (1, 1)).exit(40 * MS, 2, (1, 1)).exit(50 * MS, 1, (1, 1));
        let membership = of(&scene);
        assert_eq!(membership.leaves_ns, [u64::MAX; 3]);
        assert_eq!(membership.forgotten_ns, [u64::MAX; 3]);
    }

    #[test]
    fn an_orphan_leaves_with_its_parent_and_takes_its_children_along() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3).fork(25 * MS, 3, 4);
        scene.exit(30 * MS, 2, (1, 1)).exit(60 * MS, 4, (1, 1)).exit(70 * MS, 3, (1, 1));
        scene.exit(80 * MS, 1, (1, 1));
        let left_ns = BEGIN_NS + 30 * MS;
        let membership = of(&scene);
        assert_eq!(membership.leaves_ns, [u64::MAX, u64::MAX, left_ns, left_ns]);
        assert_eq!(membership.forgotten_ns, [u64::MAX, u64::MAX, left_ns, left_ns]);
    }

    #[test]
    fn a_subreaper_of_the_tree_keeps_it() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3).exit(30 * MS, 2, (1, 1));
        scene.exit_with(60 * MS, 3, (1, 1), |exit| exit.parent_tgid = pid_of(1));
        scene.exit(80 * MS, 1, (1, 1));
        assert_eq!(of(&scene).leaves_ns, [u64::MAX; 3]);
        assert_eq!(of(&scene).forgotten_ns, [u64::MAX; 3]);
    }

    #[test]
    fn what_no_one_waits_for_is_forgotten_at_its_end() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(10 * MS, 1, 2);
        scene.exit_with(60 * MS, 2, (1, 1), |exit| {
            exit.bits |= proctrace_wire::layout::EXIT_AUTOREAP;
        });
        scene.exit(80 * MS, 1, (1, 1));
        assert_eq!(of(&scene).leaves_ns, [u64::MAX; 2]);
        assert_eq!(of(&scene).forgotten_ns, [u64::MAX, BEGIN_NS + 60 * MS]);
    }

    #[test]
    fn children_of_other_threads_are_hidden_while_they_live_and_what_hangs_on_them() {
        let mut scene = Scene::new(1, 100 * MS);
        // Task 2 is a thread of the command; 3 is its child, 4 the child of 3; 5 a child of the
        // command.
        scene.thread(10 * MS, 1, 2).fork(20 * MS, 2, 3).fork(25 * MS, 3, 4).fork(30 * MS, 1, 5);
        scene.exit(40 * MS, 4, (1, 1)).exit(60 * MS, 3, (1, 1)).exit(70 * MS, 5, (1, 1));
        // A child that outlives its thread and is reparented to the main thread.
        scene.fork(75 * MS, 2, 6).exit(80 * MS, 2, (1, 1)).exit(90 * MS, 6, (1, 1));
        scene.exit(95 * MS, 1, (1, 1));
        let until = |ms: u64| BEGIN_NS + ms * MS;
        let membership = of(&scene);
        assert_eq!(membership.hidden_until_ns, [0, until(60), until(60), 0, until(80)]);
        assert_eq!(membership.leaves_ns, [u64::MAX; 5]);
    }

    #[test]
    fn an_exec_leaves_the_main_thread_alone_and_an_orphan_is_gone_anyhow() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(5 * MS, 1, 2).thread(10 * MS, 2, 3).fork(20 * MS, 3, 4).fork(20 * MS, 3, 5);
        scene.exec(30 * MS, 2, "/bin/sh", (0, 0)).exit(35 * MS, 4, (1, 1)).exit(40 * MS, 3, (1, 1));
        scene.thread(50 * MS, 2, 6).fork(55 * MS, 6, 7).exit(60 * MS, 6, (1, 1));
        scene.exit(60 * MS, 2, (1, 1)).exit(80 * MS, 5, (1, 1)).exit(80 * MS, 7, (1, 1));
        scene.exit(90 * MS, 1, (1, 1));
        let until = |ms: u64| BEGIN_NS + ms * MS;
        let membership = of(&scene);
        assert_eq!(membership.hidden_until_ns, [0, 0, until(30), until(30), until(60)]);
        assert_eq!(membership.leaves_ns.of(3), until(60));
        assert_eq!(membership.leaves_ns.of(4), until(60));
    }
}
