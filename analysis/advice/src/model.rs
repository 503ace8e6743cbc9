//! Model of the wall time if some tasks took no time: the recorded order of births, sleeps and wake-ups, carried out
//! again with other durations.

use std::sync::{Mutex, OnceLock, PoisonError};

use proctrace_classify::fast::Bits;
use proctrace_recording::Recording;
use proctrace_recording::order::in_order;
use proctrace_recording::polls::Role;
use proctrace_recording::task::Task;
use proctrace_recording::waits::{Wait, Waker};
use proctrace_wire::WaitFor;

use super::NOBODY;

/// Part that is taken out of the recording.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut<'a> {
    Nothing,
    /// Everything that these tasks do themselves.
    Tasks(&'a Bits),
    /// Only their waits for a point in time.
    Timers(&'a Bits),
    /// All waits for a CPU.
    CpuWaits,
}

/// Time by which the command ends earlier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// The same, if sleeps in a row are not taken for a wait for a child, which is a guess.
    pub(crate) low_ns: u64,
    pub(crate) ns: u64,
}

/// Births and wake-ups in order of time, sorted once for any number of questions.
///
/// Each task goes through its recorded life: it runs for as long as it ran, then sleeps until its waker has
/// come to where it woke it. So a task that waits for two others still waits for the second if the first
/// takes no time. What is not recorded as a wait, such as a sleep of less than the threshold of the recorder,
/// counts as running, so that the gain tends to be too small.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    recording: &'a Recording,
    steps: Steps<'a>,
    first_ns: u64,
    order: Vec<u32>,
    /// The task that forked each task, or [`NOBODY`].
    forkers: Vec<u32>,
    /// The task that ends the command, and when.
    last: (usize, u64),
    /// The wall time if nothing is cut, without and with polls; computed with the first answer.
    today_ns: [OnceLock<u64>; 2],
    /// Memory for where tasks are, used by one question at a time: it is as large as all tasks.
    reused: Mutex<Vec<At>>,
}

/// Step of a wait or of a task, by its index. At the same time in this order: a task that is woken by another one comes
/// after the latter's own waking, and its children after both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A wait ends that no task ended.
    Awake(u32),
    /// A wait ends that another task ended.
    Woken(u32),
    Birth(u32),
}

/// The steps by number: first the births of all tasks, then the ends of all waits.
#[derive(Debug)]
struct Steps<'a> {
    tasks: &'a [Task],
    waits: &'a [Wait],
}

impl<'a> Steps<'a> {
    fn of(recording: &'a Recording) -> Self {
        Self { tasks: recording.tasks(), waits: recording.waits().unwrap_or_default() }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.tasks.len() + self.waits.len()).unwrap_or(u32::MAX)
    }

    #[inline]
    fn get(&self, number: u32) -> (u64, Step) {
        let at = number as usize;
        match self.tasks.get(at) {
            Some(task) => (task.born_ns, Step::Birth(number)),
            None => {
                let wait = at - self.tasks.len();
                let kept = &self.waits[wait];
                let by_task = matches!(kept.waker(), Waker::Task(_));
                let wait = wait as u32;
                (kept.woken_ns(), if by_task { Step::Woken(wait) } else { Step::Awake(wait) })
            }
        }
    }
}

/// Position of a task: at `then_ns` in the recording, and at `now_ns` without what was cut.
#[derive(Debug, Clone, Copy)]
struct At {
    then_ns: u64,
    now_ns: u64,
}

impl<'a> Model<'a> {
    pub(crate) fn of(recording: &'a Recording, last: (usize, u64)) -> Self {
        let steps = Steps::of(recording);
        let order =
            in_order(steps.count(), |number| steps.get(number).0, |number| steps.get(number));
        let forker = |task| recording.forker_of(task).and_then(|forker| u32::try_from(forker).ok());
        let tasks = 0..recording.tasks().len();
        let forkers = tasks.map(|task| forker(task).unwrap_or(NOBODY)).collect();
        Self {
            recording,
            steps,
            first_ns: recording.first_ns(),
            order,
            forkers,
            last,
            today_ns: Default::default(),
            reused: Mutex::default(),
        }
    }

