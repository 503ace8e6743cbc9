//! CPU time series of the individual processes that matter most.

use crate::bins::Bins;
use crate::process::Process;
use crate::task::Task;

/// Maximum processes with a series of their own: those that used most CPU time.
const TRACKS_MAX: usize = 512;
/// Minimum lifetime in bins: shorter ones show no course over time.
const LIFE_BINS_MIN: u64 = 5;

/// The time series of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// Index of the process.
    pub process: usize,
    /// Bin of the first of `cpu_ns`.
    first_bin: usize,
    /// CPU time in nanoseconds of consecutive bins: only those in which it lived, as most live for a small part of a long
    /// recording.
    cpu_ns: Vec<f32>,
}

impl Track {
    fn add(&mut self, bin: usize, cpu_ns: f64) {
        if self.cpu_ns.is_empty() {
            self.first_bin = bin;
        }
        if bin < self.first_bin {
            let earlier = self.first_bin - bin;
            self.cpu_ns.splice(..0, std::iter::repeat_n(0.0, earlier));
            self.first_bin = bin;
        }
        let at = bin - self.first_bin;
        if at >= self.cpu_ns.len() {
            self.cpu_ns.resize(at + 1, 0.0);
        }
        self.cpu_ns[at] += cpu_ns as f32;
    }

    /// The bins in which it may have used CPU time, with that time in nanoseconds, in order.
    pub fn bins(&self) -> impl Iterator<Item = (usize, f64)> + Clone + '_ {
        (self.first_bin..).zip(self.cpu_ns.iter().map(|cpu_ns| f64::from(*cpu_ns)))
    }
}

/// Time series of the processes that lived long enough and used most CPU time.
#[derive(Debug, Default)]
pub struct Tracks {
    tracks: Vec<Track>,
    of_process: Vec<u16>,
}

const NONE: u16 = u16::MAX;

impl Tracks {
    /// Chooses the processes to follow. The usage of those alive at the end is not known yet; they
    /// are ranked first.
    pub fn choose(processes: &[Process], tasks: &[Task], bins: &Bins, last_ns: u64) -> Self {
        let mut chosen: Vec<(u64, usize)> = processes
            .iter()
            .enumerate()
            .filter_map(|(at, process)| {
                let ends = || process.tasks().map(|task| tasks[task].ended_ns());
                let ended_ns = if ends().all(|ended_ns| ended_ns.is_some()) {
                    ends().flatten().max().unwrap_or(process.born_ns)
                } else {
                    last_ns
                };
                let life_ns = ended_ns.saturating_sub(process.born_ns);
                if life_ns < bins.width_ns.saturating_mul(LIFE_BINS_MIN) {
                    return None;
                }
                let used_ns = process
                    .tasks()
                    .map(|task| tasks[task].end().map_or(u64::MAX, |end| end.record.used.run_ns))
                    .fold(0, u64::saturating_add);
                Some((used_ns, at))
            })
            .collect();
        chosen.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        chosen.truncate(TRACKS_MAX);
        let mut of_process = vec![NONE; processes.len()];
        let mut tracks = Vec::with_capacity(chosen.len());
        for (_, process) in chosen {
            of_process[process] = u16::try_from(tracks.len()).unwrap_or(NONE);
            tracks.push(Track { process, first_bin: 0, cpu_ns: Vec::new() });
        }
        Self { tracks, of_process }
    }

    /// Adds CPU time of a process in a bin, if it is followed.
    #[inline]
    pub fn add(&mut self, process: usize, bin: usize, cpu_ns: f64) {
        let at = self.of_process.get(process).copied().unwrap_or(NONE);
        if let Some(track) = self.tracks.get_mut(usize::from(at)) {
            track.add(bin, cpu_ns);
        }
    }

    pub fn into_inner(self) -> Vec<Track> {
        self.tracks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_has_what_was_added_in_any_order() {
        let mut track = Track { process: 0, first_bin: 0, cpu_ns: Vec::new() };
        assert_eq!(track.bins().count(), 0);
        for (bin, cpu_ns) in [(7, 1.0), (9, 2.0), (5, 3.0), (7, 4.0)] {
            track.add(bin, cpu_ns);
        }
        let bins: Vec<_> = track.bins().collect();
        assert_eq!(bins, [(5, 3.0), (6, 0.0), (7, 5.0), (8, 0.0), (9, 2.0)]);
    }
}
