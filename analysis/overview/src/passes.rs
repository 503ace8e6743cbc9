//! Passes of memory readings: the total memory of all processes, one interval after the other.

use std::collections::HashMap;

use proctrace_wire::layout::Memory;

use proctrace_recording::Recording;
use proctrace_recording::process::MemoryReading;

/// All processes at one tick.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Pass {
    /// Time at which it began.
    pub time_ns: u64,
    pub processes: u64,
    pub rss_bytes: u64,
    /// Sum of their PSS: what they shared counts once, also where one of them left during the pass.
    pub pss_bytes: u64,
    pub uss_bytes: u64,
    /// True if there is a reading of which USS is not known.
    lacks_uss: bool,
}

impl Pass {
    /// The sum of USS; `None` if that of a process is not known.
    pub fn known_uss_bytes(&self) -> Option<u64> {
        (!self.lacks_uss).then_some(self.uss_bytes)
    }
}

/// True if a reading says which pages are shared. Every resident page is or is not, so one of the two is not 0, unless
/// the source does not know.
pub fn is_divided(memory: &Memory) -> bool {
    memory.rss_bytes == 0 || memory.uss_bytes != 0 || memory.shared_bytes != 0
}

/// Passes over the processes (indices) that are wanted.
pub fn passes(recording: &Recording, wanted: impl Fn(usize) -> bool) -> Vec<Pass> {
    with_readings(recording, wanted).into_iter().map(|(pass, _)| pass).collect()
}

/// The same with the readings of each.
pub fn with_readings(
    recording: &Recording,
    wanted: impl Fn(usize) -> bool,
) -> Vec<(Pass, Vec<&MemoryReading>)> {
    let Some(interval_ns) = recording.header().memory_interval_ns else { return Vec::new() };
    let readings: Vec<&MemoryReading> = recording
        .memory_readings()
        .unwrap_or_default()
        .iter()
        .filter(|reading| wanted(reading.process))
        .collect();
    let departures = Departures::of(recording, &readings);
    grouped(&readings, interval_ns)
        .into_iter()
        .map(|readings| {
            let first = |process, since_ns| departures.first(process, since_ns);
            (total(readings, first), readings.to_vec())
        })
        .collect()
}

/// Times at which processes give back the memory they share: at each exec and at the end.
struct Departures(HashMap<usize, Vec<u64>>);

impl Departures {
    /// Departures of the processes that were read.
    fn of(recording: &Recording, readings: &[&MemoryReading]) -> Self {
        let mut times: HashMap<usize, Vec<u64>> = HashMap::new();
        for reading in readings {
            times.entry(reading.process).or_default();
        }
        for run in recording.runs() {
            if let Some(times) = times.get_mut(&(run.process as usize)) {
                times.push(run.time_ns);
            }
        }
        for (process, times) in &mut times {
            times.extend(recording.processes()[*process].ended_ns());
            times.sort_unstable();
        }
        Self(times)
    }

    fn first(&self, process: usize, since_ns: u64) -> Option<u64> {
        let times = self.0.get(&process)?;
        times.get(times.partition_point(|time_ns| *time_ns <= since_ns)).copied()
    }
}

/// A pass ends where a process occurs again. It also ends after half an interval without a reading,
/// if the next pass is due by then: on a busy machine such pauses occur within a pass.
fn grouped<'s, 'r>(
    readings: &'s [&'r MemoryReading],
    interval_ns: u64,
) -> Vec<&'s [&'r MemoryReading]> {
    let mut groups = Vec::new();
    let mut seen: HashMap<usize, usize> = HashMap::new();
    let (mut begin, mut begin_ns, mut last_ns) = (0, 0, 0);
    for (at, reading) in readings.iter().enumerate() {
        let now_ns = reading.record.head.time_ns;
        let gap = now_ns.saturating_sub(last_ns) > interval_ns / 2;
        let due = gap && now_ns.saturating_sub(begin_ns) >= interval_ns;
        if at > begin && (due || seen.get(&reading.process) == Some(&groups.len())) {
            groups.push(&readings[begin..at]);
            (begin, begin_ns) = (at, now_ns);
        }
        if at == 0 {
            begin_ns = now_ns;
        }
        last_ns = now_ns;
        seen.insert(reading.process, groups.len());
    }
    if begin < readings.len() {
        groups.push(&readings[begin..]);
    }
    groups
}