    /// Nanoseconds by which the command ends earlier without what is cut.
    pub(crate) fn earlier(&self, cut: Cut<'_>) -> Earlier {
        let of = |with_polls: bool| {
            let (wall_ns, is_as_recorded) = self.wall_ns(cut, with_polls);
            let today_ns = &self.today_ns[usize::from(with_polls)];
            let today_ns = today_ns.get_or_init(|| match is_as_recorded {
                true => self.last.1.saturating_sub(self.first_ns),
                false => self.wall_ns(Cut::Nothing, with_polls).0,
            });
            today_ns.saturating_sub(wall_ns)
        };
        let ns = of(true);
        let has_polls = !self.recording.polls().is_empty();
        Earlier { low_ns: if has_polls { of(false).min(ns) } else { ns }, ns }
    }

    /// The time from the first record to the end of the command without what is cut, and whether that is the recorded one
    /// if nothing is cut: no task was needed at a time that it had passed already, and none polls for a child.
    ///
    /// With polls, sleeps that seem to wait for a child end with it; without, each takes its time.
    pub(super) fn wall_ns(&self, cut: Cut<'_>, with_polls: bool) -> (u64, bool) {
        let first_ns = self.first_ns;
        let start = |task: &Task| {
            let born_ns = task.born_ns.max(first_ns);
            At { then_ns: born_ns, now_ns: born_ns }
        };
        let mut reused = self.reused.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = &mut *reused;
        tasks.clear();
        tasks.extend(self.steps.tasks.iter().map(start));
        let polls = Some(self.recording.polls()).filter(|polls| with_polls && !polls.is_empty());
        // A task that polls is ahead of the recording until its child has ended.
        let mut replay = Replay { cut, tasks, is_as_recorded: polls.is_none() };
        for number in &self.order {
            let (time_ns, step) = self.steps.get(*number);
            match step {
                Step::Birth(task) => {
                    let forker = self.forkers[task as usize];
                    if forker != NOBODY {
                        let now_ns = replay.advance(forker as usize, time_ns);
                        replay.tasks[task as usize] = At { then_ns: time_ns, now_ns };
                    }
                }
                Step::Awake(wait) | Step::Woken(wait) => {
                    let (at, wait) = (wait as usize, &self.steps.waits[wait as usize]);
                    let role = polls.and_then(|polls| polls.role(self.recording, at));
                    replay.wake(wait, role);
                }
            }
        }
        let (last, end_ns) = self.last;
        let wall_ns = replay.advance(last, end_ns).saturating_sub(first_ns);
        (wall_ns, replay.is_as_recorded)
    }
}

struct Replay<'a> {
    cut: Cut<'a>,
    tasks: &'a mut [At],
    /// No task polls, and none was asked where it had been at a time before its own. Clocks of two CPUs may differ, and
    /// waits overlap in a broken trace.
    is_as_recorded: bool,
}

