//! The phases of a pool, and the CPU time in each.
//!
//! Initialisation ends with the first fork of a worker, the loop is between the last fork and the
//! first exit, the tail between the first and the last exit, and what the parent does after that is
//! merging and finalising (AthenaMP in production: the phases in which a single process works).

use proctrace_recording::Recording;

use crate::sections::pool::find::{Pool, end_ns};
use crate::sections::pool::tree::{Part, Tree};

/// A phase and the CPU time used in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// CPU time of the pool: parent, workers, and all their descendants.
    pub(crate) cpu_ns: f64,
    /// The part of it used by the workers and their descendants.
    pub(crate) workers_cpu_ns: f64,
    /// CPU time of a writer and other siblings of the workers.
    pub(crate) others_cpu_ns: f64,
    /// True if workers run in it.
    pub(crate) parallel: bool,
}

impl Phase {
    pub(crate) fn wall_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// CPUs in use on average; `None` if it took no time.
    pub(crate) fn cores(&self) -> Option<f64> {
        (self.wall_ns() > 0).then(|| self.cpu_ns / self.wall_ns() as f64)
    }
}

/// The phase boundaries. Each is at or after the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moments {
    pub(crate) begin_ns: u64,
    pub(crate) first_fork_ns: u64,
    /// The last fork, or the first exit if workers are forked after that.
    pub(crate) loop_begin_ns: u64,
    pub(crate) first_exit_ns: u64,
    pub(crate) last_exit_ns: u64,
    /// End of the last process that the parent started after the workers; `None` if it started
    /// none, so that merging cannot be distinguished from finalising.
    pub(crate) merged_ns: Option<u64>,
    pub(crate) end_ns: u64,
    /// True if workers were forked after others had ended.
    pub(crate) renewed: bool,
}

impl Moments {
    pub(crate) fn of(recording: &Recording, pool: &Pool) -> Self {
        let parent = &recording.processes()[pool.parent];
        let workers = || pool.workers.iter().map(|worker| &recording.processes()[worker.process]);
        let births = || workers().map(|worker| worker.born_ns);
        let exits = || workers().map(|worker| end_ns(recording, worker));
        let begin_ns = parent.born_ns;
        let first_fork_ns = births().min().unwrap_or(begin_ns).max(begin_ns);
        let last_fork_ns = births().max().unwrap_or(first_fork_ns).max(first_fork_ns);
        let first_exit_ns = exits().min().unwrap_or(last_fork_ns).max(first_fork_ns);
        let last_exit_ns = exits().max().unwrap_or(first_exit_ns).max(first_exit_ns);
        let end_ns = end_ns(recording, parent).max(last_exit_ns);
        let merged_ns = recording
            .processes()
            .iter()
            .filter(|child| child.parent() == Some(pool.parent) && child.born_ns >= last_exit_ns)
            .filter_map(|child| child.ended_ns())
            .filter(|ended_ns| (last_exit_ns..=end_ns).contains(ended_ns))
            .max();
        Self {
            begin_ns,
            first_fork_ns,
            loop_begin_ns: last_fork_ns.min(first_exit_ns),
            first_exit_ns,
            last_exit_ns,
            merged_ns,
            end_ns,
            renewed: last_fork_ns > first_exit_ns,
        }
    }

    /// Name, begin, end, and whether workers run.
    fn stretches(&self) -> Vec<(&'static str, u64, u64, bool)> {
        let mut stretches = vec![
            ("init", self.begin_ns, self.first_fork_ns, false),
            ("fork", self.first_fork_ns, self.loop_begin_ns, true),
            ("loop", self.loop_begin_ns, self.first_exit_ns, true),
            ("tail", self.first_exit_ns, self.last_exit_ns, true),
        ];
        match self.merged_ns {
            Some(merged_ns) => stretches.extend([
                ("merge", self.last_exit_ns, merged_ns, false),
                ("finalise", merged_ns, self.end_ns, false),
            ]),
            None => {
                stretches.push(("merge, finalise", self.last_exit_ns, self.end_ns, false));
            }
        }
        stretches
    }
}

pub(crate) fn phases(recording: &Recording, moments: &Moments, tree: &Tree) -> Vec<Phase> {
    let stretches = moments.stretches();
    let windows: Vec<(u64, u64)> = stretches.iter().map(|s| (s.1, s.2)).collect();
    let used = tree.cpu_within(recording, &windows);
    stretches
        .into_iter()
        .zip(used)
        .map(|((name, begin_ns, end_ns, parallel), used)| Phase {
            name,
            begin_ns,
            end_ns,
            cpu_ns: used.iter().sum(),
            workers_cpu_ns: used[Part::Worker as usize],
            others_cpu_ns: used[Part::Other as usize],
            parallel,
        })
        .collect()
}

/// The cost of the serial phases, and the potential speed-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scaling {
    pub(crate) wall_ns: u64,
    /// Wall time in which no worker ran.
    pub(crate) serial_ns: u64,
    /// CPU time of the workers, which is divisible among them.
    pub(crate) work_ns: f64,
    /// CPU time of a writer and other siblings, which is not divisible.
    pub(crate) beside_ns: f64,
    pub(crate) workers: u64,
}

