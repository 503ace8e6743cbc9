//! Sleeps of a task that looks again and again whether a child has ended, such as python's `subprocess` with a timeout:
//! what ends them is the child, though the timer wakes the task.

use proctrace_classify::fast::FastMap;
use proctrace_wire::WaitFor;

use crate::Recording;
use crate::waits::{Wait, Waker};

/// Minimum sleeps in a row, since the child was born.
const SLEEPS_MIN: usize = 3;
/// Maximum time that a task runs between two sleeps of a row.
const BETWEEN_NS: u64 = 5_000_000;

/// Role of a sleep in such a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The child lives on: the next sleep follows.
    Looks,
    /// A task, by its index, ended in it as the last one of the child, at a time.
    Ends(u32, u64),
}

/// The sleeps with which tasks wait for their children, in order of the waits.
#[derive(Debug, Default)]
pub struct Polls {
    /// Index of the wait and, of the last one of a row, that of the task that ends it.
    sleeps: Vec<(u32, Option<u32>)>,
}

impl Polls {
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut rows = Rows { recording, children: FastMap::default(), found: Self::default() };
        let waits = recording.waits().unwrap_or_default();
        // Most tasks never sleep so often.
        let mut those: Vec<std::ops::Range<usize>> = Vec::new();
        let mut begin = 0;
        for of_task in waits.chunk_by(|one, next| one.task == next.task) {
            let sleeps = of_task.iter().filter(|wait| is_sleep(wait)).take(SLEEPS_MIN).count();
            if sleeps == SLEEPS_MIN {
                those.push(begin..begin + of_task.len());
                rows.children.insert(of_task[0].task, Vec::new());
            }
            begin += of_task.len();
        }
        if those.is_empty() {
            return Self::default();
        }
        rows.find_children();
        for of_task in those {
            rows.divide(waits, of_task);
        }
        rows.found
    }

    /// Role of a wait, by its index.
    #[inline]
    pub fn role(&self, recording: &Recording, wait: usize) -> Option<Role> {
        let at = self.sleeps.binary_search_by_key(&wait, |(wait, _)| *wait as usize).ok()?;
        let Some(task) = self.sleeps[at].1 else { return Some(Role::Looks) };
        let ended_ns = recording.tasks().get(task as usize)?.ended_ns()?;
        Some(Role::Ends(task, ended_ns))
    }

    /// True if no task waits for a child in this way.
    pub fn is_empty(&self) -> bool {
        self.sleeps.is_empty()
    }
}

/// A child of a task that may wait for it.
#[derive(Debug, Clone, Copy)]
struct Child {
    born_ns: u64,
    /// Its last task, and when that ended.
    end: Option<(u32, u64)>,
}

struct Rows<'a> {
    recording: &'a Recording,
    /// Children of each task that sleeps often, in order of their births.
    children: FastMap<u32, Vec<Child>>,
    found: Polls,
}

impl Rows<'_> {
    fn find_children(&mut self) {
        for process in self.recording.processes() {
            let Some(first) = process.tasks().next() else { continue };
            let forker = self.recording.forker_of(first).and_then(|task| u32::try_from(task).ok());
            let Some(of_forker) = forker.and_then(|forker| self.children.get_mut(&forker)) else {
                continue;
            };
            let ends = process.tasks().map(|task| {
                Some((u32::try_from(task).ok()?, self.recording.tasks()[task].ended_ns()?))
            });
            // It ends with the last of its tasks.
            let ends: Option<Vec<(u32, u64)>> = ends.collect();
            let end = ends.and_then(|ends| ends.into_iter().max_by_key(|(_, ended_ns)| *ended_ns));
            of_forker.push(Child { born_ns: process.born_ns, end });
        }
        for of_forker in self.children.values_mut() {
            of_forker.sort_by_key(|child| child.born_ns);
        }
    }

    /// Divides the sleeps of a task into rows: a child that it starts, another wait, and a longer run end one.
    fn divide(&mut self, waits: &[Wait], of_task: std::ops::Range<usize>) {
        let task = waits[of_task.start].task;
        let children = self.children.remove(&task).filter(|children| !children.is_empty());
        let Some(children) = children else { return };
        let mut row: Vec<u32> = Vec::new();
        let (mut slept_until_ns, mut for_cpu_ns) = (0, 0);
        for at in of_task {
            let wait = &waits[at];
            if wait.waits_for == WaitFor::Cpu {
                for_cpu_ns += wait.until_ns() - wait.since_ns();
                continue;
            }
            let ran_ns = wait.since_ns().saturating_sub(slept_until_ns).saturating_sub(for_cpu_ns);
            let born = |until_ns| children.partition_point(|child| child.born_ns <= until_ns);
            let goes_on = is_sleep(wait)
                && ran_ns <= BETWEEN_NS
                && born(slept_until_ns) == born(wait.since_ns());
            if !goes_on {
                self.end(waits, &children, &mut row);
            }
            if is_sleep(wait) {
                row.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
            (slept_until_ns, for_cpu_ns) = (wait.until_ns(), 0);
        }
        self.end(waits, &children, &mut row);
    }

    /// Ends a row, and keeps it if a child ended in its last sleep.
    fn end(&mut self, waits: &[Wait], children: &[Child], row: &mut Vec<u32>) {
        let row = std::mem::take(row);
        let Some(last) = row.last().map(|last| &waits[*last as usize]) else { return };
        let is_in_last =
            |(_, ended_ns): &(u32, u64)| (last.since_ns()..=last.woken_ns()).contains(ended_ns);
        let ended = children.iter().filter_map(|child| Some((child.born_ns, child.end?)));
        let ended = ended.filter(|(_, end)| is_in_last(end));
        let Some((born_ns, (task, _))) = ended.max_by_key(|(_, (_, ended_ns))| *ended_ns) else {
            return;
        };
        let since = row.partition_point(|at| waits[*at as usize].since_ns() < born_ns);
        let [looks @ .., ends] = &row[since..] else { return };
        if looks.len() + 1 >= SLEEPS_MIN {
            self.found.sleeps.extend(looks.iter().map(|at| (*at, None)));
            self.found.sleeps.push((*ends, Some(task)));
        }
    }
}

