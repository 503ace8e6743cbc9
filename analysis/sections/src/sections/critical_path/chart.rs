//! The critical path over time: which category it is in.

use proctrace_findings::{Axis, Chart, ChartBody, Lines, Series, Unit};
use proctrace_overview::path::Doing;
use proctrace_overview::path::steps::Step;
use proctrace_overview::path_findings::groups;
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use super::category_of;

/// Maximum number of bins: more cannot be distinguished.
const BINS_MAX: u64 = 480;
/// Minimum length of a bin.
const BIN_MIN_NS: u64 = 1_000_000;
/// Categories with a colour of their own: few, so that all that is shown has strong contrast.
const CATEGORIES_MAX: usize = 3;
/// The category of programs without one; it is shown with the other categories, in grey.
const NO_CATEGORY: &str = "other";

/// Names after the categories: the other categories, waiting for a CPU, and waiting for anything
/// else.
const REST: [&str; 3] = ["others", "waiting for a CPU", "waiting for anything else"];

pub(super) fn chart(recording: &Recording, steps: &[Step]) -> Chart {
    let wall_ns = recording.wall_ns().max(1);
    let width_ns = wall_ns.div_ceil(BINS_MAX).max(BIN_MIN_NS);
    let bins = usize::try_from(wall_ns.div_ceil(width_ns)).unwrap_or(1);
    let running: Vec<Step> =
        steps.iter().filter(|step| step.doing == Doing::Running).copied().collect();
    let mut shown: Vec<usize> = groups(&running, |step| category_of(recording, step.program))
        .into_iter()
        .map(|(category, _)| category)
        .filter(|at| recording.categories().get(*at).is_some_and(|name| name != NO_CATEGORY))
        .collect();
    shown.truncate(CATEGORIES_MAX);
    let mut time_ns = vec![vec![0_u64; bins]; shown.len() + REST.len()];
    for step in steps {
        let series = match step.doing {
            Doing::Running => {
                let category = category_of(recording, step.program);
                shown.iter().position(|shown| *shown == category).unwrap_or(shown.len())
            }
            Doing::WaitingForCpu => shown.len() + 1,
            Doing::Waiting(_) => shown.len() + 2,
        };
        let since = |at_ns: u64| at_ns - recording.first_ns();
        spread(&mut time_ns[series], since(step.begin_ns), since(step.end_ns), width_ns);
    }
    let category = |at: &usize| recording.categories().get(*at).cloned().unwrap_or_default();
    let names = shown.iter().map(category).chain(REST.map(str::to_owned));
    let length_ns = |bin: usize| width_ns.min(wall_ns - bin as u64 * width_ns) as f64;
    let share = |(bin, ns): (usize, u64)| Some(100.0 * ns as f64 / length_ns(bin));
    let series = names.zip(time_ns).filter(|(_, time_ns)| time_ns.iter().any(|ns| *ns > 0));
    let series: Vec<Series> = series
        .map(|(name, time_ns)| Series {
            name,
            values: time_ns.into_iter().enumerate().map(share).collect(),
        })
        .collect();
    let body = Lines {
        x_axis: Axis::linear("time since the start", Unit::Nanoseconds),
        y_axis: Axis::linear("share of time", Unit::Percent),
        x: (0..bins).map(|bin| (bin as f64 + 0.5) * width_ns as f64).collect(),
        series,
        stacked: true,
        points: false,
        marks: Vec::new(),
        moments: Vec::new(),
    };
    Chart::new("critical_path", "The critical path over time", ChartBody::Lines(body))
.needs(&[Quantity::Forks, Quantity::Execs, Quantity::Waits]).note(
        "What the wall time went for: one task at a time, by the category of its program. Waiting \
         for anything else: for a timer, a disk or whoever is outside the recording.",
    )
}

/// Adds an interval to the bins that it overlaps.
fn spread(bins: &mut [u64], begin_ns: u64, end_ns: u64, width_ns: u64) {
    let mut begin_ns = begin_ns;
    while begin_ns < end_ns {
        let bin = begin_ns / width_ns;
        let until_ns = end_ns.min((bin + 1).saturating_mul(width_ns));
        if let Some(sum) = usize::try_from(bin).ok().and_then(|bin| bins.get_mut(bin)) {
            *sum += until_ns - begin_ns;
        }
        begin_ns = until_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn nothing_is_lost_between_bins() {
        let mut bins = [0; 4];
        spread(&mut bins, 5, 25, 10);
        spread(&mut bins, 25, 40, 10);
        assert_eq!(bins, [5, 10, 10, 10]);
    }
}
