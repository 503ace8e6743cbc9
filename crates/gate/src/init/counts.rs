//! Limits of counts in a first budget: tight where all recordings agree, as wide as they differ elsewhere.

use std::fmt::Write as _;

use super::{sample, toml_key, written};
use crate::side::{Key, Side};

/// Recordings that show well enough that counts do not vary.
const ENOUGH_IF_SAME: usize = 3;

/// Recordings from which the limits of counts that vary can follow: one more run like ten others is above their
/// range by as much again in one of a thousand cases.
const ENOUGH_IF_VARYING: usize = 10;

/// Tolerance for failed look-ups, relative and absolute: commands such as ps read /proc, whose
/// entries change with other load on the machine.
const LOOKUPS_FACTOR: f64 = 1.05;
const LOOKUPS: f64 = 10.0;

/// Margin by which a count may exceed the recorded maximum, although it did not vary.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Slack {
    None,
    Lookups,
}

impl Slack {
    fn ceiling(self, greatest: f64) -> f64 {
        match self {
            Self::None => greatest,
            Self::Lookups => (greatest * LOOKUPS_FACTOR).ceil() + LOOKUPS,
        }
    }
}

/// Number of ranges that a run may lie above the largest recorded count. With these, a run that is like the others
/// exceeds it in 27, 9, 3 and 1 of a thousand cases; a simulation in the tests has the rate.
fn ranges(recordings: usize) -> f64 {
    match recordings {
        0..ENOUGH_IF_SAME => 10.0,
        3..5 => 4.0,
        5..ENOUGH_IF_VARYING => 2.0,
        _ => 1.0,
    }
}

/// The limits of counts, as they are written.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) text: String,
    written: usize,
    varying: usize,
}

impl Counts {
    /// Writes the ceiling of a count, if every run has it. Two recordings that differ do not say by how much others
    /// will: such a limit only warns.
    pub(super) fn push(&mut self, side: &Side<'_>, key: Key<'_>, slack: Slack) {
        let Some(sample) = sample(side, key) else { return };
        self.written += 1;
        let name = toml_key(&key.to_string());
        let tight = slack.ceiling(sample.greatest);
        let wide = sample.greatest + ranges(sample.n) * (sample.greatest - sample.least);
        let seen = if sample.is_constant() {
            String::new()
        } else {
            format!("  # {} to {} in {} runs", sample.least, sample.greatest, sample.n)
        };
        let varies = wide > tight;
        self.varying += usize::from(varies);
        let ceiling = written(wide.max(tight));
        // Writing to a String cannot fail.
        let _ = if varies && sample.n < ENOUGH_IF_SAME {
            writeln!(self.text, "{name} = {{ absolute = {ceiling}, severity = \"warn\" }}{seen}")
        } else {
            writeln!(self.text, "{name} = \"|{ceiling}\"{seen}")
        };
    }

    /// Variation of counts in these recordings.
    pub(super) fn variation(&self, recordings: usize) -> Variation {
        Variation { recordings, written: self.written, varying: self.varying }
    }
}

/// Variation of counts in recordings, and how many more recordings would make it certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variation {
    /// Number of recordings.
    pub recordings: usize,
    /// Number of limits of counts.
    pub written: usize,
    /// Number of these that differ between the recordings by more than is allowed anyway.
    pub varying: usize,
}

impl Variation {
    /// Number of further recordings that are advisable.
    pub fn missing(&self) -> usize {
        let enough = if self.varying > 0 { ENOUGH_IF_VARYING } else { ENOUGH_IF_SAME };
        enough.saturating_sub(self.recordings)
    }

    /// The advice in words, if more recordings are advisable.
    pub fn advice(&self) -> Option<String> {
        let missing = self.missing();
        let all = self.recordings + missing;
        let are = |number: usize| if number == 1 { "is" } else { "are" };
        let more = format!("{missing} more {} advisable ({all} in all)", are(missing));
        match (missing, self.recordings, self.varying) {
            (0, ..) => None,
            (_, 1, _) => Some(format!(
                "a single recording does not show whether counts vary between runs: {more}"
            )),
            (_, runs, 0) => Some(format!("counts are the same in {runs} recordings: {more}")),
            (_, runs, varying) => Some(format!(
                "{varying} of {} counts differ between {runs} recordings: {more}",
                self.written
            )),
        }
    }

    /// Description of how the limits of what varies were found.
    pub(super) fn how(&self) -> Option<String> {
        let ranges = ranges(self.recordings);
        let times = if ranges == 1.0 { "once".to_owned() } else { format!("{ranges} times") };
        let so = if self.recordings < ENOUGH_IF_SAME { ", and only warns" } else { "" };
        (self.varying > 0).then(|| {
            format!("The limit of a count that differs is the recorded maximum plus {times} the range{so}.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_stats::noise::Noise;

    #[test]
    fn a_run_like_the_others_seldom_exceeds_the_limit() {
        let mut noise = Noise::new(11, 0.1);
        let mut rate = |recordings: usize| {
            let alarms = (0..20_000)
                .filter(|_| {
                    let of = noise.runs(recordings, 100.0);
                    let greatest = of.iter().copied().fold(0.0, f64::max);
                    let least = of.iter().copied().fold(f64::INFINITY, f64::min);
                    noise.runs(1, 100.0)[0] > greatest + ranges(recordings) * (greatest - least)
                })
                .count();
            println!("{recordings} recordings: {alarms} of 20000");
            alarms
        };
        assert!(rate(2) < 800);
        assert!(rate(3) < 300);
        assert!(rate(5) < 120);
        assert!(rate(10) < 60);
    }

    #[test]
    fn it_is_said_how_many_more_recordings_are_advisable() {
        let advice = |recordings, varying| Variation { recordings, written: 9, varying }.advice();
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(
            advice(1, 0),
            says(
                "a single recording does not show whether counts vary between runs: 2 more are advisable (3 in all)"
            )
        );
        assert_eq!(
            advice(2, 0),
            says("counts are the same in 2 recordings: 1 more is advisable (3 in all)")
        );
        assert_eq!(advice(3, 0), None);
        assert_eq!(
            advice(3, 4),
            says("4 of 9 counts differ between 3 recordings: 7 more are advisable (10 in all)")
        );
        assert_eq!(advice(10, 4), None);
    }
}
