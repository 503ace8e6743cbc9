//! The view of samplers of /proc, collected while the samples of a trace are read.
//!
//! A sampler knows a process's usage up to its last reading while the process was alive. So only
//! the usage after that reading is stored, for each of a few samplers: long-lived processes that
//! are not about to end cost nothing.
//!
//! # Example
//!
//! A command of 100 s, idle itself; each of its descendants keeps one core busy while it lives:
//!
//! ```text
//! process  lifetime       forked by                         CPU
//! A        0 to 50 s      the command's main thread        50.0 s
//! B        40 to 95 s     a second thread of the command   55.0 s
//! C        30 to 90 s     A; reparented to init at 50 s    60.0 s
//! D        60.2 to 60.8   the command's main thread         0.6 s   (165.6 s in all)
//! ```
//!
//! `prmon -i 30`, started with the command, reads every 31 s: at 0, 31, 62 and 93 s. It reports the
//! 50 s of A; the 0.6 s of D are lost in whole seconds. Both are in the counters of the command,
//! which waited for A and D. It misses 2 s of B after its last reading (late), 53 s of B before it,
//! because B is a child of a second thread and has not been waited for (hidden), and 60 s of C,
//! which is in no counter of the tree from 50 s on (outside). Its reading of 32 s at 31 s included
//! 1 s of C, but only the maximum counts.
//!
//! ps every 1 s reads at 0, 1, ... 99 s and reports 122 s: 49 s of A, 54 s of B and 19 s of C, as
//! read 1 s before each leaves the tree. It misses these last seconds (3 s, late), 40 s of C after
//! its parent's end (outside), and the 0.6 s of D, which lives between two readings (unseen).

use std::cmp::Ordering;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_classify::sparse::Sparse;
use proctrace_replay::CpuTime;

use crate::bins::Bins;
use crate::membership::{Membership, Times};
use crate::process::Process;

/// Sampling periods of the ps-like samplers: prmon's default interval, and one second.
pub const PERIODS_NS: [u64; 2] = [30_000_000_000, 1_000_000_000];
/// Samplers per period: their first readings are this fraction of a period apart.
pub const PHASES: usize = 4;
/// Time between two readings by any of the samplers: those with longer periods read when one with the shortest does.
const ANY_NS: u64 = PERIODS_NS[1] / PHASES as u64;
const _: () = assert!((PERIODS_NS[0] / PHASES as u64).is_multiple_of(ANY_NS));
const SAMPLERS: usize = PERIODS_NS.len() * PHASES;
const PERIOD_MAX_NS: u64 = PERIODS_NS[0];

/// Identifies a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Its sampling period.
    pub period_ns: u64,
    /// Its phase, less than `PHASES`.
    pub phase: usize,
}

impl Sampler {
    /// Time from the beginning of the recording to its first reading.
    pub fn first_ns(self) -> u64 {
        self.period_ns / PHASES as u64 * self.phase as u64
    }

    /// Time of its last reading before a given time.
    pub fn last_look_ns(self, start_ns: u64, before_ns: u64) -> Option<u64> {
        let first_ns = start_ns.saturating_add(self.first_ns());
        // At its end time a process can no longer be read.
        let since_ns = before_ns.checked_sub(first_ns)?.checked_sub(1)?;
        Some(before_ns - 1 - since_ns % self.period_ns.max(1))
    }

    /// Number of readings up to a given time.
    pub fn looks(self, start_ns: u64, before_ns: u64) -> u64 {
        self.last_look_ns(start_ns, before_ns)
            .map_or(0, |last_ns| (last_ns - start_ns - self.first_ns()) / self.period_ns.max(1) + 1)
    }

    /// Its index among the samplers for which tails are kept.
    fn index(self) -> Option<usize> {
        let period = PERIODS_NS.iter().position(|period_ns| *period_ns == self.period_ns)?;
        Some(period * PHASES + self.phase)
    }
}

/// A process's CPU time that each sampler could not see, in nanoseconds.
#[derive(Debug, Clone, Default)]
struct Tail {
    /// Usage after the last reading: user and system time.
    after: [(f64, f64); SAMPLERS],
    /// Usage after it had left the tree, or the command had ended.
    outside: (f64, f64),
}

/// True if any sampler reads between these times; most processes live so short that none does.
fn looked_at(start_ns: u64, born_ns: u64, before_ns: u64) -> bool {
    let Some(since_ns) = before_ns.checked_sub(start_ns).and_then(|since| since.checked_sub(1))
    else {
        return false;
    };
    before_ns - 1 - since_ns % ANY_NS >= born_ns
}

