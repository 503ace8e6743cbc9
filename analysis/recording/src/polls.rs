//! Sleeps in which a task looks again and again whether a child has ended, such as python's `subprocess` with a timeout,
//! or a shell with `sleep 1` in a loop: what ends them is the child, though a timer wakes who sleeps.

use std::ops::Range;

use proctrace_classify::fast::FastMap;
use proctrace_wire::WaitFor;

use crate::Recording;
use crate::waits::{Wait, Waker};

/// Minimum sleeps in a row, since the child was born.
const SLEEPS_MIN: usize = 3;
/// Maximum time that a task runs between two sleeps of its own.
const BETWEEN_NS: u64 = 5_000_000;
/// Time by which, with a part of their length, the sleeps of children in a row may differ, and be apart from each other.
const SLACK_NS: u64 = 10_000_000;
/// Minimum part of its life for which a child sleeps that does nothing else, in percent.
const ASLEEP_PERCENT: u64 = 75;

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
        let waits = recording.waits().unwrap_or_default();
        let mut own: Vec<Range<usize>> = Vec::new();
        let mut by_child: FastMap<u32, Vec<Sleep>> = FastMap::default();
        let mut begin = 0;
        for of_task in waits.chunk_by(|one, next| one.task == next.task) {
            let these = begin..begin + of_task.len();
            begin = these.end;
            let sleeps = of_task.iter().filter(|wait| is_sleep(wait)).take(SLEEPS_MIN).count();
            if sleeps == SLEEPS_MIN {
                own.push(these.clone());
            }
            if let Some((forker, sleep)) =
                sleeping_child(recording, waits, these).filter(|_| sleeps > 0)
            {
                by_child.entry(forker).or_default().push(sleep);
            }
        }
        by_child.retain(|_, sleeps| sleeps.len() >= SLEEPS_MIN);
        // Most tasks never sleep so often.
        if own.is_empty() && by_child.is_empty() {
            return Self::default();
        }
        let of_own = own.iter().map(|of_task| waits[of_task.start].task);
        let children = Children::of(recording, of_own.chain(by_child.keys().copied()));
        let mut found = Self::default();
        for of_task in own {
            if let Some(children) = children.of_task.get(&waits[of_task.start].task) {
                found.divide(waits, of_task, children);
            }
        }
        for (task, mut sleeps) in by_child {
            if let Some(children) = children.of_task.get(&task) {
                sleeps.sort_unstable_by_key(|sleep| sleep.since_ns);
                found.divide_children(&sleeps, children);
            }
        }
        found.sleeps.sort_unstable();
        found.sleeps.dedup_by_key(|(wait, _)| *wait);
        found
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

    /// Divides the sleeps of a task into rows: a child that it starts, another wait, and a longer run end one.
    fn divide(&mut self, waits: &[Wait], of_task: Range<usize>, children: &OfTask) {
        let mut row: Vec<Sleep> = Vec::new();
        let mut for_cpu_ns = 0_u64;
        for at in of_task {
            let wait = &waits[at];
            if wait.waits_for == WaitFor::Cpu {
                let off_ns = wait.until_ns().saturating_sub(wait.since_ns());
                for_cpu_ns = off_ns.saturating_add(for_cpu_ns);
                continue;
            }
            if !is_sleep(wait) {
                self.end(std::mem::take(&mut row), children);
                continue;
            }
            let sleep = Sleep::of(at, wait, None);
            if let Some(last) = row.last() {
                let apart_ns = sleep.since_ns.saturating_sub(last.until_ns);
                if apart_ns.saturating_sub(for_cpu_ns) > BETWEEN_NS
                    || children.starts_between(last, &sleep)
                {
                    self.end(std::mem::take(&mut row), children);
                }
            }
            row.push(sleep);
            for_cpu_ns = 0;
        }
        self.end(row, children);
    }

    /// The same for the sleeps of its children, which follow each other as those of a loop do.
    fn divide_children(&mut self, sleeps: &[Sleep], children: &OfTask) {
        let mut row: Vec<Sleep> = Vec::new();
        for sleep in sleeps {
            if let Some(last) = row.last() {
                let (was_ns, is_ns) = (last.length_ns(), sleep.length_ns());
                let goes_on = sleep.since_ns >= last.until_ns
                    && is_ns.abs_diff(was_ns) <= (was_ns / 4).saturating_add(SLACK_NS)
                    && sleep.since_ns - last.until_ns <= (was_ns / 2).saturating_add(SLACK_NS)
                    && !children.starts_between(last, sleep);
                if !goes_on {
                    self.end(std::mem::take(&mut row), children);
                }
            }
            row.push(*sleep);
        }
        self.end(row, children);
    }

    /// Ends a row, and keeps it if a child ended in its last sleep.
    fn end(&mut self, row: Vec<Sleep>, children: &OfTask) {
        let Some(last) = row.last().filter(|_| row.len() >= SLEEPS_MIN) else { return };
        for ended in children.ended_in(last).filter(|ended| Some(ended.process) != last.process) {
            let since = row.partition_point(|sleep| sleep.since_ns < ended.born_ns);
            let (looks, ends) = row[since..].split_at((row.len() - since).saturating_sub(1));
            if looks.len() + 1 >= SLEEPS_MIN {
                self.sleeps.extend(looks.iter().map(|sleep| (sleep.wait, None)));
                self.sleeps.extend(ends.iter().map(|sleep| (sleep.wait, Some(ended.last_task))));
                return;
            }
        }
    }
}

