//! The cumulative CPU time of a tree, and the part of it that a sampler of that tree can see.

use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;
use proctrace_recording::books::waits::Accounting;

use crate::samplers::cpu::Cpu;

/// The cumulative CPU time of the tree.
pub(crate) struct TreeCpu {
    start_ns: u64,
    width_ns: u64,
    /// Total CPU time, and that of processes outside the tree, at the bin edges.
    all: Vec<Cpu>,
    outside: Vec<Cpu>,
    /// The same for children of threads other than the main one, and their descendants.
    hidden: Vec<Cpu>,
    /// Hidden CPU time that becomes visible, in time order.
    shown: Vec<(u64, Cpu)>,
    /// CPU time that drops out of every counter of the tree, in time order.
    pub(crate) gone: Vec<(u64, Cpu)>,
}

/// Position reached in a list in time order, and the sum up to there.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    next: usize,
    sum: Cpu,
}

impl Passed {
    /// The sum up to a time; calls must be in time order.
    fn by(&mut self, list: &[(u64, Cpu)], at_ns: u64) -> Cpu {
        while let Some((when_ns, cpu)) = list.get(self.next)
            && *when_ns <= at_ns
        {
            self.sum = self.sum.plus(*cpu);
            self.next += 1;
        }
        self.sum
    }
}

impl TreeCpu {
    pub(crate) fn of(recording: &Recording, books: &Accounting) -> Self {
        let (bins, watch) = (recording.bins(), recording.watch());
        let cumulated = |user: &[f64], system: &[f64]| {
            let mut sum = Cpu::default();
            let mut edges = vec![sum];
            edges.extend(user.iter().zip(system).map(|(user, system)| {
                sum = sum.plus(Cpu::from((*user, *system)));
                sum
            }));
            edges
        };
        let until_ns = watch.until_ns;
        let mut gone: Vec<(u64, Cpu)> = Vec::new();
        for (at, when_ns) in watch.forgotten_ns.iter() {
            if *when_ns < until_ns {
                let cpu = recording.told_of(&recording.processes()[at]);
                let cpu = Cpu::from((cpu.user_ns as f64, cpu.system_ns as f64));
                gone.push((*when_ns, cpu.minus(Cpu::from(watch.outside_of(at)))));
            }
        }
        // Zombies remain visible until their parent ends.
        for (at, ns) in &books.negligent {
            let ended_ns = recording.processes()[*at].ended_ns().unwrap_or(u64::MAX);
            if ended_ns < until_ns {
                gone.push((ended_ns, Cpu { user_ns: *ns as f64, system_ns: 0.0 }));
            }
        }
        gone.sort_by_key(|(when_ns, _)| *when_ns);
        Self {
            start_ns: bins.start_ns,
            width_ns: bins.width_ns.max(1),
            all: cumulated(bins.of(BinSeries::ToldUser), bins.of(BinSeries::ToldSystem)),
            outside: cumulated(&watch.outside.0, &watch.outside.1),
            hidden: cumulated(&watch.hidden.0, &watch.hidden.1),
            shown: watch
                .shown()
                .into_iter()
                .map(|(when_ns, cpu)| (when_ns, Cpu::from(cpu)))
                .collect(),
            gone,
        }
    }

    fn at(&self, edges: &[Cpu], at_ns: u64) -> Cpu {
        let since_ns = at_ns.saturating_sub(self.start_ns);
        let bin = usize::try_from(since_ns / self.width_ns).unwrap_or(usize::MAX);
        let last = edges.last().copied().unwrap_or_default();
        let (Some(before), Some(after)) = (edges.get(bin), edges.get(bin.saturating_add(1))) else {
            return last;
        };
        let share = (since_ns % self.width_ns) as f64 / self.width_ns as f64;
        before.plus(after.minus(*before).times(share))
    }

    /// CPU time of all processes up to a time.
    pub(crate) fn all(&self, at_ns: u64) -> Cpu {
        self.at(&self.all, at_ns)
    }

    /// The part that no counter shows because it belongs to children of threads other than the main
    /// one. Calls must be in time order.
    pub(crate) fn hidden(&self, at_ns: u64, shown: &mut Passed) -> Cpu {
        // It may become visible before its bin is over.
        self.at(&self.hidden, at_ns).minus(shown.by(&self.shown, at_ns)).max(Cpu::default())
    }

    /// The part that is in the counters of members of the tree. Calls must be in time order.
    pub(crate) fn visible(&self, at_ns: u64, gone: &mut Passed, shown: &mut Passed) -> Cpu {
        let outside = self.at(&self.outside, at_ns);
        let gone = gone.by(&self.gone, at_ns);
        let hidden = self.hidden(at_ns, shown);
        self.all(at_ns).minus(outside).minus(gone).minus(hidden).max(Cpu::default())
    }
}
