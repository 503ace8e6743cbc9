//! The state that a process was in at some time.

use proctrace_overview::path::words;
use proctrace_recording::Recording;
use proctrace_recording::waits::of_task;
use proctrace_wire::{Quantity, WaitFor};

use super::cpu_at::Around;

/// A state: a letter of ps(1), and what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) letter: char,
    pub(super) waits_for: Option<&'static str>,
}

impl State {
    /// The state of the most active task stands for the process.
    fn rank(self) -> u8 {
        match (self.letter, self.waits_for) {
            ('R', None) => 0,
            ('R', Some(_)) => 1,
            ('D', _) => 2,
            ('S', _) => 3,
            _ => 4,
        }
    }
}

/// The state of a process at a time.
pub(super) fn state(
    recording: &Recording,
    tasks: impl Iterator<Item = (usize, Around)>,
    time_ns: u64,
) -> Option<State> {
    let alive = tasks.filter(|(at, _)| {
        let task = &recording.tasks()[*at];
        task.born_ns <= time_ns && task.ended_ns().is_none_or(|ended_ns| ended_ns > time_ns)
    });
    let states = alive.filter_map(|(at, around)| {
        let of_waits = recording
            .knows()
            .all(&[Quantity::Waits])
            .then(|| of_task_waits(recording, at, time_ns))
            .flatten();
        of_waits.or_else(|| sampled(recording, around, time_ns))
    });
    states.min_by_key(|state| state.rank())
}

/// State by the times off the CPU: a task that has a later one, or an end, and is not in one, runs. Of
/// one that was still off the CPU at the end of the recording nothing is known.
fn of_task_waits(recording: &Recording, at: usize, time_ns: u64) -> Option<State> {
    let waits = of_task(recording.waits().unwrap_or_default(), u32::try_from(at).ok()?);
    let next = waits.get(waits.partition_point(|wait| wait.until_ns() <= time_ns));
    let Some(wait) = next.filter(|wait| wait.since_ns() <= time_ns) else {
        let is_followed = next.is_some() || recording.tasks()[at].ended_ns().is_some();
        return is_followed.then_some(State { letter: 'R', waits_for: None });
    };
    if time_ns >= wait.woken_ns() {
        return Some(State { letter: 'R', waits_for: Some(words::object(WaitFor::Cpu)) });
    }
    let letter = match wait.waits_for {
        WaitFor::Disk => 'D',
        WaitFor::Stopped => 'T',
        _ => 'S',
    };
    Some(State { letter, waits_for: Some(words::object(wait.waits_for)) })
}

/// State by the nearest sample that is not further away than an interval.
fn sampled(recording: &Recording, around: Around, time_ns: u64) -> Option<State> {
    let distance_ns =
        |sample: &proctrace_wire::layout::Sample| sample.head.time_ns.abs_diff(time_ns);
    let near = [around.before, around.after].into_iter().flatten();
    let nearest = near.min_by_key(distance_ns)?;
    if distance_ns(&nearest) > recording.header().interval_ns {
        return None;
    }
    let letter = char::from(u8::try_from(nearest.state).ok()?);
    letter.is_ascii_alphabetic().then_some(State { letter, waits_for: None })
}
