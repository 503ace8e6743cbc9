//! The processes that belong to a pool, and the CPU time of its parts within time windows.

use std::collections::HashMap;

use proctrace_recording::Recording;
use proctrace_recording::tracks::Track;

use crate::sections::pool::find::{Pool, end_ns};

/// The parts of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The parent and its descendants other than workers and writers.
    Parent,
    /// Workers and their descendants.
    Worker,
    /// Siblings with another role, and their descendants.
    Other,
}

/// CPU time of each part in nanoseconds.
pub(crate) type ByPart = [f64; 3];

/// A pool and all descendants.
pub(crate) struct Tree {
    /// The head to which each process of the recording belongs: the parent, a worker or a sibling.
    head_of: Vec<Option<u32>>,
    /// The part of each head.
    part_of: HashMap<usize, Part>,
}

impl Tree {
    pub(crate) fn of(recording: &Recording, pool: &Pool) -> Self {
        let mut part_of = HashMap::from([(pool.parent, Part::Parent)]);
        part_of.extend(pool.workers.iter().map(|worker| (worker.process, Part::Worker)));
        part_of.extend(pool.others.iter().map(|other| (*other, Part::Other)));
        let mut head_of: Vec<Option<u32>> = vec![None; recording.processes().len()];
        for (at, process) in recording.processes().iter().enumerate() {
            head_of[at] = if part_of.contains_key(&at) {
                u32::try_from(at).ok()
            } else {
                // Parents precede their children.
                process.parent().and_then(|parent| head_of[..at].get(parent).copied().flatten())
            };
        }
        Self { head_of, part_of }
    }

    /// The head that a process belongs to: the parent, a worker or a sibling.
    pub(crate) fn head(&self, process: usize) -> Option<usize> {
        self.head_of.get(process).copied().flatten().map(|head| head as usize)
    }

    /// The part that a process belongs to; `None` if it is outside the pool.
    pub(crate) fn part(&self, process: usize) -> Option<Part> {
        self.part_of.get(&self.head(process)?).copied()
    }

    /// CPU time in nanoseconds by window and part. It is spread evenly between two samples of a
    /// process, or over its lifetime if it was too short or used too little to have a series of its
    /// own. For a process that was followed later than its birth, only the time since then.
    pub(crate) fn cpu_within(&self, recording: &Recording, windows: &[(u64, u64)]) -> Vec<ByPart> {
        let mut sums = vec![ByPart::default(); windows.len()];
        let tracks = tracks(recording);
        for (at, process) in recording.processes().iter().enumerate() {
            let Some(part) = self.part(at) else { continue };
            let life = (process.born_ns, end_ns(recording, process));
            match tracks.get(&at) {
                Some(track) => {
                    for (begin_ns, end_ns, cpu_ns) in pieces(recording, track, life) {
                        add(&mut sums, windows, part, (begin_ns, end_ns), cpu_ns);
                    }
                }
                None => add(&mut sums, windows, part, life, process.cpu.total_ns() as f64),
            }
        }
        sums
    }

    /// Total CPU time of each head in nanoseconds.
    pub(crate) fn cpu_of_heads(&self, recording: &Recording) -> HashMap<usize, u64> {
        let mut sums: HashMap<usize, u64> = HashMap::new();
        for (at, process) in recording.processes().iter().enumerate() {
            if let Some(head) = self.head(at) {
                let sum = sums.entry(head).or_default();
                *sum = sum.saturating_add(process.cpu.total_ns());
            }
        }
        sums
    }

    /// CPU time in nanoseconds of each head per bin of the recording, for those that `chosen`
    /// assigns to a group.
    pub(crate) fn cpu_by_bin(
        &self,
        recording: &Recording,
        groups: usize,
        chosen: impl Fn(usize) -> Option<usize>,
    ) -> Vec<Vec<f64>> {
        let bins = recording.bins();
        let mut series = vec![vec![0.0; bins.len()]; groups];
        let tracks = tracks(recording);
        for (at, process) in recording.processes().iter().enumerate() {
            let Some(group) = self.head(at).and_then(&chosen) else { continue };
            let Some(series) = series.get_mut(group) else { continue };
            match tracks.get(&at) {
                Some(track) => {
                    for (bin, cpu_ns) in track.bins() {
                        if let Some(sum) = series.get_mut(bin) {
                            *sum += cpu_ns;
                        }
                    }
                }
                None => {
                    let (first, last) =
                        (bins.bin_of(process.born_ns), bins.bin_of(end_ns(recording, process)));
                    let each = process.cpu.total_ns() as f64 / (last - first + 1) as f64;
                    series[first..=last].iter_mut().for_each(|sum| *sum += each);
                }
            }
        }
        series
    }
}

fn tracks(recording: &Recording) -> HashMap<usize, &Track> {
    recording.tracks().iter().map(|track| (track.process, track)).collect()
}

/// CPU time of a process per bin, within its lifetime.
fn pieces(
    recording: &Recording,
    track: &Track,
    (born_ns, ended_ns): (u64, u64),
) -> impl Iterator<Item = (u64, u64, f64)> {
    let (start_ns, width_ns) = (recording.bins().start_ns, recording.bins().width_ns);
    track.bins().filter(|(_, cpu_ns)| *cpu_ns > 0.0).map(move |(bin, cpu_ns)| {
        let begin_ns = start_ns.saturating_add(width_ns.saturating_mul(bin as u64));
        let end_ns = begin_ns.saturating_add(width_ns).min(ended_ns);
        let begin_ns = begin_ns.max(born_ns).min(end_ns);
        (begin_ns, end_ns, cpu_ns)
    })
}

/// Adds to each window its share of the CPU time used over an interval.
fn add(
    sums: &mut [ByPart],
    windows: &[(u64, u64)],
    part: Part,
    (begin_ns, end_ns): (u64, u64),
    cpu_ns: f64,
) {
    let length = end_ns.saturating_sub(begin_ns);
    for (sums, (from_ns, to_ns)) in sums.iter_mut().zip(windows) {
        let share = if length == 0 {
            // An interval of zero length counts entirely in the window that contains it.
            f64::from(u8::from((*from_ns..*to_ns).contains(&begin_ns)))
        } else {
            let overlap = end_ns.min(*to_ns).saturating_sub(begin_ns.max(*from_ns));
            overlap as f64 / length as f64
        };
        sums[part as usize] += cpu_ns * share;
    }
}
