//! The bins of the command's wall time: the CPU time used in each, and the demand for CPUs.

use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;

/// Multiple of a number of CPUs above which a bin exceeds that number: tasks are not all sampled at the same instant,
/// so a little of their time may spill into the next bin. With one CPU this is where a bin stops being serial; with the
/// requested cores, where it is overcommitted.
pub(crate) const SPILL: f64 = 1.05;
/// A bin of the command's time: its length, the CPU time used in it, and the demand sampled in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    pub(crate) wall_ns: f64,
    pub(crate) cpu_ns: f64,
    /// `None` without any sample.
    pub(crate) demand: Option<Demand>,
}

/// The demand for CPUs, from the samples in a bin, or from the last one before it if it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Demand {
    /// The fraction of samples with at most one task running or runnable.
    pub(crate) serial: f64,
    /// The fraction with exactly one.
    pub(crate) single: f64,
}

impl Demand {
    /// `None` without a sample.
    fn of(running: &[u32]) -> Option<Self> {
        let part = |of: fn(u32) -> bool| {
            running.iter().filter(|count| of(**count)).count() as f64 / running.len() as f64
        };
        (!running.is_empty())
            .then(|| Self { serial: part(|count| count <= 1), single: part(|count| count == 1) })
    }
}

/// The bins while the command ran.
pub(crate) fn slices(recording: &Recording) -> Vec<Slice> {
    let bins = recording.bins();
    let until_ns = recording.watch().until_ns.min(recording.last_ns()).max(recording.first_ns());
    let (user, system) = (bins.of(BinSeries::User), bins.of(BinSeries::System));
    let width_ns = bins.width_ns as f64;
    let length_ns = until_ns.saturating_sub(bins.start_ns) as f64;
    let demands = demands(recording, user.len());
    user.iter()
        .zip(system)
        .enumerate()
        .map_while(|(at, (user, system))| {
            let wall_ns = (length_ns - at as f64 * width_ns).min(width_ns);
            // CPU time that other processes used after the command's end does not count.
            let cut = until_ns < recording.last_ns() && wall_ns < width_ns;
            let share = if cut { wall_ns / width_ns } else { 1.0 };
            let demand = demands.get(at).copied().flatten();
            (wall_ns > 0.0).then_some(Slice { wall_ns, cpu_ns: (user + system) * share, demand })
        })
        .collect()
}

/// The demand sampled in each of this number of bins. Before the first sample, that sample is
/// assumed.
fn demands(recording: &Recording, bins: usize) -> Vec<Option<Demand>> {
    let (start_ns, width_ns) = (recording.bins().start_ns, recording.bins().width_ns.max(1));
    let mut found: Vec<Vec<u32>> = vec![Vec::new(); bins];
    for tick in recording
        .ticks()
        .unwrap_or_default()
        .iter()
        .filter(|tick| tick.head.time_ns <= recording.watch().until_ns)
    {
        let at = usize::try_from(tick.head.time_ns.saturating_sub(start_ns) / width_ns);
        if let Some(running) = at.ok().and_then(|at| found.get_mut(at)) {
            running.push(tick.running);
        }
    }
    let mut last = found.iter().find_map(|running| Demand::of(running));
    found
        .iter()
        .map(|running| {
            last = Demand::of(running).or(last);
            last
        })
        .collect()
}