/// The sum of the readings of a pass.
///
/// They are made one after the other, and each takes milliseconds for each 100 MB. When a process
/// ends or executes another program after its reading, the pages it shared count in larger parts
/// for the processes that are read later: three children of a 200 MB process that end during a pass
/// would add up to 50 + 50 + 66 + 100 MB. These parts cannot be more than what the process had
/// of them, so this is left out; the sum is never more than what was in use, and
/// less by at most this much. (Births have no such effect: the processes of a pass are
/// listed before the first is read, and a child born later only makes the readings smaller.)
fn total(readings: &[&MemoryReading], departs_ns: impl Fn(usize, u64) -> Option<u64>) -> Pass {
    let time_ns = |reading: &&MemoryReading| reading.record.head.time_ns;
    let end_ns = readings.last().map_or(0, time_ns);
    let mut pass = Pass { time_ns: readings.first().map_or(0, time_ns), ..Pass::default() };
    for reading in readings {
        let memory = &reading.record;
        let departed = departs_ns(reading.process, memory.head.time_ns)
            .is_some_and(|departs_ns| departs_ns < end_ns);
        let part_bytes = if departed { memory.uss_bytes } else { memory.pss_bytes };
        pass.processes += 1;
        pass.rss_bytes = pass.rss_bytes.saturating_add(memory.rss_bytes);
        pass.pss_bytes = pass.pss_bytes.saturating_add(part_bytes);
        pass.uss_bytes = pass.uss_bytes.saturating_add(memory.uss_bytes);
        pass.lacks_uss |= !is_divided(memory);
    }
    pass
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MB, MS, S, Scene};
    use proctrace_wire::layout;
    use zerocopy::FromZeros;

    fn reading(process: usize, time_ns: u64, pss_bytes: u64) -> MemoryReading {
        let mut record = layout::Memory::new_zeroed();
        record.head.time_ns = time_ns;
        record.pss_bytes = pss_bytes;
        MemoryReading { process, record }
    }

    #[test]
    fn readings_of_one_tick_are_added_up() {
        let readings =
            [reading(0, 10, 5), reading(1, 75, 7), reading(0, 110, 6), reading(2, 300, 1)];
        let sums: Vec<_> = grouped(&readings.iter().collect::<Vec<_>>(), 100)
            .into_iter()
            .map(|group| total(group, |_, _| None))
            .map(|pass| (pass.time_ns, pass.processes, pass.pss_bytes))
            .collect();
        assert_eq!(sums, [(10, 2, 12), (110, 1, 6), (300, 1, 1)]);
        assert!(grouped(&[], 100).is_empty());
    }

    #[test]
    fn what_a_child_shares_until_its_exec_counts_once() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.header().memory_interval_ns = Some(S);
        let of = |pss: u64| (pss * MB, pss * MB, pss * MB);
        // Of vfork(2) the kernel tells the whole memory for both.
        scene.memory(S, 1, of(400)).vfork(S + MS, 1, 2).memory(2 * S, 1, of(400));
        scene.memory(2 * S + MS, 2, of(400)).exec(2 * S + 2 * MS, 2, "/bin/true", (0, 0));
        scene.memory(3 * S, 1, of(400)).memory(3 * S + MS, 2, of(1));
        let passes: Vec<_> = passes(&scene.load(None), |_| true)
            .iter()
            .map(|pass| (pass.processes, pass.pss_bytes / MB))
            .collect();
        assert_eq!(passes, [(1, 400), (1, 400), (2, 401)]);
    }

    #[test]
    fn what_leaves_during_a_pass_does_not_count_twice() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.header().memory_interval_ns = Some(S);
        scene.fork(0, 1, 2).fork(0, 1, 3).fork(0, 1, 4);
        let of = |pss: u64| (200 * MB, pss * MB, 0);
        // 200 MB shared by four: one is read and ends, one is read and executes a program.
        scene.memory(S, 1, of(50)).memory(S + MS, 2, of(50));
        scene.exit_with(S + 2 * MS, 2, (0, 0), |_| {});
        scene.memory(S + 3 * MS, 3, of(66)).exec(S + 4 * MS, 3, "/bin/true", (0, 0));
        scene.memory(S + 5 * MS, 4, of(100));
        // The next pass has those that are left.
        scene.memory(2 * S, 1, of(100)).memory(2 * S + MS, 4, of(100));
        scene.exit_with(2 * S + 2 * MS, 4, (0, 0), |_| {});
        let passes: Vec<_> = passes(&scene.load(None), |_| true)
            .iter()
            .map(|pass| (pass.processes, pass.rss_bytes / MB, pass.pss_bytes / MB))
            .collect();
        assert_eq!(passes, [(4, 800, 150), (2, 400, 200)]);
    }
}
