//! The deadlines of the recorder, and how long it may sleep until the next.

use std::time::{Duration, Instant};

use crate::options::Options;
use crate::pace::Pace;

/// Maximum time between two flushes of records: killing the recorder loses no more.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Polling interval while only stragglers are awaited.
const STRAGGLER_INTERVAL: Duration = Duration::from_millis(5);

/// Polling interval for processes that are not children, whose end sends no signal.
const END_INTERVAL: Duration = Duration::from_millis(100);

/// End that is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The command's, which SIGCHLD reports.
    Command,
    /// The end of the command's remaining descendants.
    Stragglers,
    /// The end of processes that already existed.
    Others,
}

/// The deadlines of a recording.
#[derive(Debug)]
pub(crate) struct Timers {
    pace: Pace,
    next_tick: Instant,
    next_flush: Instant,
    next_memory: Option<Instant>,
    memory_interval: Option<Duration>,
    /// None also for a time that overflows.
    time_over: Option<Instant>,
}

impl Timers {
    pub(crate) fn new(options: &Options, began: Instant) -> Self {
        let pace = Pace::new(options.interval);
        Self {
            next_tick: began + pace.pause(),
            pace,
            next_flush: began + FLUSH_INTERVAL,
            next_memory: options.memory_interval.map(|_| began),
            memory_interval: options.memory_interval,
            time_over: options.duration.and_then(|duration| began.checked_add(duration)),
        }
    }

    /// Time until the next deadline.
    pub(crate) fn pause(&self, now: Instant, awaited: Awaited) -> Duration {
        let deadlines =
            [Some(self.next_tick), Some(self.next_flush), self.next_memory, self.time_over];
        let due = deadlines.into_iter().flatten().min().unwrap_or(now);
        let pause = due.saturating_duration_since(now);
        match awaited {
            Awaited::Command => pause,
            Awaited::Stragglers => pause.min(STRAGGLER_INTERVAL),
            Awaited::Others => pause.min(END_INTERVAL),
        }
    }

    pub(crate) fn is_tick_due(&self, now: Instant) -> bool {
        now >= self.next_tick
    }

    /// Schedules the next tick after one at `now` that took `cost` of CPU time. A late tick shifts
    /// the later ones: a burst of ticks would give no information.
    pub(crate) fn ticked(&mut self, now: Instant, cost: Duration) {
        self.pace.note(cost);
        self.next_tick = now + self.pace.pause();
    }

    /// True if a memory reading is due; if so, schedules the next an interval later.
    pub(crate) fn take_memory(&mut self, now: Instant) -> bool {
        let is_due = self.next_memory.is_some_and(|due| now >= due);
        if is_due {
            self.next_memory = self.memory_interval.and_then(|interval| now.checked_add(interval));
        }
        is_due
    }

    /// True if a flush is due; schedules the next likewise.
    pub(crate) fn take_flush(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next_flush;
        if is_due {
            self.next_flush = now + FLUSH_INTERVAL;
        }
        is_due
    }

    /// True if the requested duration has elapsed.
    pub(crate) fn is_time_over(&self, now: Instant) -> bool {
        self.time_over.is_some_and(|time_over| now >= time_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Interval;

    const MS: Duration = Duration::from_millis(1);

    fn timers(options: Options) -> (Timers, Instant) {
        let began = Instant::now();
        (Timers::new(&options, began), began)
    }

    #[test]
    fn the_next_deadline_ends_the_pause() {
        let interval = Interval::Fixed(400 * MS);
        let (mut timers, began) = timers(Options { interval, ..Options::default() });
        assert_eq!(timers.pause(began, Awaited::Command), 400 * MS);
        assert_eq!(timers.pause(began, Awaited::Others), END_INTERVAL);
        assert_eq!(timers.pause(began, Awaited::Stragglers), STRAGGLER_INTERVAL);
        assert_eq!(timers.pause(began + 400 * MS, Awaited::Command), Duration::ZERO);
        assert!(!timers.is_tick_due(began + 399 * MS) && timers.is_tick_due(began + 400 * MS));
        // late by 200 ms: the next one is a full interval later, and the flush precedes it
        timers.ticked(began + 600 * MS, Duration::ZERO);
        assert!(!timers.is_tick_due(began + 999 * MS));
        timers.ticked(began + 900 * MS, Duration::ZERO);
        assert_eq!(timers.pause(began + 900 * MS, Awaited::Command), 100 * MS);
        assert!(!timers.take_flush(began + 999 * MS));
        assert!(timers.take_flush(began + 1000 * MS) && !timers.take_flush(began + 1000 * MS));
    }

    #[test]
    fn memory_is_looked_at_first_and_then_at_its_own_pace() {
        let memory_interval = Some(30 * MS);
        let (mut looking, began) = timers(Options { memory_interval, ..Options::default() });
        assert_eq!(looking.pause(began, Awaited::Command), Duration::ZERO);
        assert!(looking.take_memory(began) && !looking.take_memory(began + 29 * MS));
        assert_eq!(looking.pause(began, Awaited::Command), 30 * MS);
        assert!(looking.take_memory(began + 30 * MS));
        let (mut without, began) = timers(Options::default());
        assert!(!without.take_memory(began + Duration::from_secs(3600)));
    }

    #[test]
    fn a_time_beyond_all_clocks_never_comes() {
        let options = |duration| Options {
            duration: Some(duration),
            memory_interval: Some(duration),
            ..Options::default()
        };
        let (mut endless, began) = timers(options(Duration::MAX));
        assert!(endless.take_memory(began) && !endless.take_memory(began));
        assert!(!endless.is_time_over(began + Duration::from_secs(1 << 30)));
        let (short, began) = timers(options(20 * MS));
        assert!(!short.is_time_over(began + 19 * MS) && short.is_time_over(began + 20 * MS));
        assert_eq!(short.pause(began + 20 * MS, Awaited::Command), Duration::ZERO);
    }
}