/// A sleep until a point in time.
#[derive(Debug, Clone, Copy)]
struct Sleep {
    since_ns: u64,
    woken_ns: u64,
    until_ns: u64,
    /// Index of the wait.
    wait: u32,
    /// The process that sleeps, if it is a child.
    process: Option<u32>,
}

impl Sleep {
    fn of(at: usize, wait: &Wait, process: Option<u32>) -> Self {
        let (since_ns, woken_ns, until_ns) = (wait.since_ns(), wait.woken_ns(), wait.until_ns());
        let wait = u32::try_from(at).unwrap_or(u32::MAX);
        Self { since_ns, woken_ns, until_ns, wait, process }
    }

    fn length_ns(&self) -> u64 {
        self.woken_ns.saturating_sub(self.since_ns)
    }
}

/// The only long sleep of a process that does nothing else, by the range of its waits, and the task that forked it.
fn sleeping_child(
    recording: &Recording,
    waits: &[Wait],
    these: Range<usize>,
) -> Option<(u32, Sleep)> {
    let task = waits.get(these.start)?.task as usize;
    let at = recording.tasks().get(task)?.process();
    let process = recording.processes().get(at).filter(|process| process.tasks().len() == 1)?;
    let life_ns = process.ended_ns()?.saturating_sub(process.born_ns);
    let sleeps = these.filter(|at| is_sleep(&waits[*at]));
    let longest = sleeps.max_by_key(|at| waits[*at].woken_ns() - waits[*at].since_ns())?;
    let sleep = Sleep::of(longest, &waits[longest], Some(u32::try_from(at).ok()?));
    let is_all = sleep.length_ns() > 0 && sleep.length_ns() >= life_ns / 100 * ASLEEP_PERCENT;
    let forker = recording.forker_of(task).filter(|_| is_all)?;
    Some((u32::try_from(forker).ok()?, sleep))
}

/// A child of a task that may wait for it.
#[derive(Debug, Clone, Copy)]
struct Child {
    process: u32,
    born_ns: u64,
    /// None if it was alive at the end of the recording.
    ended_ns: Option<u64>,
    last_task: u32,
}

/// The children of one task.
#[derive(Debug, Default)]
struct OfTask {
    by_birth: Vec<Child>,
    /// Those that ended, in order of their ends.
    by_end: Vec<Child>,
}

impl OfTask {
    /// True if a child is born between two sleeps that lives when the second one begins, other than who sleeps.
    fn starts_between(&self, last: &Sleep, next: &Sleep) -> bool {
        let begin = self.by_birth.partition_point(|child| child.born_ns <= last.until_ns);
        let born = self.by_birth[begin..].iter();
        born.take_while(|child| child.born_ns <= next.since_ns).any(|child| {
            Some(child.process) != next.process
                && child.ended_ns.is_none_or(|ended_ns| ended_ns > next.since_ns)
        })
    }

    /// The children that end in a sleep, the last one first.
    fn ended_in(&self, sleep: &Sleep) -> impl Iterator<Item = &Child> {
        let ended = |child: &Child| child.ended_ns.unwrap_or(u64::MAX);
        let begin = self.by_end.partition_point(|child| ended(child) < sleep.since_ns);
        let end = self.by_end.partition_point(|child| ended(child) <= sleep.woken_ns);
        self.by_end[begin..end.max(begin)].iter().rev()
    }
}

