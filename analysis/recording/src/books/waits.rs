//! Waits of processes for others: what `time` sees of a tree's CPU time, and what it cannot see.

use proctrace_classify::fast::{FastMap, counters};
use proctrace_trace::Ended;

use crate::Recording;
use crate::books::detached::is_detached;
use crate::process::Process;

/// The CPU accounting of a recording.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Accounting {
    /// CPU time of all tasks.
    pub total_ns: u64,
    /// CPU time while recorded that no parent's wait(2) collected.
    pub unwaited_ns: u64,
    /// Upper bound of the CPU time that the kernel may have left out.
    pub(crate) tail_ns: u64,
    /// Processes that outlived their parent.
    pub detached: u64,
    /// CPU time of these while recorded, and of the children they waited for.
    pub detached_ns: u64,
    /// Processes that the kernel credits with more CPU time of children than their children used;
    /// there must be none.
    pub(crate) overdrawn: u64,
    /// Processes that did not wait for children that ended before them, by index, with the CPU time
    /// of those children.
    pub negligent: Vec<(usize, u64)>,
}

/// The kernel scales a process's user and system time separately: tolerance per child.
const ROUNDING_NS: u64 = 10_000;
/// Maximum number of ancestors that are asked whether they are subreapers.
const ANCESTORS_MAX: usize = 1000;

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

impl Due {
    fn rounding_ns(&self) -> u64 {
        self.children.saturating_mul(ROUNDING_NS)
    }
}

/// CPU time of the children that a process waited for; None while it is alive.
fn waited_while_recorded(process: &Process) -> Option<u64> {
    Some(process.waited_ns()?.saturating_sub(process.waits().waited_before_ns))
}

/// Children that others have waited for: a child that has ended, and for which its parent does not wait before it
/// ends, goes to the next subreaper above, or to init (forget_original_parent() in kernel/exit.c). That is seen by
/// nothing but its CPU time, in what the subreaper waited for.
#[derive(Debug, Default)]
struct Inherited {
    /// CPU time for which somebody above waited, by process that did not wait itself.
    from: FastMap<usize, u64>,
    /// Processes that waited for more than there was.
    overdrawn: u64,
}

impl Inherited {
    /// `due_of` gives what a process would have collected from its own children; None if it may have others.
    fn of(recording: &Recording, due_of: impl Fn(usize) -> Option<Due>) -> Self {
        let processes = &recording.processes;
        let mut excess = FastMap::default();
        for (at, process) in processes.iter().enumerate() {
            // One that was running before, or came from another cgroup, may have children that are not recorded:
            // they were dead, and not yet waited for, or are in other cgroups.
            let was_there = || process.tasks().any(|task| recording.tasks[task].before().is_some());
            if let (Some(waited_ns), Some(due)) = (waited_while_recorded(process), due_of(at))
                && waited_ns > due.ns.saturating_add(due.rounding_ns())
                && !was_there()
            {
                excess.insert(at, (waited_ns - due.ns, due.rounding_ns()));
            }
        }
        let mut inherited = Self::default();
        if excess.is_empty() {
            return inherited;
        }
        for (at, process) in processes.iter().enumerate() {
            let (Some(waited_ns), Some(due)) = (waited_while_recorded(process), due_of(at)) else {
                continue;
            };
            let mut missing_ns = due.ns.saturating_sub(waited_ns);
            let mut above = process.reaper();
            // A damaged trace may contain a circle.
            for _ in 0..ANCESTORS_MAX {
                let Some(ancestor) = above.filter(|_| missing_ns > 0) else { break };
                if let Some((left_ns, _)) = excess.get_mut(&ancestor) {
                    let taken_ns = missing_ns.min(*left_ns);
                    *left_ns -= taken_ns;
                    missing_ns -= taken_ns;
                    *inherited.from.entry(at).or_default() += taken_ns;
                }
                above = processes[ancestor].reaper();
            }
        }
        inherited.overdrawn =
            excess.values().filter(|(left_ns, rounding_ns)| left_ns > rounding_ns).count() as u64;
        inherited
    }

