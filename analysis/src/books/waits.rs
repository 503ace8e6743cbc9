//! Which process waited for which: what `time` sees of a tree's CPU time, and what it cannot see.

use proctrace_trace::Ended;

use crate::books::detached::is_detached;
use crate::recording::Recording;

/// The CPU accounting of a recording.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Accounting {
    /// CPU time of all tasks.
    pub(crate) total_ns: u64,
    /// CPU time that no parent's wait(2) collected.
    pub(crate) unwaited_ns: u64,
    /// Upper bound of the CPU time that the kernel may have left out.
    pub(crate) tail_ns: u64,
    /// Processes that outlived their parent.
    pub(crate) detached: u64,
    /// CPU time of these, and of the children they waited for.
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
        let mut due_of = vec![0_u32; processes.len()];
        for process in processes {
            let own_ns = process.cpu.total_ns();
            books.total_ns = books.total_ns.saturating_add(own_ns);
            books.tail_ns = books.tail_ns.saturating_add(process.waits().tail_ns);
            let with_children_ns = own_ns
                .saturating_add(process.waits().before_ns)
                .saturating_add(process.waited_ns().unwrap_or(0));
            if is_detached(recording, process) {
                books.detached += 1;
                books.detached_ns = books.detached_ns.saturating_add(with_children_ns);
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
                    due.children += 1;
                    if !process.autoreaped {
                        due.tail_ns = due.tail_ns.saturating_add(process.waits().tail_ns);
                    }
                }
                // The recorder waits for the command itself, but not for a sibling that the command has
                // created (CLONE_PARENT in clone(2)).
                None if process.is_root() => {}
                None => books.unwaited_ns = books.unwaited_ns.saturating_add(with_children_ns),
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
                books.unwaited_ns = books.unwaited_ns.saturating_add(missing_ns);
                books.negligent.push((at, missing_ns));
            }
        }
        books
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene};

    #[test]
    fn nobody_waits_for_a_sibling_of_the_command() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.sibling(200 * MS, 1, 2).exit(300 * MS, 2, (50 * MS, 0)).exit(S, 1, (MS, 0));
        let books = Accounting::of(&scene.load(None));
        assert_eq!((books.total_ns, books.unwaited_ns), (51 * MS, 50 * MS));
    }
}