/// The children of each task that sleeps often.
struct Children {
    of_task: FastMap<u32, OfTask>,
}

impl Children {
    fn of(recording: &Recording, tasks: impl Iterator<Item = u32>) -> Self {
        let mut of_task: FastMap<u32, OfTask> =
            tasks.map(|task| (task, OfTask::default())).collect();
        for (at, process) in recording.processes().iter().enumerate() {
            let Some(first) = process.tasks().next() else { continue };
            let forker = recording.forker_of(first).and_then(|task| u32::try_from(task).ok());
            let Some(siblings) = forker.and_then(|forker| of_task.get_mut(&forker)) else {
                continue;
            };
            let ended_ns = |task: &usize| recording.tasks()[*task].ended_ns();
            // It ends with the last of its tasks, once all have ended.
            let last = process.tasks().max_by_key(|task| ended_ns(task).unwrap_or(u64::MAX));
            let last = last.unwrap_or(first);
            siblings.by_birth.push(Child {
                process: u32::try_from(at).unwrap_or(u32::MAX),
                born_ns: process.born_ns,
                ended_ns: ended_ns(&last),
                last_task: u32::try_from(last).unwrap_or(u32::MAX),
            });
        }
        of_task.retain(|_, siblings| !siblings.by_birth.is_empty());
        for siblings in of_task.values_mut() {
            siblings.by_birth.sort_by_key(|child| child.born_ns);
            let ended = siblings.by_birth.iter().filter(|child| child.ended_ns.is_some());
            siblings.by_end = ended.copied().collect();
            siblings.by_end.sort_by_key(|child| child.ended_ns);
        }
        Self { of_task }
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

    /// `job & while kill -0 $!; do sleep 0.1; done`, where the job ends in milliseconds, and another child is started that
    /// lives between these; the roles of the four sleeps.
    fn roles_of_children(job_ends: u64, other: Option<(u64, u64)>) -> Vec<Option<Role>> {
        let mut scene = Scene::new(2, 100 * MS);
        scene.exec(0, 1, "/bin/bash", (0, 0)).fork(MS, 1, 2);
        let sleeps: Vec<(u64, u64, u32)> =
            (0..4_u64).zip(3..).map(|(at, task)| (10 + 110 * at, 112 + 110 * at, task)).collect();
        let mut births: Vec<(u64, u32)> =
            sleeps.iter().map(|(born, _, task)| (*born, *task)).collect();
        let mut ends: Vec<(u64, u32)> = sleeps.iter().map(|(_, end, task)| (*end, *task)).collect();
        ends.push((job_ends, 2));
        if let Some((born, ended)) = other {
            births.push((born, 9));
            ends.push((ended, 9));
        }
        births.sort_unstable();
        births.into_iter().for_each(|(born, task)| _ = scene.fork(born * MS, 1, task));
        for (born, ended, task) in sleeps {
            let times = ((born + 1) * MS, (ended - 1) * MS, (ended - 1) * MS);
            scene.sleep(task, times, NANOSLEEP, 0);
        }
        ends.sort_unstable();
        ends.into_iter().for_each(|(end, task)| _ = scene.exit(end * MS, task, (0, 0)));
        let recording = scene.exit(900 * MS, 1, (0, 0)).load(Some((900 * MS, 0, 0)));
        let polls = Polls::of(&recording);
        let waits = recording.waits().unwrap();
        (0..waits.len()).map(|at| polls.role(&recording, at)).collect()
    }

    #[test]
    fn the_sleeps_of_children_are_those_of_a_loop() {
        let ends = |role: &Option<Role>| matches!(role, Some(Role::Ends(1, _)));
        let found = roles_of_children(400, None);
        assert_eq!(found[..3], [LOOKS; 3]);
        assert!(ends(&found[3]), "{found:?}");
        // A short check is none of its own.
        assert_eq!(roles_of_children(400, Some((113, 118))), found);
        // The job goes on, or has ended before the last sleep.
        assert_eq!(roles_of_children(700, None), [None; 4]);
        assert_eq!(roles_of_children(200, None), [None; 4]);
        // Another job is started after the second sleep: two are left.
        assert_eq!(roles_of_children(400, Some((225, 800))), [None; 4]);
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
