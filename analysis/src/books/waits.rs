//! Which process waited for which: what `time` sees of a tree's CPU time, and what it cannot see.

use proctrace_trace::Ended;

use crate::books::detached::is_detached;
use crate::recording::Recording;
use crate::recording::fast::{FastMap, counters};

/// The CPU accounting of a recording.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Accounting {
    /// CPU time of all tasks.
    pub(crate) total_ns: u64,
    /// CPU time while recorded that no parent's wait(2) collected.
    pub(crate) unwaited_ns: u64,
    /// Upper bound of the CPU time that the kernel may have left out.
    pub(crate) tail_ns: u64,
    /// Processes that outlived their parent.
    pub(crate) detached: u64,
    /// CPU time of these while recorded, and of the children they waited for.
    pub(crate) detached_ns: u64,
    /// Processes that the kernel credits with more CPU time of children than their children used;
    /// there must be none.
    pub(crate) overdrawn: u64,
    /// Processes that did not wait for children that ended before them, by index, with the CPU time
    /// of those children.
    pub(crate) negligent: Vec<(usize, u64)>,
}

/// The kernel scales a process's user and system time separately: tolerance per child.
const ROUNDING_NS: u64 = 10_000;

/// Children's totals that their parent should have collected.
#[derive(Debug, Default, Clone, Copy)]
struct Due {
    ns: u64,
    /// The part of it that was used while recorded.
    recorded_ns: u64,
    children: u64,
    /// CPU time that the kernel may have left out, see `EXIT_RELEASED`.
    tail_ns: u64,
}

impl Accounting {
    pub(crate) fn of(recording: &Recording) -> Self {
        let processes = &recording.processes;
        let mut books = Self::default();
        // What a parent would have collected from its children, had it waited for each; most
        // processes have no children.
        let mut due = vec![Due::default()];
        let mut due_of = counters(processes.len());
        let mut collected = Collected::default();
        for (at, process) in processes.iter().enumerate() {
            let own_ns = process.cpu.total_ns();
            books.total_ns = books.total_ns.saturating_add(own_ns);
            books.tail_ns = books.tail_ns.saturating_add(process.waits().tail_ns);
            let waited_ns = process.waited_ns().unwrap_or(0);
            let with_children_ns =
                own_ns.saturating_add(process.waits().before_ns).saturating_add(waited_ns);
            let recorded_ns =
                own_ns.saturating_add(waited_ns.saturating_sub(process.waits().waited_before_ns));
            if is_detached(recording, process) {
                books.detached += 1;
                if !collected.by_detached(recording, at) {
                    books.detached_ns = books.detached_ns.saturating_add(recorded_ns);
                }
            }
            match process.reaper() {
                Some(reaper) => {
                    let at = &mut due_of[reaper];
                    if *at == 0 {
                        *at = u32::try_from(due.len()).unwrap_or(0);
                        due.push(Due::default());
                    }
                    let due = &mut due[*at as usize];
                    due.ns = due.ns.saturating_add(with_children_ns);
                    due.recorded_ns = due.recorded_ns.saturating_add(recorded_ns);
                    due.children += 1;
                    if !process.autoreaped {
                        due.tail_ns = due.tail_ns.saturating_add(process.waits().tail_ns);
                    }
                }
                // The recorder waits for the command itself, but not for a sibling that the command has
                // created (CLONE_PARENT in clone(2)).
                None if process.is_root() => {}
                None => books.unwaited_ns = books.unwaited_ns.saturating_add(recorded_ns),
            }
        }
        // In a recording that ended before its tasks: children that went to another cgroup, whose recording
        // knows what they used.
        let is_cut = recording.trailer.as_ref().is_some_and(|it| it.ended == Ended::Interrupted);
        let mut with_unended: Vec<usize> = processes
            .iter()
            .filter(|process| is_cut && process.waited_ns().is_none())
            .filter_map(|process| process.parent())
            .collect();
        with_unended.sort_unstable();
        for (at, (process, due_at)) in processes.iter().zip(due_of).enumerate() {
            let due = due[due_at as usize];
            // For a process that is still alive, the children it waited for are not known yet.
            let Some(waited_ns) = process.waited_ns() else { continue };
            let waited_ns = waited_ns.saturating_sub(process.waits().waited_before_ns);
            let rounding_ns = due.children.saturating_mul(ROUNDING_NS);
            // One that was running before, or came from another cgroup, may have children that are not recorded:
            // they were dead, and not yet waited for, or are in other cgroups.
            let was_there = process.tasks().any(|task| recording.tasks[task].before().is_some());
            let is_known = !was_there && with_unended.binary_search(&at).is_err();
            if is_known && waited_ns > due.ns.saturating_add(rounding_ns) {
                books.overdrawn += 1;
            }
            let missing_ns = due.ns.saturating_sub(waited_ns);
            if missing_ns > rounding_ns.saturating_add(due.tail_ns) {
                let missing_ns = missing_ns.min(due.recorded_ns);
                books.unwaited_ns = books.unwaited_ns.saturating_add(missing_ns);
                books.negligent.push((at, missing_ns));
            }
        }
        books
    }
}

