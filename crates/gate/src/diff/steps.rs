//! Groups of steps that changed between two sides: new ones, those that are gone, and those with other figures.

use proctrace_findings::Kind;
use proctrace_stats::FEWEST_FOR_INTERVAL;
use serde::Serialize;

use super::{Fate, Sides};
use crate::numbers::{Numbers, is_exact};
use crate::side::{Key, family_keys};

/// A group of steps with a figure that changed; 0 on a side without the group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepChange {
    /// The group.
    pub group: String,
    /// The kind of change of the number of its steps; None if that is the same.
    pub fate: Option<Fate>,
    /// Number of its steps.
    pub steps: Numbers,
    /// Number of those that failed.
    pub failures: Option<Numbers>,
    /// Wall time of the longest one, in seconds.
    pub longest_wall_seconds: Option<Numbers>,
    /// Sum of their wall times, in seconds.
    pub wall_seconds: Option<Numbers>,
    /// CPU time of all their processes, in seconds.
    pub cpu_seconds: Option<Numbers>,
    /// Peak of the total PSS of one of them, in bytes; None unless every run that has the group knows it.
    pub peak_pss_bytes: Option<Numbers>,
}

impl StepChange {
    /// True if a figure changed by more than its runs differ.
    fn is_change(&self) -> bool {
        let counts = [Some(&self.steps), self.failures.as_ref()];
        let measured = [
            (&self.longest_wall_seconds, Kind::Wall),
            (&self.wall_seconds, Kind::Wall),
            (&self.cpu_seconds, Kind::Cpu),
            (&self.peak_pss_bytes, Kind::Memory),
        ];
        let counts = counts.into_iter().flatten().map(|numbers| (numbers, Kind::Count));
        let measured =
            measured.into_iter().filter_map(|(numbers, kind)| Some((numbers.as_ref()?, kind)));
        counts.chain(measured).any(|(numbers, kind)| differs(numbers, kind))
    }

    /// Order of groups in a table: by the change of wall time, then by that of the number of steps.
    fn size(&self) -> [f64; 2] {
        let wall = self.wall_seconds.and_then(|numbers| numbers.change);
        [wall, self.steps.change].map(|change| change.unwrap_or(0.0).abs())
    }
}

/// True if a change is more than noise, as far as the runs show that: of counts any, of what is measured one whose interval
/// excludes 0. A value of 0 before leaves no interval: then the values of the two sides must not overlap.
fn differs(numbers: &Numbers, kind: Kind) -> bool {
    let Some(before) = numbers.before else { return false };
    let after = numbers.after;
    if numbers.change.is_none_or(|change| change == 0.0) {
        return false;
    }
    if is_exact(kind) || before.n.min(after.n) < FEWEST_FOR_INTERVAL {
        return true;
    }
    match numbers.interval_percent {
        Some(interval) => interval.low > 0.0 || interval.high < 0.0,
        None => before.greatest < after.least || after.greatest < before.least,
    }
}

impl Sides<'_> {
    /// Groups of steps that changed, the largest change of wall time first.
    pub(super) fn steps(&self) -> Vec<StepChange> {
        let keys = family_keys(&[&self.before, &self.after], "step_runs");
        let mut changed: Vec<StepChange> = keys
            .into_iter()
            .filter_map(|key| self.step_group(key))
            .filter(StepChange::is_change)
            .collect();
        // Keys were sorted before, and the sort is stable.
        changed.sort_by(|a, b| {
            let ([wall_a, steps_a], [wall_b, steps_b]) = (a.size(), b.size());
            wall_b.total_cmp(&wall_a).then(steps_b.total_cmp(&steps_a))
        });
        changed
    }

    fn step_group(&self, key: Key<'_>) -> Option<StepChange> {
        let steps = self.numbers(key)?;
        let of = |family: &str| Key::new(family, key.labels).and_then(|key| self.numbers(key));
        Some(StepChange {
            group: key.label("group")?.to_owned(),
            fate: Fate::of(&steps),
            steps,
            failures: of("step_failures"),
            longest_wall_seconds: of("step_longest_wall_seconds"),
            wall_seconds: of("step_wall_seconds"),
            cpu_seconds: of("step_cpu_seconds"),
            peak_pss_bytes: of("step_peak_pss_bytes").filter(|peak| is_peak_known(&steps, peak)),
        })
    }
}

/// True unless a side has the group, but no reading of its memory fell into it: that is not 0.
fn is_peak_known(steps: &Numbers, peak: &Numbers) -> bool {
    let sides = [(steps.before, peak.before), (Some(steps.after), Some(peak.after))];
    let read = |peak: f64| peak > 0.0;
    sides.into_iter().all(|(steps, peak)| {
        steps.is_none_or(|steps| steps.greatest == 0.0) || peak.is_some_and(|peak| read(peak.least))
    })
}
