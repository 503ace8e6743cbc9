//! What the wall time would be if some tasks took no time: the recorded order of births, sleeps and wake-ups,
//! carried out again with other durations.

use proctrace_wire::WaitFor;

use crate::recording::Recording;
use crate::recording::fast::Bits;
use crate::recording::waits::{Wait, Waker};

/// What is taken out of the recording.
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

/// Births and wake-ups in order of time, sorted once for any number of questions.
///
/// Each task goes through its recorded life: it runs for as long as it ran, then sleeps until its waker has
/// come to where it woke it. So a task that waits for two others still waits for the second if the first
/// takes no time. What is not recorded as a wait, such as a sleep of less than the threshold of the recorder,
/// counts as running, so that the gain tends to be too small.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    recording: &'a Recording,
    steps: Vec<Moment>,
    /// The task that ends the command, and when.
    last: (usize, u64),
}

/// What happens to a wait or to a task, by its index. At the same time in this order: a task that is woken by
/// another one comes after the latter's own waking, and its children after both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A wait ends that no task ended.
    Awake(u32),
    /// A wait ends that another task ended.
    Woken(u32),
    Birth(u32),
}

/// A step and its time as one number, in the order of time and then of steps. There are millions of them, and numbers
/// are sorted several times as fast as pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u128);

impl Moment {
    fn new(time_ns: u64, step: Step) -> Self {
        let (kind, index) = match step {
            Step::Awake(wait) => (0, wait),
            Step::Woken(wait) => (1, wait),
            Step::Birth(task) => (2, task),
        };
        Self(u128::from(time_ns) << 64 | kind << 32 | u128::from(index))
    }

    fn time_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn step(self) -> Step {
        let index = self.0 as u32;
        match (self.0 >> 32) as u32 {
            0 => Step::Awake(index),
            1 => Step::Woken(index),
            _ => Step::Birth(index),
        }
    }
}

/// Where a task is: at `then_ns` in the recording, and at `now_ns` without what was cut.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    then_ns: u64,
    now_ns: u64,
}

impl<'a> Model<'a> {
    pub(crate) fn of(recording: &'a Recording, last: (usize, u64)) -> Self {
        let mut steps = Vec::with_capacity(recording.tasks.len() + recording.waits.len());
        for (task, number) in recording.tasks.iter().zip(0..) {
            steps.push(Moment::new(task.born_ns, Step::Birth(number)));
        }
        for (wait, number) in recording.waits.iter().zip(0..) {
            let by_task = matches!(wait.waker, Waker::Task(_));
            let step = if by_task { Step::Woken(number) } else { Step::Awake(number) };
            steps.push(Moment::new(wait.woken_ns, step));
        }
        steps.sort_unstable();
        Self { recording, steps, last }
    }

    /// The time from the first record to the end of the command without what is cut.
    pub(crate) fn wall_ns(&self, cut: Cut<'_>) -> u64 {
        let first_ns = self.recording.first_ns;
        let start = |task: &crate::recording::process::Task| At {
            then_ns: task.born_ns.max(first_ns),
            now_ns: task.born_ns.max(first_ns),
        };
        let mut replay = Replay { cut, tasks: self.recording.tasks.iter().map(start).collect() };
        for moment in &self.steps {
            let time_ns = moment.time_ns();
            match moment.step() {
                Step::Birth(task) => {
                    if let Some(forker) = self.recording.forker_of(task as usize) {
                        let now_ns = replay.advance(forker, time_ns);
                        replay.tasks[task as usize] = At { then_ns: time_ns, now_ns };
                    }
                }
                Step::Awake(wait) | Step::Woken(wait) => {
                    replay.wake(&self.recording.waits[wait as usize])
                }
            }
        }
        replay.advance(self.last.0, self.last.1).saturating_sub(first_ns)
    }
}

struct Replay<'a> {
    cut: Cut<'a>,
    tasks: Vec<At>,
}

impl Replay<'_> {
    /// Lets a task run until a time of the recording, and returns when that is now.
    fn advance(&mut self, task: usize, then_ns: u64) -> u64 {
        let runs = !matches!(self.cut, Cut::Tasks(tasks) if tasks.contains(task));
        let at = &mut self.tasks[task];
        if then_ns > at.then_ns {
            let more_ns = if runs { then_ns - at.then_ns } else { 0 };
            at.now_ns = at.now_ns.saturating_add(more_ns);
            at.then_ns = then_ns;
        }
        at.now_ns
    }

    fn wake(&mut self, wait: &Wait) {
        let task = wait.task as usize;
        let asleep_ns = self.advance(task, wait.since_ns);
        let woken_ns = match wait.waker {
            Waker::Task(waker) if waker != wait.task => {
                self.advance(waker as usize, wait.woken_ns).max(asleep_ns)
            }
            _ if self.sleeps(wait) => asleep_ns.saturating_add(wait.woken_ns - wait.since_ns),
            _ => asleep_ns,
        };
        let for_cpu_ns = if self.waits_for_cpu(task) { wait.until_ns - wait.woken_ns } else { 0 };
        let at = &mut self.tasks[task];
        if wait.until_ns >= at.then_ns {
            *at = At { then_ns: wait.until_ns, now_ns: woken_ns.saturating_add(for_cpu_ns) };
        }
    }

    /// Whether a sleep that no task ended takes its time.
    fn sleeps(&self, wait: &Wait) -> bool {
        match self.cut {
            Cut::Tasks(tasks) => !tasks.contains(wait.task as usize),
            Cut::Timers(tasks) => {
                wait.waits_for != WaitFor::Timer || !tasks.contains(wait.task as usize)
            }
            Cut::Nothing | Cut::CpuWaits => true,
        }
    }

    fn waits_for_cpu(&self, task: usize) -> bool {
        match self.cut {
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

    fn step() -> impl Strategy<Value = Step> {
        let kinds: [fn(u32) -> Step; 3] = [Step::Awake, Step::Woken, Step::Birth];
        (0..3_usize, any::<u32>()).prop_map(move |(kind, index)| kinds[kind](index))
    }

    proptest! {
        #[test]
        fn moments_have_the_order_of_their_times_and_steps(
            one in (any::<u64>(), step()),
            other in (any::<u64>(), step()),
            at_once: bool,
        ) {
            let other = if at_once { (one.0, other.1) } else { other };
            let [first, second] = [one, other].map(|(time_ns, step)| Moment::new(time_ns, step));
            prop_assert_eq!((first.time_ns(), first.step()), one);
            prop_assert_eq!(first.cmp(&second), one.cmp(&other));
        }
    }
}