/// Whose CPU time a detached process has collected by wait(2), and which is therefore in that of the latter.
#[derive(Debug, Default)]
struct Collected {
    /// Each process is asked about once; the answers that are known.
    known: FastMap<usize, bool>,
}

impl Collected {
    fn by_detached(&mut self, recording: &Recording, process: usize) -> bool {
        let (mut at, mut asked) = (process, Vec::new());
        let answer = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            // A damaged trace may contain a circle: whoever is asked about twice has no answer.
            self.known.insert(at, false);
            asked.push(at);
            let process = &recording.processes[at];
            // A process that was alive at the end has waited for nobody yet, as far as is known.
            let waiter = process.reaper().filter(|reaper| {
                !process.autoreaped && recording.processes[*reaper].waited_ns().is_some()
            });
            let Some(waiter) = waiter else { break false };
            if is_detached(recording, &recording.processes[waiter]) {
                break true;
            }
            at = waiter;
        };
        asked.into_iter().for_each(|at| {
            self.known.insert(at, answer);
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene, pid_of};

    /// A daemon adopts and waits for what another daemon of it left: both are detached, and the time of the
    /// second is in that of the first.
    #[test]
    fn what_a_detached_process_has_waited_for_counts_once() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2).fork(MS, 2, 3).fork(2 * MS, 3, 4);
        scene.exit(S, 1, (0, 0)).exit(2 * S, 3, (MS, 0));
        scene.exit_with(3 * S, 4, (200 * MS, 0), |exit| exit.parent_tgid = pid_of(2));
        scene.exit_with(4 * S, 2, (500 * MS, 0), |exit| exit.waited_utime_ns = 201 * MS);
        let books = Accounting::of(&scene.load(None));
        assert_eq!((books.detached, books.detached_ns), (2, 701 * MS));
        assert_eq!((books.total_ns, books.unwaited_ns), (701 * MS, 701 * MS));
    }

    #[test]
    fn what_was_used_before_the_recording_is_not_missing() {
        let mut scene = Scene::new(1, 100 * MS);
        // Its parent is not recorded; it had used 9 s before, and its children 5 s.
        scene.there_before_with(0, 2, 1, |attach| {
            (attach.run_ns, attach.utime_ns, attach.waited_utime_ns) = (9 * S, 9 * S, 5 * S);
            attach.parent_tgid = pid_of(1);
        });
        scene.exit(S, 1, (0, 0));
        scene.exit_with(2 * S, 2, (9 * S + MS, 0), |exit| {
            (exit.waited_utime_ns, exit.parent_tgid) = (5 * S + 2 * MS, 1);
        });
        let books = Accounting::of(&scene.load(None));
        assert_eq!((books.detached, books.detached_ns, books.unwaited_ns), (1, 3 * MS, 3 * MS));
    }

    #[test]
    fn nobody_waits_for_a_sibling_of_the_command() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.sibling(200 * MS, 1, 2).exit(300 * MS, 2, (50 * MS, 0)).exit(S, 1, (MS, 0));
        let books = Accounting::of(&scene.load(None));
        assert_eq!((books.total_ns, books.unwaited_ns), (51 * MS, 50 * MS));
    }
}
