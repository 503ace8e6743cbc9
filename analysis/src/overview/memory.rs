//! Memory over time: the total of all processes, and the largest consumers.

use std::collections::HashMap;

use proctrace_findings::{Memory, ProcessMemory};
use proctrace_trace::Quantity;
use proctrace_wire::layout;

use crate::recording::Recording;
use crate::recording::process::{MemoryReading, Process};

/// All processes at one tick.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Pass {
    /// When it began.
    pub(crate) time_ns: u64,
    pub(crate) processes: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) pss_bytes: u64,
    pub(crate) uss_bytes: u64,
}

pub(crate) fn memory(recording: &Recording) -> Option<Memory> {
    if !recording.knows.all(&[Quantity::Forks, Quantity::Execs, Quantity::Memory]) {
        return None;
    }
    let interval_ns = recording.header.memory_interval_ns?;
    let passes = passes(&recording.memory_readings, interval_ns);
    let largest = passes.iter().max_by_key(|pass| pass.pss_bytes)?;
    let mut peaks: HashMap<usize, layout::Memory> = HashMap::new();
    for look in &recording.memory_readings {
        let peak = peaks.entry(look.process).or_insert(look.record);
        if look.record.pss_bytes > peak.pss_bytes {
            *peak = look.record;
        }
    }
    let exact = |process: &Process| process.status().map(|_| recording.peak_rss_bytes(process));
    let not_looked_at = || {
        let all = recording.processes.iter().enumerate();
        all.filter(|(at, _)| !peaks.contains_key(at)).map(|(_, process)| process)
    };
    let processes_not_looked_at = not_looked_at().count() as u64;
    let peak_rss_bytes_not_looked_at = not_looked_at().filter_map(exact).max();
    let mut processes: Vec<ProcessMemory> = peaks
        .into_iter()
        .map(|(at, peak)| {
            let process = &recording.processes[at];
            ProcessMemory {
                pid: process.pid,
                program: recording.program_of(process).name.clone(),
                peak_rss_bytes: exact(process),
                rss_bytes: peak.rss_bytes,
                pss_bytes: peak.pss_bytes,
                uss_bytes: peak.uss_bytes,
                shared_bytes: peak.shared_bytes,
                swap_bytes: peak.swap_bytes,
            }
        })
        .collect();
    processes.sort_by_key(|process| (std::cmp::Reverse(process.pss_bytes), process.pid));
    Some(Memory {
        interval_ns,
        passes: passes.len() as u64,
        peak_pss_bytes: largest.pss_bytes,
        rss_bytes_then: largest.rss_bytes,
        uss_bytes_then: largest.uss_bytes,
        processes_then: largest.processes,
        processes,
        processes_not_looked_at,
        peak_rss_bytes_not_looked_at,
    })
}

/// A pass ends where a process occurs again. It also ends after half an interval without a reading,
/// if the next pass is due by then: on a busy machine such pauses occur within a pass.
pub(crate) fn passes<'a>(
    looks: impl IntoIterator<Item = &'a MemoryReading>,
    interval_ns: u64,
) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    let mut seen: HashMap<usize, usize> = HashMap::new();
    let mut last_ns = 0;
    for look in looks {
        let now_ns = look.record.head.time_ns;
        let gap = now_ns.saturating_sub(last_ns) > interval_ns / 2;
        let due = passes
            .last()
            .is_none_or(|pass: &Pass| gap && now_ns.saturating_sub(pass.time_ns) >= interval_ns);
        if due || seen.get(&look.process) == Some(&passes.len()) {
            passes.push(Pass { time_ns: now_ns, ..Pass::default() });
        }
        last_ns = now_ns;
        seen.insert(look.process, passes.len());
        if let Some(pass) = passes.last_mut() {
            pass.processes += 1;
            pass.rss_bytes = pass.rss_bytes.saturating_add(look.record.rss_bytes);
            pass.pss_bytes = pass.pss_bytes.saturating_add(look.record.pss_bytes);
            pass.uss_bytes = pass.uss_bytes.saturating_add(look.record.uss_bytes);
        }
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MB, MS, S, Scene};
    use zerocopy::FromZeros;

    fn look(process: usize, time_ns: u64, pss_bytes: u64) -> MemoryReading {
        let mut record = layout::Memory::new_zeroed();
        record.head.time_ns = time_ns;
        record.pss_bytes = pss_bytes;
        MemoryReading { process, record }
    }

    #[test]
    fn looks_of_one_tick_are_added_up() {
        let looks = [look(0, 10, 5), look(1, 75, 7), look(0, 110, 6), look(2, 300, 1)];
        let passes = passes(&looks, 100);
        let sums: Vec<_> = passes.iter().map(|pass| (pass.processes, pass.pss_bytes)).collect();
        assert_eq!(sums, [(2, 12), (1, 6), (1, 1)]);
    }

    #[test]
    fn peaks_are_those_of_exit_records_and_not_of_looks() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.header().memory_interval_ns = Some(S);
        scene.fork(0, 1, 2).fork(2 * S, 1, 3);
        scene.memory(S, 1, (3 * MB, 2 * MB, MB)).memory(S, 2, (178 * MB, 170 * MB, 160 * MB));
        // Between two readings it grows to 346 MB; another process is born and ends there.
        scene.exit_with(2 * S - MS, 2, (0, 0), |exit| exit.maxrss_pages = 346 * MB / 4096);
        scene.exit_with(2 * S + MS, 3, (0, 0), |exit| exit.maxrss_pages = 50 * MB / 4096);
        scene.memory(3 * S, 1, (3 * MB, 2 * MB, MB));
        let memory = memory(&scene.load(None)).unwrap();
        let of: Vec<_> = memory
            .processes
            .iter()
            .map(|process| (process.pss_bytes / MB, process.peak_rss_bytes.map(|b| b / MB)))
            .collect();
        assert_eq!(of, [(170, Some(346)), (2, None)]);
        assert_eq!(memory.processes_not_looked_at, 1);
        assert_eq!(memory.peak_rss_bytes_not_looked_at, Some(50 * MB));
    }
}