/// The CPU time that samplers missed.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    start_ns: u64,
    last_ns: u64,
    /// Time at which the command, and with it its samplers, ended.
    pub until_ns: u64,
    /// Times at which processes left the tree, for the few that did.
    leaves_ns: Times,
    /// Times at which the CPU time of processes dropped out of all counters of the tree, likewise.
    pub forgotten_ns: Sparse<u64>,
    /// The tails and, for the processes that have one, its index.
    tail_of: FastMap<usize, u32>,
    has_tail: Bits,
    tails: Vec<Tail>,
    /// CPU time outside the tree, or after the command's end, by bin: user and system.
    pub outside: (Vec<f64>, Vec<f64>),
    /// Time until which the few children of threads other than the main one, and their descendants,
    /// are hidden.
    hidden_until_ns: Sparse<u64>,
    /// The CPU time each of them had used by then: user and system time.
    hidden_of: Vec<(f64, f64)>,
    /// Hidden CPU time by bin.
    pub hidden: (Vec<f64>, Vec<f64>),
}

impl Watch {
    pub(crate) fn new(membership: Membership, bins: &Bins, last_ns: u64, until_ns: u64) -> Self {
        let Membership { leaves_ns, forgotten_ns, hidden_until_ns } = membership;
        let hidden_until_ns = hidden_until_ns.others;
        Self {
            start_ns: bins.start_ns,
            last_ns,
            until_ns,
            leaves_ns,
            forgotten_ns: forgotten_ns.others,
            tail_of: FastMap::default(),
            has_tail: Bits::default(),
            tails: Vec::new(),
            outside: (vec![0.0; bins.len()], vec![0.0; bins.len()]),
            hidden_of: vec![(0.0, 0.0); hidden_until_ns.len()],
            hidden_until_ns,
            hidden: (vec![0.0; bins.len()], vec![0.0; bins.len()]),
        }
    }

    /// Time until which a process was visible, and true if that was its own end, rather than its
    /// leaving the tree or the end of the command.
    fn until(&self, at: usize, process: &Process) -> (u64, bool) {
        let ended_ns = process.ended_ns().unwrap_or(self.last_ns).max(process.born_ns);
        let until_ns = ended_ns.min(self.leaves_ns.of(at)).min(self.until_ns).max(process.born_ns);
        (until_ns, until_ns == ended_ns)
    }

    /// Adds the CPU time that a task of a process used over an interval.
    #[inline]
    pub fn add(
        &mut self,
        bins: &Bins,
        (at, process): (usize, &Process),
        (from_ns, to_ns): (u64, u64),
        used: CpuTime,
    ) {
        let (until_ns, whole) = self.until(at, process);
        // An exiting task can still be sampled after its recorded exit time.
        let (from_ns, to_ns) =
            if whole { (from_ns.min(until_ns), to_ns.min(until_ns)) } else { (from_ns, to_ns) };
        if !self.hidden_until_ns.is_empty() {
            self.hide(bins, at, (from_ns, to_ns), used);
        }
        // Every sampler reads once more after this, unless the process has ended by then.
        if to_ns.saturating_add(PERIOD_MAX_NS) <= until_ns || used == CpuTime::default() {
            return;
        }
        let outside = share_after(until_ns, from_ns, to_ns);
        let mut shares = [0.0; SAMPLERS];
        let mut any = outside > 0.0;
        if !any && !looked_at(self.start_ns, process.born_ns, until_ns) {
            return;
        }
        for (period, period_ns) in PERIODS_NS.into_iter().enumerate() {
            for phase in 0..PHASES {
                let sampler = Sampler { period_ns, phase };
                let Some(look_ns) = sampler.last_look_ns(self.start_ns, until_ns) else { continue };
                // A process that was never read needs no tail.
                if look_ns < process.born_ns || to_ns <= look_ns {
                    continue;
                }
                let after = share_after(look_ns, from_ns, to_ns) - outside;
                shares[period * PHASES + phase] = after;
                any |= after > 0.0;
            }
        }
        if !any {
            return;
        }
        let (user_ns, system_ns) = (used.user_ns as f64, used.system_ns as f64);
        let tail = self.tail(at);
        for (after, share) in tail.after.iter_mut().zip(shares) {
            after.0 += user_ns * share;
            after.1 += system_ns * share;
        }
        if outside > 0.0 {
            tail.outside.0 += user_ns * outside;
            tail.outside.1 += system_ns * outside;
            for (bin, share) in bins.shares(from_ns.max(until_ns), to_ns) {
                self.outside.0[bin] += user_ns * outside * share;
                self.outside.1[bin] += system_ns * outside * share;
            }
        }
    }

    /// Adds the part that was used while the process was hidden.
    fn hide(&mut self, bins: &Bins, at: usize, (from_ns, to_ns): (u64, u64), used: CpuTime) {
        let Some(hidden) = self.hidden_until_ns.position(at) else { return };
        let Some(until_ns) = self.hidden_until_ns.get(at).copied() else { return };
        let part = 1.0 - share_after(until_ns, from_ns, to_ns);
        if part <= 0.0 {
            return;
        }
        let (user_ns, system_ns) = (used.user_ns as f64 * part, used.system_ns as f64 * part);
        let sum = &mut self.hidden_of[hidden];
        sum.0 += user_ns;
        sum.1 += system_ns;
        for (bin, share) in bins.shares(from_ns, to_ns.min(until_ns)) {
            self.hidden.0[bin] += user_ns * share;
            self.hidden.1[bin] += system_ns * share;
        }
    }

