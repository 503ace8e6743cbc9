//! CPU time of a tree as samplers of /proc would have reported it.

pub(crate) mod cpu;
pub(crate) mod tree_cpu;

use proctrace_recording::Recording;
use proctrace_recording::books::waits::Accounting;
use proctrace_recording::watch::{PHASES, Sampler};

use crate::samplers::cpu::Cpu;
use crate::samplers::tree_cpu::{Passed, TreeCpu};

/// Unit of /proc/PID/stat: proc_pid_stat(5); sysconf(_SC_CLK_TCK) is 100 everywhere.
const TICK_NS: f64 = 10_000_000.0;
/// prmon reports whole seconds.
const SECOND_NS: f64 = 1_000_000_000.0;

/// CPU time that a sampler missed, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Missed {
    /// CPU time of processes that no reading caught.
    pub(crate) unseen_ns: f64,
    /// Number of these processes.
    pub(crate) unseen: f64,
    /// CPU time after the last reading.
    pub(crate) late_ns: f64,
    /// CPU time of processes that had left the tree.
    pub(crate) outside_ns: f64,
    /// CPU time of live children of threads other than the main one, and of their descendants.
    pub(crate) hidden_ns: f64,
    /// Fractions of ticks or seconds.
    pub(crate) rounding_ns: f64,
}

impl Missed {
    fn plus(self, other: Self) -> Self {
        Self {
            unseen_ns: self.unseen_ns + other.unseen_ns,
            unseen: self.unseen + other.unseen,
            late_ns: self.late_ns + other.late_ns,
            outside_ns: self.outside_ns + other.outside_ns,
            hidden_ns: self.hidden_ns + other.hidden_ns,
            rounding_ns: self.rounding_ns + other.rounding_ns,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            unseen_ns: self.unseen_ns * factor,
            unseen: self.unseen * factor,
            late_ns: self.late_ns * factor,
            outside_ns: self.outside_ns * factor,
            hidden_ns: self.hidden_ns * factor,
            rounding_ns: self.rounding_ns * factor,
        }
    }
}

/// The totals that one kind of sampler reports, over samplers that start at different phases.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) mean: Cpu,
    pub(crate) least_ns: f64,
    pub(crate) most_ns: f64,
    /// CPU time by the sampler whose first reading is at the start of the command.
    pub(crate) launched_ns: f64,
    /// Mean number of readings.
    pub(crate) looks: f64,
    pub(crate) missed: Missed,
}

impl Said {
    fn of(each: impl Iterator<Item = (Cpu, u64, Missed)>) -> Self {
        let share = 1.0 / PHASES as f64;
        let mut said = Self { least_ns: f64::INFINITY, ..Self::default() };
        for (phase, (cpu, looks, missed)) in each.enumerate() {
            let total_ns = cpu.total_ns();
            said.mean = said.mean.plus(cpu.times(share));
            said.least_ns = said.least_ns.min(total_ns);
            said.most_ns = said.most_ns.max(total_ns);
            if phase == 0 {
                said.launched_ns = total_ns;
            }
            said.looks += looks as f64 * share;
            said.missed = said.missed.plus(missed.times(share));
        }
        said
    }
}

fn phases(period_ns: u64) -> impl Iterator<Item = Sampler> {
    (0..PHASES).map(move |phase| Sampler { period_ns, phase })
}

/// A sampler that sums, over all processes caught by a reading, the CPU time used since the
/// previous reading; it does not include children that have ended. `period_ns` is one of
/// `PERIODS_NS`.
pub(crate) fn ps_like(recording: &Recording, period_ns: u64) -> Said {
    Said::of(phases(period_ns).map(|sampler| {
        let (mut sum, mut missed) = (Cpu::default(), Missed::default());
        for (at, process) in recording.processes().iter().enumerate() {
            let cpu = Cpu::from((
                recording.told_of(process).user_ns as f64,
                recording.told_of(process).system_ns as f64,
            ));
            let outside = Cpu::from(recording.watch().outside_of(at));
            missed.outside_ns += outside.total_ns();
            let inside = cpu.minus(outside);
            match recording.watch().after_last_look(sampler, at, process) {
                None => {
                    missed.unseen += 1.0;
                    missed.unseen_ns += inside.total_ns();
                }
                Some(after) => {
                    let after = Cpu::from(after);
                    let seen = inside.minus(after);
                    let said = seen.whole(TICK_NS);
                    missed.late_ns += after.total_ns();
                    missed.rounding_ns += seen.total_ns() - said.total_ns();
                    sum = sum.plus(said);
                }
            }
        }
        (sum, sampler.looks(recording.first_ns(), recording.watch().until_ns), missed)
    }))
}

