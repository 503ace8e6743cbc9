//! The life of every process, with what the tree did meanwhile.

use std::collections::HashMap;

use proctrace_findings::{Bar, Gantt, Lane};

use crate::bins::Quantity;
use crate::recording::Recording;

/// As many programs have a lane of their own; the others share one.
const LANES: usize = 24;

/// Strips are drawn in at most so many bins: one to a pixel or two.
const STRIP_BINS: usize = 600;

/// Every process as a bar, and the strips above them.
pub fn gantt(recording: &Recording) -> Gantt {
    let mut counts: HashMap<usize, u64> = HashMap::new();
    for process in &recording.processes {
        *counts.entry(process.program).or_default() += 1;
    }
    let mut ranked: Vec<(usize, u64)> = counts.into_iter().collect();
    ranked.sort_by_key(|(program, count)| (std::cmp::Reverse(*count), *program));

    let shown = if ranked.len() > LANES + 1 { LANES } else { ranked.len() };
    let mut lanes: Vec<Lane> = ranked[..shown]
        .iter()
        .map(|(program, count)| Lane {
            name: recording.programs[*program].name.clone(),
            processes: *count,
        })
        .collect();
    let lane_of: HashMap<usize, usize> =
        ranked[..shown].iter().enumerate().map(|(lane, (program, _))| (*program, lane)).collect();
    let rest: u64 = ranked[shown..].iter().map(|(_, count)| count).sum();
    if rest > 0 {
        let name = format!("of {} other programs", ranked.len() - shown);
        lanes.push(Lane { name, processes: rest });
    }

    let begin = recording.first_ns;
    let length = recording.recorded_ns();
    let bars = recording
        .processes
        .iter()
        .map(|process| Bar {
            lane: lane_of.get(&process.program).copied().unwrap_or(shown),
            name: recording.program_of(process).name.clone(),
            pid: process.pid,
            begin_ns: process.born_ns.saturating_sub(begin),
            end_ns: process.ended_ns.map_or(length, |end| end.saturating_sub(begin)),
            depth: process.depth,
        })
        .collect();

    let bins = &recording.bins;
    let merged = bins.len().div_ceil(STRIP_BINS).max(1);
    let bin_ns = bins.width_ns.saturating_mul(merged as u64);
    let per_second = |values: &[f64]| -> Vec<f64> {
        let seconds = bin_ns as f64 / 1e9;
        values.chunks(merged).map(|chunk| chunk.iter().sum::<f64>() / seconds).collect()
    };
    let cores = |values: &[f64]| -> Vec<f64> {
        per_second(values).into_iter().map(|ns_per_second| ns_per_second / 1e9).collect()
    };
    Gantt {
        title: recording.header.command.join(" "),
        wall_ns: length,
        cores: recording.header.cpus,
        lanes,
        bars,
        bin_ns,
        user_cores: cores(bins.of(Quantity::User)),
        system_cores: cores(bins.of(Quantity::System)),
        forks_per_second: per_second(bins.of(Quantity::Forks)),
    }
}