    fn from(&self, at: usize) -> u64 {
        self.from.get(&at).copied().unwrap_or(0)
    }
}

impl Accounting {
    pub fn of(recording: &Recording) -> Self {
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
        // What a debugger took over used more than is known, and whoever waits for it is credited with all of it.
        let is_let_go =
            |at: &usize| !recording.blind.let_go.is_empty() && processes[*at].waited_ns().is_none();
        with_unended.extend(
            (0..processes.len())
                .filter(is_let_go)
                .filter_map(|at| processes[at].reaper().or(processes[at].parent())),
        );
        with_unended.sort_unstable();
        let inherited = Inherited::of(recording, |at| {
            let due = due[due_of[at] as usize];
            (with_unended.binary_search(&at).is_err()).then_some(due)
        });
        books.overdrawn = inherited.overdrawn;
        for (at, (process, due_at)) in processes.iter().zip(due_of).enumerate() {
            let due = due[due_at as usize];
            // For a process that is still alive, the children it waited for are not known yet.
            let Some(waited_ns) = waited_while_recorded(process) else { continue };
            let missing_ns = due.ns.saturating_sub(waited_ns).saturating_sub(inherited.from(at));
            if missing_ns > due.rounding_ns().saturating_add(due.tail_ns) {
                let missing_ns = missing_ns.min(due.recorded_ns);
                books.unwaited_ns = books.unwaited_ns.saturating_add(missing_ns);
                books.negligent.push((at, missing_ns));
            }
        }
        books
    }
}

/// CPU time of others that a detached process has collected by wait(2), and that its own therefore contains.
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

    /// A child has ended when its parent is killed, which has not waited for it: the subreaper above does.
    #[test]
    fn what_a_subreaper_waits_for_is_neither_missing_nor_too_much() {
        let scene = |waited_ns: u64| {
            let mut scene = Scene::new(1, 100 * MS);
            scene.fork(0, 1, 2).fork(MS, 2, 3).fork(2 * MS, 3, 4);
            scene.exit(10 * MS, 4, (40 * MS, 0)).exit(20 * MS, 3, (3 * MS, 0)).exit(
                30 * MS,
                2,
                (2 * MS, 0),
            );
            scene.exit_with(S, 1, (MS, 0), |exit| exit.waited_utime_ns = waited_ns);
            Accounting::of(&scene.load(None))
        };
        let all = scene(45 * MS);
        assert_eq!((all.overdrawn, all.unwaited_ns, all.negligent), (0, 0, Vec::new()));
        // Of nobody: init has waited for it, outside.
        let lost = scene(2 * MS);
        assert_eq!((lost.overdrawn, lost.unwaited_ns), (0, 43 * MS));
        let too_much = scene(46 * MS);
        assert_eq!((too_much.overdrawn, too_much.unwaited_ns), (1, 0));
    }

    /// A child ends after the end of its parent was recorded, and before its parent hands it on: it is the subreaper
    /// who waits for it.
    #[test]
    fn a_child_that_ends_while_its_parent_does_is_waited_for_by_the_subreaper() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2).fork(MS, 2, 3).exit(30 * MS, 2, (2 * MS, 0));
        scene.exit_with(31 * MS, 3, (3 * MS, 0), |exit| exit.parent_tgid = pid_of(2));
        scene.exit_with(S, 1, (MS, 0), |exit| exit.waited_utime_ns = 5 * MS);
        let books = Accounting::of(&scene.load(None));
        assert_eq!((books.overdrawn, books.unwaited_ns, books.negligent), (0, 0, Vec::new()));
    }

    #[test]
    fn nobody_waits_for_a_sibling_of_the_command() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.sibling(200 * MS, 1, 2).exit(300 * MS, 2, (50 * MS, 0)).exit(S, 1, (MS, 0));
        let books = Accounting::of(&scene.load(None));
        assert_eq!((books.total_ns, books.unwaited_ns), (51 * MS, 50 * MS));
    }
}