/// prmon's actual sampling period for an `--interval`: it samples when more than that many whole
/// seconds have passed (`ProcessMonitor` in prmon.cpp of prmon 3.3.0).
pub(crate) fn prmon_pause_ns(interval_s: u64) -> u64 {
    interval_s.saturating_add(1).saturating_mul(SECOND_NS as u64)
}

/// A sampler that sums the CPU time of all processes of the tree and of the children they have
/// waited for; if a reading is lower than an earlier one, the earlier value is kept. The tree is
/// what /proc/PID/task/PID/children shows (`offspring_pids` in prmonutils.cpp): the children of
/// main threads.
pub(crate) fn prmon_like(recording: &Recording, books: &Accounting, period_ns: u64) -> Said {
    let tree = TreeCpu::of(recording, books);
    let all = tree.all(u64::MAX);
    Said::of(phases(period_ns).map(|sampler| {
        let (start_ns, until_ns) = (recording.first_ns(), recording.watch().until_ns);
        let mut most = Cpu::default();
        let (mut gone, mut shown) = (Passed::default(), Passed::default());
        // It grows monotonically except when something drops out: the maximum is at the last
        // reading, or at the last one before a drop.
        let falls = tree.gone.iter().map(|(when_ns, _)| *when_ns);
        let mut last_ns = None;
        for before_ns in falls.chain([until_ns]) {
            let look_ns = sampler.last_look_ns(start_ns, before_ns);
            if let Some(at_ns) = look_ns.filter(|_| look_ns != last_ns) {
                most = most.max(tree.visible(at_ns, &mut gone, &mut shown));
                last_ns = look_ns;
            }
        }
        let known = last_ns.map_or(Cpu::default(), |last_ns| tree.all(last_ns));
        let hidden = last_ns.map_or(Cpu::default(), |last_ns| tree.hidden(last_ns, &mut shown));
        let said = most.whole(SECOND_NS);
        let missed = Missed {
            late_ns: all.total_ns() - known.total_ns(),
            outside_ns: known.total_ns() - most.total_ns() - hidden.total_ns(),
            hidden_ns: hidden.total_ns(),
            rounding_ns: most.total_ns() - said.total_ns(),
            ..Missed::default()
        };
        (said, sampler.looks(start_ns, until_ns), missed)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    const HALF_MINUTES: u64 = 30 * S;
    const SECONDS: u64 = S;

    fn prmon(recording: &Recording, period_ns: u64) -> Said {
        prmon_like(recording, &Accounting::of(recording), period_ns)
    }

    #[test]
    fn prmon_pauses_a_second_longer_than_it_is_told() {
        assert_eq!([0, 1, 30].map(prmon_pause_ns), [S, 2 * S, 31 * S]);
        assert_eq!(prmon_pause_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn live_children_of_other_threads_are_not_found_until_they_are_waited_for() {
        // A thread runs two children of 10 s, one after the other; the main thread waits for it.
        let mut scene = Scene::new(2, 100 * MS);
        scene.thread(0, 1, 2).fork(0, 2, 3).sample(5 * S, 3, (5 * S, 0)).exit(
            10 * S,
            3,
            (10 * S, 0),
        );
        scene.fork(10 * S, 2, 4).exit(20 * S, 4, (10 * S, 0)).exit(20 * S, 2, (0, 0));
        let recording = scene.exit(20 * S, 1, (0, 0)).load(Some((20 * S, 20 * S, 0)));
        let said = prmon(&recording, SECONDS);
        // The last readings are at 19, 19.25, 19.5 and 19.75 s, when the first child has been
        // waited for.
        assert_eq!((said.least_ns, said.most_ns), (10e9, 10e9), "{said:?}");
        assert!((said.missed.hidden_ns - 9.375e9).abs() < 1e3, "{said:?}");
        assert!(said.missed.outside_ns.abs() < 1e3, "{said:?}");
        // A sampler that follows parent pids finds both.
        assert_eq!(ps_like(&recording, SECONDS).missed.unseen_ns, 0.0);
        assert_eq!(ps_like(&recording, SECONDS).missed.hidden_ns, 0.0);
    }

    #[test]
    fn what_the_main_thread_adopts_is_found_then() {
        // The thread ends after 4 s; its child lives for another 6 s.
        let mut scene = Scene::new(2, 100 * MS);
        scene.thread(0, 1, 2).fork(0, 2, 3).exit(4 * S, 2, (0, 0)).exit(10 * S, 3, (10 * S, 0));
        let recording = scene.exit(10 * S, 1, (0, 0)).load(Some((10 * S, 10 * S, 0)));
        let said = prmon(&recording, SECONDS);
        assert_eq!((said.launched_ns, said.missed.hidden_ns), (9e9, 0.0), "{said:?}");
        // A sampler whose last reading is at 3.75 s.
        let said = prmon(&recording, 15 * S);
        assert!((said.missed.hidden_ns - 3.75e9 / 4.0).abs() < 1e3, "{said:?}");
    }

    #[test]
    fn the_example_of_watch_rs_is_right() {
        let mut scene = Scene::new(4, 100 * MS);
        // The main thread is 1, the second thread 2; A is 3, C is 4, B is 5, D is 6.
        scene.thread(0, 1, 2).fork(0, 1, 3).fork(30 * S, 3, 4).fork(40 * S, 2, 5);
        scene.exit(50 * S, 3, (50 * S, 0));
        scene.fork(60_200 * MS, 1, 6).exit(60_800 * MS, 6, (600 * MS, 0));
        scene.exit(90 * S, 4, (60 * S, 0)).exit(95 * S, 5, (55 * S, 0)).exit(100 * S, 2, (0, 0));
        let waited_ns = (50 + 55) * S + 600 * MS;
        let recording = scene.exit(100 * S, 1, (0, 0)).load(Some((100 * S, waited_ns, 0)));
        let about = |found_ns: f64, expected_s: f64| (found_ns / 1e9 - expected_s).abs() < 1e-3;
        let said = prmon(&recording, prmon_pause_ns(30));
        assert!(about(said.launched_ns, 50.0), "{said:?}");
        let said = ps_like(&recording, SECONDS);
        assert!(about(said.launched_ns, 122.0), "{said:?}");
    }

    /// A command that lives for 100 s and runs ten children of 10 s, one after the other, each of
    /// which uses 5 s in user mode and 2 s in the kernel.
    fn ten_children() -> Recording {
        let mut scene = Scene::new(2, 100 * MS);
        for at in 0..10 {
            let task = 2 + u32::try_from(at).unwrap();
            scene.fork(at * 10 * S, 1, task);
            scene.exit((at + 1) * 10 * S, task, (5 * S, 2 * S));
        }
        scene.exit(100 * S, 1, (0, 0)).load(Some((100 * S, 50 * S, 20 * S)))
    }

    #[test]
    fn prmon_loses_what_comes_after_its_last_look() {
        // Readings at 0, 30, 60, 90 or 7.5, 37.5, 67.5, 97.5 or 15, ... 75 or 22.5, ... 82.5 s.
        let said = prmon(&ten_children(), HALF_MINUTES);
        assert_eq!(said.launched_ns, 63e9);
        // 97.5 s: 48.75 and 19.5; 75 s: 37.5 and 15; 82.5 s: 41.25 and 16.5, all in whole seconds.
        assert_eq!((said.least_ns, said.most_ns), (52e9, 67e9));
        let mean = (63.0 + 67.0 + 52.0 + 57.0) / 4.0 * 1e9;
        assert!((said.mean.total_ns() - mean).abs() < 1.0);
        assert!((said.looks - (4.0 + 4.0 + 3.0 + 3.0) / 4.0).abs() < 1e-9);
        // 10 + 2.5 + 25 + 17.5 s at 0.7
        assert!((said.missed.late_ns / 1e9 - 0.7 * 55.0 / 4.0).abs() < 1e-6, "{said:?}");
        assert!(said.missed.outside_ns.abs() < 1.0);
    }

    #[test]
    fn ps_loses_each_childs_last_part() {
        let said = ps_like(&ten_children(), HALF_MINUTES);
        // At 0, 30, 60, 90 s a child has just begun.
        assert_eq!(said.launched_ns, 0.0);
        // 7.5, 37.5, ...: four children, read after 7.5 s: 3.75 + 1.5 s each. 15, ...: three with
        // 2.5 + 1. 22.5, ...: three with 1.25 + 0.5.
        let all = [0.0, 4.0 * 5.25, 3.0 * 3.5, 3.0 * 1.75];
        assert_eq!(said.most_ns, all[1] * 1e9);
        assert!((said.mean.total_ns() / 1e9 - all.iter().sum::<f64>() / 4.0).abs() < 1e-6);
        // All of each child except its last second, or the fraction of it left by the phase.
        let said = ps_like(&ten_children(), SECONDS);
        let missed = 10.0 * 0.7 * (1.0 + 0.75 + 0.5 + 0.25) / 4.0;
        assert!(((70.0 - said.mean.total_ns() / 1e9) - missed).abs() < 0.3, "{said:?}");
    }

    #[test]
    fn samples_tell_when_it_was_used() {
        // All of its CPU time in the last 5 of 50 s: a sampler that reads every 30 s from the
        // beginning has seen none.
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2).sample(45 * S, 2, (0, 0)).exit(50 * S, 2, (5 * S, 0));
        let recording = scene.exit(50 * S, 1, (0, 0)).load(Some((50 * S, 5 * S, 0)));
        assert_eq!(ps_like(&recording, HALF_MINUTES).most_ns, 0.0);
        assert_eq!(prmon(&recording, HALF_MINUTES).most_ns, 0.0);
        // 45, 46, ... 49 s; 49.25; 49.5; 49.75 s
        let said = ps_like(&recording, SECONDS);
        assert_eq!(said.launched_ns, 4e9);
        assert_eq!(said.most_ns, 4.75e9);
        assert_eq!(prmon(&recording, SECONDS).launched_ns, 4e9);
    }

    #[test]
    fn a_process_that_detaches_is_lost_at_once_and_what_was_said_stays() {
        // It uses 10 s while its parent lives, and 10 s after; the command stays alive but idle.
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2).fork(0, 2, 3).sample(10 * S, 3, (10 * S, 0));
        scene.exit(10 * S, 2, (0, 0)).exit(20 * S, 3, (20 * S, 0)).exit(40 * S, 1, (0, 0));
        let recording = scene.load(Some((40 * S, 0, 0)));
        let said = prmon(&recording, SECONDS);
        // The last reading before 10 s finds 9 s, in whole seconds at any phase.
        assert_eq!((said.least_ns, said.most_ns), (9e9, 9e9));
        // 11 s at phase 0; a quarter of a second less for each later phase, but in whole seconds.
        assert!(said.missed.late_ns.abs() < 1.0, "{said:?}");
        assert!((said.missed.outside_ns - (20e9 - 9.375e9)).abs() < 1e3, "{said:?}");
        let said = ps_like(&recording, SECONDS);
        assert_eq!((said.launched_ns, said.most_ns), (9e9, 9.75e9));
        assert!((said.missed.outside_ns - 10e9).abs() < 1e3);
    }

    #[test]
    fn children_that_no_one_waits_for_are_lost() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2);
        scene.exit_with(10 * S, 2, (10 * S, 0), |exit| {
            exit.bits |= proctrace_wire::layout::EXIT_AUTOREAP;
        });
        let recording = scene
            .exit_with(40 * S, 1, (0, 0), |exit| exit.waited_utime_ns = 0)
            .load(Some((40 * S, 0, 0)));
        assert_eq!(prmon(&recording, SECONDS).most_ns, 9e9);
        assert_eq!(prmon(&recording, HALF_MINUTES).launched_ns, 0.0);
    }

    #[test]
    fn ticks_and_seconds_hide_parts_of_them() {
        // 39 ms in 1 s: at most two ticks in one sampler, zero whole seconds in the other.
        let mut scene = Scene::new(1, 10 * MS);
        let recording = scene.exit(S, 1, (39 * MS, 0)).load(Some((S, 39 * MS, 0)));
        let said = ps_like(&recording, SECONDS);
        assert_eq!((said.launched_ns, said.most_ns), (0.0, 20e6));
        assert_eq!(prmon(&recording, SECONDS).most_ns, 0.0);
        let missed = said.missed;
        let sum = missed.unseen_ns + missed.late_ns + missed.outside_ns + missed.rounding_ns;
        assert!((sum + said.mean.total_ns() - 39e6).abs() < 10.0, "{said:?}");
    }

    #[test]
    fn a_sample_after_the_end_is_of_no_one_else() {
        // The last time slice of an exiting task comes after its recorded exit time.
        let mut scene = Scene::new(1, 10 * MS);
        scene.fork(0, 1, 2).sample(101 * MS, 2, (60 * MS, 0)).exit(100 * MS, 2, (70 * MS, 0));
        let recording = scene.exit(4 * S, 1, (0, 0)).load(Some((4 * S, 70 * MS, 0)));
        let said = ps_like(&recording, SECONDS);
        assert_eq!((said.missed.outside_ns, said.missed.unseen_ns), (0.0, 0.75 * 70e6));
        assert!((said.missed.late_ns - 0.25 * 70e6).abs() < 1.0);
    }
}
