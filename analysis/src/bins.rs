//! What happened when: figures of the whole tree in equal bins of time.
//!
//! A task's counters are known at its birth (zero), at its samples and at its end. What they grew
//! by between two of these is spread evenly over that stretch, so every bin's figure is exact up
//! to the distance of samples, and the sum over bins is exact.

use proctrace_replay::{CpuTime, scale};
use proctrace_wire::layout::{Attach, Exit, Sample};

/// At most so many bins: a week at a tenth of a second would be six million.
const BINS_MAX: u64 = 20_000;

/// The series, one value per bin.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bins {
    pub(crate) start_ns: u64,
    pub(crate) width_ns: u64,
    pub(crate) user_ns: Vec<f64>,
    pub(crate) system_ns: Vec<f64>,
    pub(crate) switches: Vec<f64>,
    pub(crate) read_bytes: Vec<f64>,
    pub(crate) write_bytes: Vec<f64>,
    pub(crate) forks: Vec<f64>,
    /// Tasks running or runnable, averaged over the ticks in a bin; the last known where it has none.
    pub(crate) running: Vec<f64>,
    ticks: Vec<u32>,
}

/// A task's counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) time_ns: u64,
    cpu: CpuTime,
    switches: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl Point {
    pub(crate) fn born(time_ns: u64) -> Self {
        Self { time_ns, ..Self::default() }
    }

    pub(crate) fn of_attach(attach: &Attach) -> Self {
        Self {
            time_ns: attach.head.time_ns,
            cpu: scale(attach.run_ns, attach.utime_ns, attach.stime_ns),
            switches: attach.nvcsw.saturating_add(attach.nivcsw),
            read_bytes: attach.read_bytes,
            write_bytes: attach.write_bytes,
        }
    }

    pub(crate) fn of_sample(sample: &Sample) -> Self {
        Self {
            time_ns: sample.head.time_ns,
            cpu: scale(sample.run_ns, sample.utime_ns, sample.stime_ns),
            switches: sample.nvcsw.saturating_add(sample.nivcsw),
            read_bytes: sample.read_bytes,
            write_bytes: sample.write_bytes,
        }
    }

    pub(crate) fn of_exit(exit: &Exit) -> Self {
        Self {
            time_ns: exit.head.time_ns,
            cpu: scale(exit.run_ns, exit.utime_ns, exit.stime_ns),
            switches: exit.nvcsw.saturating_add(exit.nivcsw),
            read_bytes: exit.read_bytes,
            write_bytes: exit.write_bytes,
        }
    }

    /// Neither part of the CPU time may fall when the split is estimated anew; the kernel keeps
    /// its own estimates apart in the same way (cputime_adjust).
    fn after(mut self, before: &Self) -> Self {
        let total = self.cpu.total_ns().max(before.cpu.total_ns());
        let system = self.cpu.system_ns.max(before.cpu.system_ns);
        let user = (total - system.min(total)).max(before.cpu.user_ns);
        self.cpu = CpuTime { user_ns: user, system_ns: total - user.min(total) };
        self
    }
}

