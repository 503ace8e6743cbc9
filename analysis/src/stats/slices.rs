//! The bins of the command's wall time: the CPU time used in each, and the tasks that wanted a CPU.

use crate::recording::Recording;
use crate::recording::bins::Quantity;

/// A bin counts as beyond a number of CPUs only if more than so many times that number were used:
/// samples of several tasks are not taken at once, so one may spill a little into the next bin.
/// With one CPU that is where a bin stops to be serial, with the cores that were asked for, where it
/// is over-committed.
pub(crate) const SPILL: f64 = 1.05;
/// A bin of the command's time: its length, the CPU time used in it, and what looks found in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    pub(crate) wall_ns: f64,
    pub(crate) cpu_ns: f64,
    /// None where there is no look at all.
    pub(crate) demand: Option<Demand>,
}

/// Of the looks in a bin, or of the last before it if it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Demand {
    /// The part that found at most one task running or runnable.
    pub(crate) serial: f64,
    /// The part that found exactly one.
    pub(crate) single: f64,
}

impl Demand {
    /// None without a look.
    fn of(running: &[u32]) -> Option<Self> {
        let part = |of: fn(u32) -> bool| {
            running.iter().filter(|count| of(**count)).count() as f64 / running.len() as f64
        };
        (!running.is_empty())
            .then(|| Self { serial: part(|count| count <= 1), single: part(|count| count == 1) })
    }
}

/// While the command ran.
pub(crate) fn slices(recording: &Recording) -> Vec<Slice> {
    let bins = &recording.bins;
    let until_ns = recording.watch.until_ns.min(recording.last_ns).max(recording.first_ns);
    let (user, system) = (bins.of(Quantity::User), bins.of(Quantity::System));
    let width_ns = bins.width_ns as f64;
    let length_ns = until_ns.saturating_sub(bins.start_ns) as f64;
    let demands = demands(recording, user.len());
    user.iter()
        .zip(system)
        .enumerate()
        .map_while(|(at, (user, system))| {
            let wall_ns = (length_ns - at as f64 * width_ns).min(width_ns);
            // What others used after the command's end is not its own.
            let cut = until_ns < recording.last_ns && wall_ns < width_ns;
            let share = if cut { wall_ns / width_ns } else { 1.0 };
            let demand = demands.get(at).copied().flatten();
            (wall_ns > 0.0).then_some(Slice { wall_ns, cpu_ns: (user + system) * share, demand })
        })
        .collect()
}

/// What looks found in each of so many bins. What is before the first look is taken to be as that
/// found it.
fn demands(recording: &Recording, bins: usize) -> Vec<Option<Demand>> {
    let (start_ns, width_ns) = (recording.bins.start_ns, recording.bins.width_ns.max(1));
    let mut found: Vec<Vec<u32>> = vec![Vec::new(); bins];
    for tick in recording.ticks.iter().filter(|tick| tick.head.time_ns <= recording.watch.until_ns)
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