impl Scaling {
    pub(crate) fn of(phases: &[Phase], workers: u64) -> Self {
        let wall = |parallel: Option<bool>| {
            phases
                .iter()
                .filter(|phase| parallel.is_none_or(|wanted| phase.parallel == wanted))
                .map(Phase::wall_ns)
                .sum()
        };
        Self {
            wall_ns: wall(None),
            serial_ns: wall(Some(false)),
            work_ns: phases.iter().map(|phase| phase.workers_cpu_ns).sum(),
            beside_ns: phases.iter().map(|phase| phase.others_cpu_ns).sum(),
            workers,
        }
    }

    /// Serial fraction of the actual wall time.
    pub(crate) fn serial_percent(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| 100.0 * self.serial_ns as f64 / self.wall_ns as f64)
    }

    /// Wall time with a single process, which would do everything sequentially.
    pub(crate) fn alone_ns(&self) -> f64 {
        self.serial_ns as f64 + self.work_ns + self.beside_ns
    }

    /// The speed-up achieved over a single process.
    pub(crate) fn reached(&self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.alone_ns() / self.wall_ns as f64)
    }

    /// The speed-up possible with this number of workers, if each and the writer had its own CPU.
    pub(crate) fn possible(&self) -> Option<f64> {
        self.faster(self.work_ns / self.workers.max(1) as f64)
    }

    /// The same with any number of workers (Amdahl 1967); `None` where there is no bound.
    pub(crate) fn bound(&self) -> Option<f64> {
        self.faster(0.0)
    }

    fn faster(&self, work_ns: f64) -> Option<f64> {
        let at_best_ns = self.serial_ns as f64 + work_ns.max(self.beside_ns);
        (at_best_ns > 0.0).then(|| self.alone_ns() / at_best_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::pool::find::pools;
    use crate::sections::pool::testing::{MS, Tape, Used};
    use proctrace_overview::options::Options;

    fn found(recording: &Recording) -> (Moments, Vec<Phase>) {
        let pool = &pools(recording, &Options::default(), 2)[0];
        let moments = Moments::of(recording, pool);
        let phases = phases(recording, &moments, &Tree::of(recording, pool));
        (moments, phases)
    }

    /// Init 200 ms with 200 ms of CPU, forks from 200 to 220, loop to 600, tail to 800, merge by a
    /// program to 850, and 50 ms more.
    fn tape() -> Tape {
        let mut tape = Tape::new("athena");
        tape.sample(200, 1, 200);
        tape.fork(200, 1, 2).fork(220, 1, 3);
        tape.exit(600, 2, Used::ms(400)).exit(800, 3, Used::ms(290));
        tape.fork(800, 1, 4).exec(801, 4, "/opt/job/merge").exit(850, 4, Used::ms(50));
        tape.sample(850, 1, 200).exit(900, 1, Used::ms(225));
        tape
    }

    #[test]
    fn phases_lie_between_forks_and_exits() {
        let (_, phases) = found(&tape().recording());
        let times: Vec<_> = phases.iter().map(|phase| (phase.name, phase.wall_ns() / MS)).collect();
        let expected = [
            ("init", 200),
            ("fork", 20),
            ("loop", 380),
            ("tail", 200),
            ("merge", 50),
            ("finalise", 50),
        ];
        assert_eq!(times, expected);
        // Each process's CPU time is spread over its own life: 400 ms in 400, 290 ms in 580.
        let cpu_ms: Vec<f64> = phases.iter().map(|phase| phase.cpu_ns / MS as f64).collect();
        for (found, expected) in cpu_ms.iter().zip([200.0, 20.0, 570.0, 100.0, 50.0, 25.0]) {
            assert!((found - expected).abs() < 0.01, "{cpu_ms:?}");
        }
        assert!((phases[2].cores().unwrap() - 1.5).abs() < 1e-4);
    }

    #[test]
    fn amdahls_law_by_hand() {
        let (_, phases) = found(&tape().recording());
        let scaling = Scaling::of(&phases, 2);
        assert_eq!((scaling.wall_ns, scaling.serial_ns), (900 * MS, 300 * MS));
        assert!((scaling.work_ns / MS as f64 - 690.0).abs() < 0.01);
        let near = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-4, "{found:?} {expected}");
        };
        near(scaling.serial_percent(), 100.0 / 3.0);
        near(scaling.reached(), 990.0 / 900.0);
        near(scaling.possible(), 990.0 / 645.0);
        near(scaling.bound(), 3.3);
        // A writer with 600 ms of its own is not a bottleneck with one worker, but is with any
        // more.
        let written = Scaling { beside_ns: 600e6, ..scaling };
        near(written.possible(), 1590.0 / 900.0);
        near(written.bound(), 1590.0 / 900.0);
    }

    #[test]
    fn workers_that_are_renewed_leave_no_loop() {
        let mut tape = Tape::new("athena");
        for (child, begin, end) in [(2, 100, 500), (3, 100, 600), (4, 510, 900)] {
            tape.fork(begin, 1, child).exit(end, child, Used::ms(10));
        }
        let (moments, phases) = found(&tape.exit(1000, 1, Used::ms(1)).recording());
        assert!(moments.renewed);
        let times: Vec<u64> = phases.iter().map(|phase| phase.wall_ns() / MS).collect();
        assert_eq!(times, [100, 400, 0, 400, 100]);
    }
}