impl Bins {
    /// Bins of `width_ns`, or a multiple of it where there would be too many.
    pub(crate) fn new(start_ns: u64, end_ns: u64, width_ns: u64) -> Self {
        let length = end_ns.saturating_sub(start_ns).max(1);
        let width_ns = width_ns.max(1_000_000);
        let merged = length.div_ceil(width_ns).div_ceil(BINS_MAX).max(1);
        let width_ns = width_ns.saturating_mul(merged);
        let count = usize::try_from(length.div_ceil(width_ns)).unwrap_or(1);
        let zeros = vec![0.0; count];
        Self {
            start_ns,
            width_ns,
            user_ns: zeros.clone(),
            system_ns: zeros.clone(),
            switches: zeros.clone(),
            read_bytes: zeros.clone(),
            write_bytes: zeros.clone(),
            forks: zeros.clone(),
            running: zeros,
            ticks: vec![0; count],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.user_ns.len()
    }

    /// Adds what a task's counters grew by from one moment to the next; returns the latter.
    pub(crate) fn add_growth(&mut self, from: &Point, to: Point) -> Point {
        let to = to.after(from);
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let cpu = to.cpu - from.cpu;
        let switches = grown(to.switches, from.switches);
        let read = grown(to.read_bytes, from.read_bytes);
        let write = grown(to.write_bytes, from.write_bytes);
        for (bin, share) in self.shares(from.time_ns, to.time_ns) {
            self.user_ns[bin] += cpu.user_ns as f64 * share;
            self.system_ns[bin] += cpu.system_ns as f64 * share;
            self.switches[bin] += switches * share;
            self.read_bytes[bin] += read * share;
            self.write_bytes[bin] += write * share;
        }
        to
    }

    pub(crate) fn add_fork(&mut self, time_ns: u64) {
        let bin = self.bin_of(time_ns);
        self.forks[bin] += 1.0;
    }

    pub(crate) fn add_tick(&mut self, time_ns: u64, running: u32) {
        let bin = self.bin_of(time_ns);
        self.running[bin] += f64::from(running);
        self.ticks[bin] += 1;
    }

    /// After the last tick: sums become means, and gaps take the last known value.
    pub(crate) fn finish_ticks(&mut self) {
        let mut known = 0.0;
        for (running, ticks) in self.running.iter_mut().zip(&self.ticks) {
            if *ticks > 0 {
                known = *running / f64::from(*ticks);
            }
            *running = known;
        }
    }

    fn bin_of(&self, time_ns: u64) -> usize {
        let bin = time_ns.saturating_sub(self.start_ns) / self.width_ns;
        usize::try_from(bin).unwrap_or(usize::MAX).min(self.len() - 1)
    }

    /// The bins that a stretch of time touches, and the share of it in each; they add up to 1.
    fn shares(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (usize, f64)> + use<> {
        let (from_ns, to_ns) = (from_ns.max(self.start_ns), to_ns.max(from_ns).max(self.start_ns));
        let (first, last) = (self.bin_of(from_ns), self.bin_of(to_ns));
        let length = (to_ns - from_ns) as f64;
        let (start_ns, width_ns) = (self.start_ns, self.width_ns);
        (first..=last).map(move |bin| {
            if first == last {
                return (bin, 1.0);
            }
            let edge = |bin: u64| start_ns.saturating_add(bin.saturating_mul(width_ns));
            let begin = edge(bin as u64).max(from_ns);
            // The last bin takes what lies beyond the end.
            let end = if bin == last { to_ns } else { edge(bin as u64 + 1).min(to_ns) };
            (bin, end.saturating_sub(begin) as f64 / length)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn growth_is_spread_over_the_time_it_took() {
        let mut bins = Bins::new(0, 40 * MS, 10 * MS);
        let to = Point {
            time_ns: 35 * MS,
            cpu: CpuTime { user_ns: 300, system_ns: 0 },
            switches: 30,
            ..Point::default()
        };
        bins.add_growth(&Point::born(5 * MS), to);
        assert_eq!(bins.user_ns, [50.0, 100.0, 100.0, 50.0]);
        assert_eq!(bins.switches, [5.0, 10.0, 10.0, 5.0]);
    }

    #[test]
    fn gaps_between_ticks_keep_the_last_value() {
        let mut bins = Bins::new(0, 40 * MS, 10 * MS);
        bins.add_tick(11 * MS, 3);
        bins.add_tick(12 * MS, 5);
        bins.add_tick(31 * MS, 1);
        bins.finish_ticks();
        assert_eq!(bins.running, [0.0, 4.0, 4.0, 1.0]);
    }

    #[test]
    fn a_week_does_not_make_millions_of_bins() {
        let bins = Bins::new(0, 7 * 86_400 * 1000 * MS, 100 * MS);
        assert!(bins.len() as u64 <= BINS_MAX && bins.len() as u64 > BINS_MAX / 2);
        assert_eq!(Bins::new(5, 5, 0).len(), 1);
    }

    #[test]
    fn a_revised_split_never_takes_time_back() {
        let before = Point { cpu: CpuTime { user_ns: 80, system_ns: 20 }, ..Point::default() };
        let revised = Point { cpu: CpuTime { user_ns: 60, system_ns: 60 }, ..Point::default() };
        let after = revised.after(&before);
        assert_eq!(after.cpu, CpuTime { user_ns: 80, system_ns: 40 });
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_invented(
            times in proptest::collection::vec(0u64..2000, 2..10),
            user in 0u64..1_000_000,
            end in 1u64..3000,
        ) {
            let mut times = times;
            times.sort_unstable();
            let mut bins = Bins::new(100 * MS, (100 + end) * MS, 7 * MS);
            let mut point = Point::born(times[0] * MS);
            for (at, time) in times.iter().enumerate().skip(1) {
                let cpu = CpuTime { user_ns: user * at as u64, system_ns: 0 };
                point = bins.add_growth(&point, Point { time_ns: time * MS, cpu, ..Point::default() });
            }
            let total: f64 = bins.user_ns.iter().sum();
            let expected = (user * (times.len() as u64 - 1)) as f64;
            prop_assert!((total - expected).abs() <= expected * 1e-9 + 1e-6, "{total} {expected}");
        }
    }
}