impl Replay<'_> {
    /// Lets a task run until a time of the recording, and returns when that is now.
    fn advance(&mut self, task: usize, then_ns: u64) -> u64 {
        let at = &mut self.tasks[task];
        if then_ns > at.then_ns {
            let more_ns = if self.cut.runs(task) { then_ns - at.then_ns } else { 0 };
            at.now_ns = at.now_ns.saturating_add(more_ns);
            at.then_ns = then_ns;
        }
        self.is_as_recorded &= then_ns == at.then_ns;
        at.now_ns
    }

    fn wake(&mut self, wait: &Wait, role: Option<Role>) {
        let task = wait.task as usize;
        let asleep_ns = self.advance(task, wait.since_ns());
        let woken_ns = match (wait.waker(), role) {
            (_, Some(Role::Looks)) => asleep_ns,
            (_, Some(Role::Ends(child, ended_ns))) => {
                let until_noticed_ns = wait.woken_ns().saturating_sub(ended_ns);
                let noticed_ns = if self.cut.sleeps(wait) { until_noticed_ns } else { 0 };
                self.advance(child as usize, ended_ns).max(asleep_ns).saturating_add(noticed_ns)
            }
            (Waker::Task(waker), None) if waker != wait.task => {
                self.advance(waker as usize, wait.woken_ns()).max(asleep_ns)
            }
            _ if self.cut.sleeps(wait) => {
                asleep_ns.saturating_add(wait.woken_ns() - wait.since_ns())
            }
            _ => asleep_ns,
        };
        let waits = self.cut.waits_for_cpu(task);
        let for_cpu_ns = if waits { wait.until_ns() - wait.woken_ns() } else { 0 };
        let at = &mut self.tasks[task];
        if wait.until_ns() >= at.then_ns {
            *at = At { then_ns: wait.until_ns(), now_ns: woken_ns.saturating_add(for_cpu_ns) };
        }
    }
}

impl Cut<'_> {
    /// Returns whether what a task does itself takes its time.
    fn runs(&self, task: usize) -> bool {
        !matches!(self, Cut::Tasks(tasks) if tasks.contains(task))
    }

    /// Returns whether a sleep that no task ended takes its time.
    fn sleeps(&self, wait: &Wait) -> bool {
        match self {
            Cut::Tasks(tasks) => !tasks.contains(wait.task as usize),
            Cut::Timers(tasks) => {
                wait.waits_for != WaitFor::Timer || !tasks.contains(wait.task as usize)
            }
            Cut::Nothing | Cut::CpuWaits => true,
        }
    }

    fn waits_for_cpu(&self, task: usize) -> bool {
        match self {
            Cut::Tasks(tasks) => !tasks.contains(task),
            Cut::Nothing | Cut::Timers(_) => true,
            Cut::CpuWaits => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use proctrace_scenes::{BEGIN_NS, MS, Scene};

    /// Four tasks that are born one after the other.
    fn family() -> Recording {
        let mut scene = Scene::new(2, 10 * MS);
        scene.exec(0, 1, "/bin/sh", (0, 0)).fork(MS, 1, 2).fork(2 * MS, 2, 3).thread(3 * MS, 1, 4);
        for task in [4, 3, 2] {
            scene.exit((90 - u64::from(task)) * MS, task, (0, 0));
        }
        scene.exit(100 * MS, 1, (0, 0)).load(Some((100 * MS, 0, 0)))
    }

    fn any_wait() -> impl Strategy<Value = Wait> {
        let waker = prop_oneof![
            2 => (0..4_u32).prop_map(Waker::Task),
            1 => Just(Waker::Interrupt),
            1 => Just(Waker::None),
        ];
        let times = proptest::array::uniform3((0..11_u64).prop_map(|at| BEGIN_NS + at * 10 * MS));
        (0..4_u32, waker, times).prop_map(|(task, waker, mut times)| {
            times.sort_unstable();
            Wait::new(task, WaitFor::Futex, (waker, false), times)
        })
    }

    proptest! {
        #[test]
        fn nothing_changes_if_nothing_is_cut(
            sets in proptest::collection::vec(proptest::collection::vec(any_wait(), 0..6), 64)
        ) {
            let mut recording = family();
            let end_ns = BEGIN_NS + 100 * MS;
            let mut in_order = 0;
            for mut waits in sets {
                waits.sort_unstable_by_key(|wait| (wait.task, wait.until_ns(), wait.since_ns()));
                recording.replace_waits(waits);
                let model = Model::of(&recording, (0, end_ns));
                let (wall_ns, is_in_order) = model.wall_ns(Cut::Nothing, true);
                if is_in_order {
                    prop_assert_eq!(wall_ns, end_ns - recording.first_ns());
                    in_order += 1;
                }
                prop_assert_eq!(model.earlier(Cut::Nothing), Earlier::default());
            }
            prop_assert!(in_order > 0);
        }
    }
}
