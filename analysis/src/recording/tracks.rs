//! CPU time series of the individual processes that matter most.

use crate::recording::bins::Bins;
use crate::recording::process::{Process, Task};

/// Maximum processes with a series of their own: those that used most CPU time.
const TRACKS_MAX: usize = 512;
/// Minimum lifetime in bins: shorter ones show no course over time.
const LIFE_BINS_MIN: u64 = 5;

/// The time series of one process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Track {
    /// Index of the process.
    pub(crate) process: usize,
    /// CPU time in nanoseconds, by bin.
    pub(crate) cpu_ns: Vec<f32>,
}

/// Time series of the processes that lived long enough and used most CPU time.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    tracks: Vec<Track>,
    of_process: Vec<u16>,
}

const NONE: u16 = u16::MAX;

impl Tracks {
    /// Chooses the processes to follow. The usage of those alive at the end is not known yet; they
    /// are ranked first.
    pub(crate) fn choose(processes: &[Process], tasks: &[Task], bins: &Bins, last_ns: u64) -> Self {
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
                    .map(|task| tasks[task].end().map_or(u64::MAX, |end| end.record.run_ns))
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
            tracks.push(Track { process, cpu_ns: vec![0.0; bins.len()] });
        }
        Self { tracks, of_process }
    }

    /// Adds CPU time of a process in a bin, if it is followed.
    #[inline]
    pub(crate) fn add(&mut self, process: usize, bin: usize, cpu_ns: f64) {
        let at = self.of_process.get(process).copied().unwrap_or(NONE);
        if let Some(track) = self.tracks.get_mut(usize::from(at)) {
            track.cpu_ns[bin] += cpu_ns as f32;
        }
    }

    pub(crate) fn into_inner(self) -> Vec<Track> {
        self.tracks
    }
}