    /// Times at which the CPU time of hidden processes becomes visible, or invisible for other
    /// reasons, and its amount: user and system time.
    pub fn shown(&self) -> Vec<(u64, (f64, f64))> {
        let until_ns = self.hidden_until_ns.iter().map(|(_, until_ns)| *until_ns);
        let mut shown: Vec<_> = until_ns.zip(self.hidden_of.iter().copied()).collect();
        shown.sort_by(|a, b| {
            (a.0, a.1.0, a.1.1).partial_cmp(&(b.0, b.1.0, b.1.1)).unwrap_or(Ordering::Equal)
        });
        shown
    }

    fn tail(&mut self, process: usize) -> &mut Tail {
        let next = u32::try_from(self.tails.len()).unwrap_or(u32::MAX);
        let at = *self.tail_of.entry(process).or_insert(next);
        if at == next {
            self.has_tail.insert(process);
            self.tails.push(Tail::default());
        }
        &mut self.tails[at as usize]
    }

    fn tail_if_any(&self, process: usize) -> Option<&Tail> {
        if !self.has_tail.contains(process) {
            return None;
        }
        self.tails.get(*self.tail_of.get(&process)? as usize)
    }

    /// User and system time that a process used where no sampler of the tree could see it.
    pub fn outside_of(&self, process: usize) -> (f64, f64) {
        self.tail_if_any(process).map_or((0.0, 0.0), |tail| tail.outside)
    }

    /// User and system time after the sampler's last reading of a process; `None` if it never read
    /// it.
    pub fn after_last_look(
        &self,
        sampler: Sampler,
        at: usize,
        process: &Process,
    ) -> Option<(f64, f64)> {
        let (until_ns, _) = self.until(at, process);
        let look_ns = sampler.last_look_ns(self.start_ns, until_ns);
        look_ns.filter(|look_ns| *look_ns >= process.born_ns)?;
        let index = sampler.index()?;
        Some(self.tail_if_any(at).map_or((0.0, 0.0), |tail| tail.after[index]))
    }
}

/// The fraction of an interval that lies after a given time.
fn share_after(moment_ns: u64, from_ns: u64, to_ns: u64) -> f64 {
    if to_ns <= moment_ns {
        0.0
    } else if from_ns >= moment_ns {
        1.0
    } else {
        (to_ns - moment_ns) as f64 / (to_ns - from_ns) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_look_is_before_the_end() {
        let second = |phase| Sampler { period_ns: PERIODS_NS[1], phase };
        let s = 1_000_000_000;
        let last = |phase, before_ns| second(phase).last_look_ns(7, before_ns);
        assert_eq!(last(0, 7), None);
        assert_eq!(last(0, 8), Some(7));
        assert_eq!(last(0, 7 + s), Some(7));
        assert_eq!(last(0, 8 + s), Some(7 + s));
        assert_eq!(last(2, 7 + s / 2), None);
        assert_eq!(last(2, 8 + 5 * s / 2), Some(7 + 5 * s / 2));
        let looks = |phase, before_ns| second(phase).looks(7, before_ns);
        assert_eq!((looks(0, 7), looks(0, 8), looks(0, 7 + s), looks(0, 8 + s)), (0, 1, 1, 2));
        assert_eq!((looks(2, 8), looks(2, 8 + s / 2)), (0, 1));
    }

    proptest! {
        #[test]
        fn looks_are_on_their_grid(
            period in 0..PERIODS_NS.len(),
            phase in 0..PHASES,
            start: u64,
            before: u64,
        ) {
            let sampler = Sampler { period_ns: PERIODS_NS[period], phase };
            if let Some(look) = sampler.last_look_ns(start, before) {
                prop_assert!(look < before && before - look <= sampler.period_ns);
                prop_assert_eq!((look - start - sampler.first_ns()) % sampler.period_ns, 0);
            }
        }

        #[test]
        fn nobody_looks_where_none_of_the_samplers_does(
            start in 0..3 * PERIODS_NS[1],
            (born, off) in (0..300_u64, 0..3_u64),
            (life, beyond) in (0..3_u64, 0..3_u64),
        ) {
            // At a reading, just before and just after it.
            let born = start + (born * ANY_NS + off).saturating_sub(1);
            let before = born + life * ANY_NS + beyond;
            let looks = |period_ns: u64| {
                let of_phase = move |phase| Sampler { period_ns, phase };
                (0..PHASES).filter_map(move |phase| of_phase(phase).last_look_ns(start, before))
            };
            let any = PERIODS_NS.into_iter().flat_map(looks).any(|look_ns| look_ns >= born);
            prop_assert_eq!(looked_at(start, born, before), any);
        }

        #[test]
        fn shares_are_shares(moment: u64, from: u64, to: u64) {
            let share = share_after(moment, from.min(to), from.max(to));
            prop_assert!((0.0..=1.0).contains(&share));
        }
    }
}
