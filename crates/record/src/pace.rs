//! Interval at which all tasks are sampled.

use std::time::Duration;

/// Pause between two sampling passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// Constant.
    Fixed(Duration),
    /// A tenth of a second, or longer, up to a second, to keep the cost of the passes below a
    /// two-thousandth of one CPU. A pass visits all tasks of the machine, so with thousands of them
    /// it takes milliseconds.
    Affordable,
}

const AFFORDABLE_LEAST: Duration = Duration::from_millis(100);
const AFFORDABLE_MOST: Duration = Duration::from_secs(1);
const PASSES_A_PAUSE: u32 = 2000;

impl Interval {
    /// The shortest possible pause.
    pub fn least(self) -> Duration {
        match self {
            Self::Fixed(pause) => pause,
            Self::Affordable => AFFORDABLE_LEAST,
        }
    }
}

/// Adapts the pauses to the cost of the passes.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Interval,
    /// CPU time of a pass: an exponentially weighted mean.
    usual: Option<Duration>,
}

impl Pace {
    pub(crate) fn new(interval: Interval) -> Self {
        Self { interval, usual: None }
    }

    /// Records the CPU time of a pass.
    pub(crate) fn note(&mut self, cost: Duration) {
        self.usual = Some(self.usual.map_or(cost, |usual| (usual * 3 + cost) / 4));
    }

    /// The pause until the next pass.
    pub(crate) fn pause(&self) -> Duration {
        let affordable = self.usual.unwrap_or_default().saturating_mul(PASSES_A_PAUSE);
        match self.interval {
            Interval::Fixed(pause) => pause,
            Interval::Affordable => affordable.clamp(AFFORDABLE_LEAST, AFFORDABLE_MOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(interval: Interval, costs_us: &[u64]) -> Vec<u128> {
        let mut pace = Pace::new(interval);
        let mut after = |us: &u64| {
            pace.note(Duration::from_micros(*us));
            pace.pause().as_millis()
        };
        costs_us.iter().map(&mut after).collect()
    }

    #[test]
    fn dear_passes_come_seldom() {
        assert_eq!(Pace::new(Interval::Affordable).pause(), AFFORDABLE_LEAST);
        // 0.2 ms: 400 ms; a more expensive pass counts a quarter; at most a second; then back down
        let costs = [&[200, 400, 90_000][..], &[0; 40]].concat();
        let pauses = pauses(Interval::Affordable, &costs);
        assert_eq!(pauses[..4], [400, 500, 1000, 1000]);
        assert_eq!(pauses.last(), Some(&100));
    }

    #[test]
    fn what_was_asked_for_is_kept() {
        let interval = Interval::Fixed(Duration::from_millis(7));
        assert_eq!(pauses(interval, &[1, 90_000]), [7, 7]);
        assert_eq!(
            (interval.least(), Interval::Affordable.least()),
            (Duration::from_millis(7), AFFORDABLE_LEAST)
        );
    }
}