/// True of a sleep until a point in time.
fn is_sleep(wait: &Wait) -> bool {
    wait.waits_for == WaitFor::Timer && wait.waker() == Waker::Interrupt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, Scene};

    const NANOSLEEP: i16 = 35;
    const WAIT4: i16 = 61;

    /// A command with children that live between these times in milliseconds, and that itself sleeps between those; the
    /// roles of its waits.
    fn roles(children: &[(u64, u64)], sleeps: &[(u64, u64)]) -> Vec<Option<Role>> {
        let mut scene = Scene::new(2, 100 * MS);
        scene.exec(0, 1, "/usr/bin/python3", (0, 0));
        let mut ends: Vec<(u64, u32)> = Vec::new();
        for ((born, ended), child) in children.iter().zip(2..) {
            scene.fork(born * MS, 1, child);
            ends.push((*ended, child));
        }
        ends.sort_unstable();
        for (ended, child) in ends {
            scene.exit(ended * MS, child, (0, 0));
        }
        for (since, woken) in sleeps {
            scene.sleep(1, (since * MS, woken * MS, woken * MS), NANOSLEEP, 0);
        }
        let recording = scene.exit(900 * MS, 1, (0, 0)).load(Some((900 * MS, 0, 0)));
        let polls = Polls::of(&recording);
        let roles: Vec<_> = (0..sleeps.len()).map(|at| polls.role(&recording, at)).collect();
        assert_eq!(polls.is_empty(), roles.iter().all(Option::is_none));
        let relative = |role| match role {
            Role::Ends(task, ended_ns) => Role::Ends(task, (ended_ns - recording.first_ns()) / MS),
            Role::Looks => Role::Looks,
        };
        roles.into_iter().map(|role| role.map(relative)).collect()
    }

    const LOOKS: Option<Role> = Some(Role::Looks);

    #[test]
    fn the_last_sleep_ends_with_the_child() {
        let found = roles(&[(10, 75)], &[(20, 40), (41, 60), (61, 80), (200, 220)]);
        assert_eq!(found, [LOOKS, LOOKS, Some(Role::Ends(1, 75)), None]);
        // Two sleeps are no row, and neither are those with work in between.
        assert_eq!(roles(&[(10, 55)], &[(20, 40), (41, 60)]), [None, None]);
        assert_eq!(roles(&[(10, 95)], &[(20, 40), (60, 70), (90, 100)]), [None; 3]);
        // Nor does a child that ends in another sleep end the row: the task went on sleeping.
        assert_eq!(roles(&[(10, 50)], &[(20, 40), (41, 60), (61, 80)]), [None; 3]);
    }

    #[test]
    fn of_several_children_the_last_one_ends_the_row() {
        let sleeps = [(20, 40), (41, 60), (61, 80)];
        let found = roles(&[(10, 30), (12, 70), (13, 65)], &sleeps);
        assert_eq!(found, [LOOKS, LOOKS, Some(Role::Ends(2, 70))]);
        // Another one is started after the first sleep: only two are of one row.
        assert_eq!(roles(&[(10, 300), (40, 70)], &sleeps), [None; 3]);
    }

    #[test]
    fn a_wait_for_a_child_is_no_sleep() {
        let mut scene = Scene::new(2, 100 * MS);
        scene.exec(0, 1, "/bin/sh", (0, 0)).fork(MS, 1, 2).exit(80 * MS, 2, (0, 0));
        for (since, woken) in [(2, 20), (21, 40), (41, 80)] {
            scene.sleep(1, (since * MS, woken * MS, woken * MS), WAIT4, 2);
        }
        let recording = scene.exit(90 * MS, 1, (0, 0)).load(Some((90 * MS, 0, 0)));
        assert!(Polls::of(&recording).is_empty());
    }
}
