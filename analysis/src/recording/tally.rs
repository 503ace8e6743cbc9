//! Processes and what they used, added up by program.

use std::collections::BTreeMap;

use crate::classify::Program;
use crate::recording::Recording;
use crate::recording::split::Divided;

/// What the processes of one program, or of several, come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) processes: u64,
    /// Of them, those that never called exec.
    pub(crate) forked: u64,
    /// Beside each process's first.
    pub(crate) threads: u64,
    /// Successful execs while recording.
    pub(crate) execs: u64,
    pub(crate) used: Divided,
}

impl Tally {
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.used.cpu.total_ns()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.processes += other.processes;
        self.forked += other.forked;
        self.threads += other.threads;
        self.execs += other.execs;
        self.used.add(&other.used);
    }
}

/// By number of the program. Threads count with their process; a process that never called exec,
/// with its forker's program.
pub(crate) fn by_program(recording: &Recording) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); recording.programs.len()];
    for process in &recording.processes {
        let Some(tally) = tallies.get_mut(process.program) else { continue };
        tally.add(&Tally {
            processes: 1,
            forked: u64::from(process.execs == 0),
            threads: (process.tasks.len() as u64).saturating_sub(1),
            execs: 0,
            used: process.divided(),
        });
    }
    for run in recording.runs.iter().filter(|run| run.happened_here) {
        if let Some(tally) = tallies.get_mut(run.program as usize) {
            tally.execs += 1;
        }
    }
    tallies
}

/// The same by whatever a program is counted with, the most numerous first, without those that
/// nothing ran.
pub(crate) fn by<'a, K: Ord>(
    recording: &'a Recording,
    key: impl Fn(&'a Program) -> Option<K>,
) -> Vec<(K, Tally)> {
    let mut sums: BTreeMap<K, Tally> = BTreeMap::new();
    for (program, tally) in recording.programs.iter().zip(by_program(recording)) {
        if tally != Tally::default()
            && let Some(key) = key(program)
        {
            sums.entry(key).or_default().add(&tally);
        }
    }
    let mut sums: Vec<(K, Tally)> = sums.into_iter().collect();
    sums.sort_by(|(a_key, a), (b_key, b)| {
        (b.processes, b.execs, b.threads)
            .cmp(&(a.processes, a.execs, a.threads))
            .then_with(|| a_key.cmp(b_key))
    });
    sums
}
