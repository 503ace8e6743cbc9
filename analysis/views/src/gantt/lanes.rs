//! Assigns lanes, and so colours, to categories.

use proctrace_findings::{Bar, Lane};
use proctrace_recording::Recording;
use proctrace_recording::process::Process;

use super::number;

/// Maximum categories with a lane, and so a colour, of their own; the others share one. More
/// colours cannot be distinguished.
pub(super) const LANES_MAX: usize = 9;

/// The lanes, and the categories in them.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Lanes by category number.
    of_category: Vec<u32>,
}

impl Lanes {
    /// A lane for each of the categories with the largest share of the chosen processes, or of the
    /// CPU time.
    pub(crate) fn of(recording: &Recording, chosen: &[bool]) -> Self {
        let categories = recording.categories().len();
        let mut processes = vec![0_u64; categories];
        let mut cpu_ns = vec![0_u64; categories];
        for (process, chosen) in recording.processes().iter().zip(chosen) {
            let category = recording.category_of(process);
            if *chosen && category < categories {
                processes[category] += 1;
                cpu_ns[category] = cpu_ns[category].saturating_add(process.cpu.total_ns());
            }
        }
        let weights: Vec<f64> = shares(&processes)
            .zip(shares(&cpu_ns))
            .map(|(of_processes, of_cpu)| f64::max(of_processes, of_cpu))
            .collect();
        let mut ranked: Vec<usize> = (0..categories).filter(|at| processes[*at] > 0).collect();
        ranked.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        ranked.truncate(LANES_MAX);
        ranked.sort_by_key(|at| (std::cmp::Reverse(processes[*at]), *at));

        let mut of_category = vec![number(ranked.len()); categories];
        let mut lanes = Vec::with_capacity(ranked.len() + 1);
        for category in &ranked {
            of_category[*category] = number(lanes.len());
            lanes.push(Lane {
                name: recording.categories()[*category].clone(),
                processes: 0,
                threads: 0,
                is_rest: false,
            });
        }
        if ranked.len() < categories {
            let name = "other categories".to_owned();
            lanes.push(Lane { name, processes: 0, threads: 0, is_rest: true });
        }
        Self { lanes, of_category }
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn name(&self, lane: usize) -> &str {
        &self.lanes[lane].name
    }

    pub(crate) fn of_category(&self, category: usize) -> usize {
        self.of_category.get(category).map_or(0, |lane| *lane as usize)
    }

    pub(crate) fn of_process(&self, recording: &Recording, process: &Process) -> u32 {
        number(self.of_category(recording.category_of(process)))
    }

    /// The lanes, with the number of processes and threads in each.
    pub(crate) fn counted_processes(mut self, recording: &Recording) -> Vec<Lane> {
        for process in recording.processes() {
            let at = self.of_process(recording, process) as usize;
            let tasks = process.tasks().len() as u64;
            if let Some(lane) = self.lanes.get_mut(at) {
                lane.processes += 1;
                lane.threads += tasks.saturating_sub(1);
            }
        }
        self.lanes
    }

    /// The lanes, with the number of bars in each.
    pub(crate) fn counted(mut self, bars: &[Bar]) -> Vec<Lane> {
        for bar in bars {
            let lane = &mut self.lanes[bar.lane as usize];
            if bar.is_thread {
                lane.threads += 1;
            } else {
                lane.processes += 1;
            }
        }
        self.lanes
    }
}

/// Fractions of the total. In floating point, because the times of a broken trace may overflow.
fn shares(of: &[u64]) -> impl Iterator<Item = f64> {
    let whole = of.iter().map(|n| *n as f64).sum::<f64>().max(1.0);
    of.iter().map(move |n| *n as f64 / whole)
}
