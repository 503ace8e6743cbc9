//! CPU time that tasks had used by a given time, from the samples next to it.

use std::path::Path;

use proctrace_lineage::Serials;
use proctrace_replay::records;
use proctrace_trace::Reader;
use proctrace_wire::layout::Sample;
use proctrace_wire::{Record, Stream};

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::process::Process;
use proctrace_recording::task::Task;

/// The samples next to a time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around {
    /// The last one until then.
    pub(super) before: Option<Sample>,
    /// The first one after it.
    pub(super) after: Option<Sample>,
}

/// The samples of tasks next to some times.
#[derive(Debug)]
pub(super) struct Samples<const N: usize> {
    times_ns: [u64; N],
    of_task: FastMap<usize, [Around; N]>,
}

impl<const N: usize> Samples<N> {
    /// CPU times of the tasks of some processes, from the trace.
    pub(super) fn read(
        recording: &Recording,
        path: &Path,
        times_ns: [u64; N],
        wanted: &Bits,
    ) -> Result<Self, AnalysisError> {
        let mut place = Serials::default();
        for (at, task) in recording.tasks().iter().enumerate() {
            if wanted.contains(task.process()) {
                place.insert(task.serial, at);
            }
        }
        let mut of_task: FastMap<usize, [Around; N]> = FastMap::default();
        records(&mut Reader::open(path)?, Stream::Samples, |record| {
            let Record::Sample(sample) = record else { return };
            let Some(task) = place.get(sample.head.task) else { return };
            let arounds = of_task.entry(task).or_insert([Around::default(); N]);
            for (around, time_ns) in arounds.iter_mut().zip(times_ns) {
                let is_until = sample.head.time_ns <= time_ns;
                let side = if is_until { &mut around.before } else { &mut around.after };
                let is_nearer =
                    side.is_none_or(|known| (known.head.time_ns < sample.head.time_ns) == is_until);
                if is_nearer {
                    *side = Some(sample);
                }
            }
        });
        Ok(Self { times_ns, of_task })
    }

    /// CPU times of a task next to one of the times.
    pub(super) fn around(&self, task: usize, which: usize) -> Around {
        self.of_task.get(&task).and_then(|all| all.get(which)).copied().unwrap_or_default()
    }

    /// CPU time that a process had used by one of the times.
    pub(super) fn cpu(&self, recording: &Recording, process: &Process, which: usize) -> CpuAt {
        let Some(time_ns) = self.times_ns.get(which).copied() else { return CpuAt::default() };
        let of = |at: usize| cpu_of(&recording.tasks()[at], self.around(at, which), time_ns);
        process.tasks().map(of).fold(CpuAt::default(), CpuAt::plus)
    }
}

/// CPU time by some time: what is certain, and the most likely value in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CpuAt {
    pub(super) low_ns: u64,
    pub(super) likely_ns: u64,
    pub(super) high_ns: u64,
}

impl CpuAt {
    fn exactly(ns: u64) -> Self {
        Self { low_ns: ns, likely_ns: ns, high_ns: ns }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            low_ns: self.low_ns.saturating_add(other.low_ns),
            likely_ns: self.likely_ns.saturating_add(other.likely_ns),
            high_ns: self.high_ns.saturating_add(other.high_ns),
        }
    }

    /// CPU time used between an earlier time and this one, `length_ns` apart.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            low_ns: self.low_ns.saturating_sub(before.high_ns),
            likely_ns: self.likely_ns.saturating_sub(before.likely_ns),
            high_ns: self.high_ns.saturating_sub(before.low_ns),
        }
    }
}

/// CPU time is known at birth, at samples and at the end. Between two of these, a task uses at most the
/// time that passes.
fn cpu_of(task: &Task, around: Around, time_ns: u64) -> CpuAt {
    let followed = |run_ns: u64| run_ns.saturating_sub(task.before().map_or(0, |b| b.run_ns));
    let point = |sample: Sample| (sample.head.time_ns, followed(sample.run_ns));
    let end = task.end().map(|end| (end.time_ns, followed(end.record.used.run_ns)));
    if time_ns < task.born_ns {
        return CpuAt::default();
    }
    if let Some((ended_ns, run_ns)) = end
        && ended_ns <= time_ns
    {
        return CpuAt::exactly(run_ns);
    }
    let (from_ns, from_run_ns) = around.before.map_or((task.born_ns, 0), point);
    let passed_ns = time_ns.saturating_sub(from_ns);
    let most_ns = from_run_ns.saturating_add(passed_ns);
    let Some((to_ns, to_run_ns)) = around.after.map(point).or(end) else {
        return CpuAt { low_ns: from_run_ns, likely_ns: from_run_ns, high_ns: most_ns };
    };
    let to_run_ns = to_run_ns.max(from_run_ns);
    let left_ns = to_ns.saturating_sub(time_ns);
    let high_ns = to_run_ns.min(most_ns);
    let low_ns = to_run_ns.saturating_sub(left_ns).max(from_run_ns).min(high_ns);
    let grown = u128::from(to_run_ns - from_run_ns) * u128::from(passed_ns);
    let length_ns = u128::from(passed_ns) + u128::from(left_ns);
    let part_ns = u64::try_from(grown / length_ns.max(1)).unwrap_or(u64::MAX);
    let likely_ns = from_run_ns.saturating_add(part_ns).clamp(low_ns, high_ns);
    CpuAt { low_ns, likely_ns, high_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{BEGIN_NS, MS, S, Scene};

    #[test]
    fn cpu_time_is_between_what_is_known_before_and_after() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/job", (0, 0));
        scene.sample(S, 1, (400 * MS, 0)).sample(2 * S, 1, (500 * MS, 0));
        scene.exit(3 * S, 1, (1500 * MS, 0));
        let file = scene.file(None);
        let recording =
            Recording::load(file.path(), &proctrace_classify::Rules::built_in()).unwrap();
        let mut wanted = Bits::default();
        wanted.insert(0);
        let times = [0, S, 1500 * MS, 1950 * MS, 2500 * MS, 3 * S].map(|ns| BEGIN_NS + ns);
        let samples = Samples::read(&recording, file.path(), times, &wanted).unwrap();
        let of = |which| {
            let cpu = samples.cpu(&recording, &recording.processes()[0], which);
            (cpu.low_ns / MS, cpu.likely_ns / MS, cpu.high_ns / MS)
        };
        assert_eq!(of(0), (0, 0, 0));
        assert_eq!(of(1), (400, 400, 400));
        assert_eq!(of(2), (400, 450, 500));
        // 50 ms later it has 500.
        assert_eq!(of(3), (450, 495, 500));
        // It runs all the time.
        assert_eq!(of(4), (1000, 1000, 1000));
        assert_eq!(of(5), (1500, 1500, 1500));
    }
}
