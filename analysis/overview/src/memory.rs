//! Memory over time: the total of all processes, and the largest consumers.

use std::collections::HashMap;

use proctrace_findings::{Memory, ProcessMemory};
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_wire::{Quantity, layout};

use crate::passes::{is_divided, passes};

pub fn memory(recording: &Recording) -> Option<Memory> {
    let knows = recording.knows();
    let who = knows.is_of_a_tree() || knows.all(&[Quantity::Forks, Quantity::Execs]);
    if !who || !knows.all(&[Quantity::Memory]) {
        return None;
    }
    let interval_ns = recording.header().memory_interval_ns?;
    let passes = passes(recording, |_| true);
    let largest = passes.iter().max_by_key(|pass| pass.pss_bytes)?;
    let mut peaks: HashMap<usize, layout::Memory> = HashMap::new();
    for look in recording.memory_readings().unwrap_or_default() {
        let peak = peaks.entry(look.process).or_insert(look.record);
        if look.record.pss_bytes > peak.pss_bytes {
            *peak = look.record;
        }
    }
    let exact = |process: &Process| process.status().map(|_| recording.peak_rss_bytes(process));
    let not_looked_at = || {
        let all = recording.processes().iter().enumerate();
        all.filter(|(at, _)| !peaks.contains_key(at)).map(|(_, process)| process)
    };
    let processes_not_looked_at = not_looked_at().count() as u64;
    let peak_rss_bytes_not_looked_at = not_looked_at().filter_map(exact).max();
    let mut processes: Vec<ProcessMemory> = peaks
        .into_iter()
        .map(|(at, peak)| {
            let process = &recording.processes()[at];
            ProcessMemory {
                pid: process.pid,
                serial: process.serial,
                time_ns: peak.head.time_ns.saturating_sub(recording.first_ns()),
                program: recording.program_of(process).name.clone(),
                peak_rss_bytes: exact(process),
                rss_bytes: peak.rss_bytes,
                pss_bytes: peak.pss_bytes,
                uss_bytes: is_divided(&peak).then_some(peak.uss_bytes),
                shared_bytes: is_divided(&peak).then_some(peak.shared_bytes),
                swap_bytes: peak.swap_bytes,
            }
        })
        .collect();
    processes.sort_by_key(|process| (std::cmp::Reverse(process.pss_bytes), process.pid));
    Some(Memory {
        interval_ns,
        passes: passes.len() as u64,
        peak_pss_bytes: largest.pss_bytes,
        peak_pss_at_ns: largest.time_ns.saturating_sub(recording.first_ns()),
        rss_bytes_then: largest.rss_bytes,
        uss_bytes_then: largest.known_uss_bytes(),
        processes_then: largest.processes,
        processes,
        processes_not_looked_at,
        peak_rss_bytes_not_looked_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MB, MS, S, Scene};

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
