//! Rates: what happened in the last complete second or window of the recording.

use std::collections::VecDeque;

/// Length of the window of [`Recent`]: tasks are sampled at least once a second.
const WINDOW_NS: u64 = 2_000_000_000;

/// Seconds that are kept.
const SECONDS: usize = 120;

/// An amount per window: the one that is not complete yet, and the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recent {
    window: u64,
    this: u64,
    before: u64,
}

impl Recent {
    /// Adds an amount at a time.
    pub fn add(&mut self, time_ns: u64, amount: u64) {
        let window = time_ns / WINDOW_NS;
        match window.checked_sub(self.window) {
            Some(0) => self.this = self.this.saturating_add(amount),
            Some(windows) => {
                self.before = if windows == 1 { self.this } else { 0 };
                self.this = amount;
                self.window = window;
            }
            None if window + 1 == self.window => self.before = self.before.saturating_add(amount),
            None => {}
        }
    }

    /// Adds all amounts of another.
    pub(crate) fn join(&mut self, other: Self) {
        self.add(other.window.saturating_mul(WINDOW_NS), other.this);
        if let Some(window) = other.window.checked_sub(1) {
            self.add(window.saturating_mul(WINDOW_NS), other.before);
        }
    }

    /// Takes amounts away that were added before.
    pub(crate) fn leave(&mut self, other: Self) {
        match self.window.checked_sub(other.window) {
            Some(0) => {
                self.this = self.this.saturating_sub(other.this);
                self.before = self.before.saturating_sub(other.before);
            }
            Some(1) => self.before = self.before.saturating_sub(other.this),
            _ => {}
        }
    }

    /// The amount per second of the last window that is complete at this time.
    pub fn per_second(&self, now_ns: u64) -> f64 {
        let amount = match (now_ns / WINDOW_NS).checked_sub(self.window) {
            Some(0) => self.before,
            Some(1) => self.this,
            _ => 0,
        };
        amount as f64 * 1e9 / WINDOW_NS as f64
    }
}

/// Events of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Second {
    /// Processes that began.
    pub births: u64,
    /// Processes that ended.
    pub deaths: u64,
    /// Failed look-ups.
    pub lookups_failed: u64,
}

/// The last two minutes, second by second.
#[derive(Debug, Clone)]
pub struct History {
    started_ns: u64,
    /// Number of the first second that is kept.
    first: u64,
    seconds: VecDeque<Second>,
}

impl History {
    /// Makes the history of a recording that started at this time.
    pub fn new(started_ns: u64) -> Self {
        Self { started_ns, first: 0, seconds: VecDeque::new() }
    }

    fn number(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.started_ns) / 1_000_000_000
    }

    /// The second of this time; None if it is not kept any more.
    pub(crate) fn at(&mut self, time_ns: u64) -> Option<&mut Second> {
        let number = self.number(time_ns);
        let mut at = usize::try_from(number.checked_sub(self.first)?).unwrap_or(usize::MAX);
        if at >= 2 * SECONDS {
            self.seconds.clear();
            self.first = number;
            at = 0;
        }
        while self.seconds.len() <= at {
            self.seconds.push_back(Second::default());
        }
        while self.seconds.len() > SECONDS {
            self.seconds.pop_front();
            self.first = self.first.saturating_add(1);
            at = at.checked_sub(1)?;
        }
        self.seconds.get_mut(at)
    }

    /// The last second that is complete at this time; None before the first one is.
    pub fn last(&self, now_ns: u64) -> Option<Second> {
        self.before(now_ns, 1)
    }

    /// The last `count` complete seconds, oldest first.
    pub fn latest(&self, now_ns: u64, count: usize) -> impl Iterator<Item = Second> + '_ {
        (1..=count as u64).rev().filter_map(move |ago| self.before(now_ns, ago))
    }

    fn before(&self, now_ns: u64, seconds: u64) -> Option<Second> {
        let number = self.number(now_ns).checked_sub(seconds)?;
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        // Nothing has happened since the last second that is kept.
        Some(self.seconds.get(at).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_rate_is_that_of_the_last_complete_window() {
        let mut recent = Recent::default();
        recent.add(1, 4);
        assert_eq!(recent.per_second(SECOND), 0.0);
        recent.add(WINDOW_NS, 10);
        assert_eq!(recent.per_second(WINDOW_NS), 2.0);
        // It arrives late.
        recent.add(2, 2);
        assert_eq!(recent.per_second(WINDOW_NS), 3.0);
        assert_eq!(recent.per_second(2 * WINDOW_NS), 5.0);
        assert_eq!(recent.per_second(3 * WINDOW_NS), 0.0);
        recent.add(9 * WINDOW_NS, 1);
        assert_eq!(recent.per_second(9 * WINDOW_NS), 0.0);
    }

    #[test]
    fn amounts_can_be_taken_elsewhere() {
        let (mut from, mut to, mut part) =
            (Recent::default(), Recent::default(), Recent::default());
        for (time, amount) in [(1, 4), (WINDOW_NS, 6)] {
            part.add(time, amount);
            from.add(time, amount);
            from.add(time, 2);
        }
        from.leave(part);
        to.join(part);
        assert_eq!((from.per_second(WINDOW_NS), to.per_second(WINDOW_NS)), (1.0, 2.0));
        assert_eq!((from.per_second(2 * WINDOW_NS), to.per_second(2 * WINDOW_NS)), (1.0, 3.0));
        // The other has gone on.
        from.add(2 * WINDOW_NS, 1);
        from.leave(part);
        assert_eq!(from.per_second(2 * WINDOW_NS), 0.0);
    }

    #[test]
    fn seconds_are_kept_for_two_minutes() {
        let mut history = History::new(100);
        for second in 0..300 {
            history.at(100 + second * SECOND).unwrap().births += second;
        }
        assert_eq!(history.seconds.len(), SECONDS);
        let births = |ago: u64| history.before(100 + 300 * SECOND, ago).map(|s| s.births);
        assert_eq!((births(1), births(120), births(121)), (Some(299), Some(180), None));
        assert_eq!(history.latest(100 + 300 * SECOND, 3).map(|s| s.births).sum::<u64>(), 894);
    }

    #[test]
    fn the_first_second_is_not_known_before_it_is_over() {
        let mut history = History::new(0);
        history.at(5).unwrap().births = 7;
        assert_eq!(history.last(SECOND - 1), None);
        assert_eq!(history.last(SECOND).unwrap().births, 7);
        assert_eq!(history.last(5 * SECOND), Some(Second::default()));
    }

    #[test]
    fn any_time_is_survived() {
        let mut history = History::new(7);
        for time in [u64::MAX, 0, 8, u64::MAX - 1, 500 * SECOND] {
            if let Some(second) = history.at(time) {
                second.births = second.births.saturating_add(1);
            }
            let _ = history.last(time);
        }
        let mut recent = Recent::default();
        for time in [u64::MAX, 0, 1, u64::MAX] {
            recent.add(time, u64::MAX);
            let _ = recent.per_second(time);
        }
        assert!(history.seconds.len() <= SECONDS);
    }
}
