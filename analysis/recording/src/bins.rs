//! Whole-tree quantities over time, in bins of equal width.
//!
//! A task's counters are known at its birth (zero), at each of its samples and at its end. The
//! increase between two of these points is spread evenly over the interval, so each bin's value is
//! exact up to the sampling interval, and the sum over all bins is exact.

use proctrace_replay::{CpuTime, Usage, scale};
use proctrace_wire::layout::Tick;

use crate::bin_series::{BinKind, BinSeries};
use crate::split::{Balance, Growth};

/// Maximum number of bins: a week in bins of 0.1 s would be six million.
const BINS_MAX: u64 = 20_000;

/// The time series: one value per bin and quantity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bins {
    pub start_ns: u64,
    pub width_ns: u64,
    len: usize,
    values: Vec<Vec<f64>>,
    /// CPU time in nanoseconds and process births per category, indexed by category number.
    pub categories: Vec<CategoryBins>,
    ticks: Vec<u32>,
}

/// CPU time and process births of one category, per bin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CategoryBins {
    pub user_ns: Vec<f64>,
    pub system_ns: Vec<f64>,
    pub processes: Vec<f64>,
}

/// A task's usage at one point in time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    pub time_ns: u64,
    used: Usage,
    /// CPU time as the kernel splits it: what samplers of /proc read.
    told: CpuTime,
}

impl Point {
    pub fn born(time_ns: u64) -> Self {
        Self { time_ns, ..Self::default() }
    }

    pub fn new(time_ns: u64, used: Usage) -> Self {
        Self { time_ns, used, told: scale(used.run_ns, used.utime_ns, used.stime_ns) }
    }

    /// The task's CPU time since an earlier point, as the kernel splits it.
    pub(crate) fn told_since(&self, before: &Self) -> CpuTime {
        self.told - before.told
    }

    /// The task's usage since an earlier point.
    pub(crate) fn growth_since(&self, before: &Self) -> Growth {
        Growth {
            from_ns: before.time_ns,
            to_ns: self.time_ns,
            run_ns: self.used.run_ns.saturating_sub(before.used.run_ns),
            ticks: self.used.ticks().minus(before.used.ticks()),
        }
    }

    /// The user and system times that the kernel reports must not decrease when it re-estimates the
    /// split; the kernel keeps its own estimates monotonic in the same way (`cputime_adjust`). Nor
    /// may any other counter decrease.
    fn after(mut self, before: &Self) -> Self {
        let total = self.told.total_ns().max(before.told.total_ns());
        let system = self.told.system_ns.max(before.told.system_ns);
        let user = (total - system.min(total)).max(before.told.user_ns);
        self.told = CpuTime { user_ns: user, system_ns: total - user.min(total) };
        self.used.run_ns = self.used.run_ns.max(before.used.run_ns);
        self
    }
}

impl Bins {
    /// Bins of `width_ns`, or of a multiple of it where there would be too many, for this number of
    /// categories.
    pub fn new(start_ns: u64, end_ns: u64, width_ns: u64, categories: usize) -> Self {
        let length = end_ns.saturating_sub(start_ns).max(1);
        let width_ns = width_ns.max(1_000_000);
        let merged = length.div_ceil(width_ns).div_ceil(BINS_MAX).max(1);
        let width_ns = width_ns.saturating_mul(merged);
        let len = usize::try_from(length.div_ceil(width_ns)).unwrap_or(1);
        let zeros = vec![0.0; len];
        let category = CategoryBins {
            user_ns: zeros.clone(),
            system_ns: zeros.clone(),
            processes: zeros.clone(),
        };
        Self {
            start_ns,
            width_ns,
            len,
            values: vec![zeros; BinSeries::COUNT],
            categories: vec![category; categories],
            ticks: vec![0; len],
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first bin in which a quantity is known: for quantities that only ticks record, the bin
    /// of the first tick, or the number of bins if there is none. Values in earlier bins are
    /// meaningless.
    pub fn known_from(&self, quantity: BinSeries) -> usize {
        match quantity.kind() {
            BinKind::Sampled => self.ticks.iter().position(|ticks| *ticks > 0).unwrap_or(self.len),
            _ => 0,
        }
    }

    /// The values of a quantity, one per bin.
    pub fn of(&self, quantity: BinSeries) -> &[f64] {
        self.values.get(quantity as usize).map_or(&[], Vec::as_slice)
    }

    /// Adds the increase of a task's counters from one point to the next and returns the latter.
    /// Calls `each` with every bin touched and the CPU time in it. The user/system split is added
    /// by [`Bins::add_divided`] once it is known.
    pub(crate) fn add_growth(
        &mut self,
        from: &Point,
        to: Point,
        mut each: impl FnMut(usize, f64),
    ) -> Point {
        let to = to.after(from);
        let grown = to.used.since(from.used);
        let run_ns = grown.run_ns as f64;
        let told = to.told - from.told;
        let increases = BinSeries::increases(&grown);
        for (bin, share) in self.shares(from.time_ns, to.time_ns) {
            for (quantity, grown) in increases {
                if grown != 0 {
                    self.values[quantity as usize][bin] += grown as f64 * share;
                }
            }
            self.values[BinSeries::ToldUser as usize][bin] += told.user_ns as f64 * share;
            self.values[BinSeries::ToldSystem as usize][bin] += told.system_ns as f64 * share;
            each(bin, run_ns * share);
        }
        to
    }

    /// Adds CPU time of a category, given the fraction of it that is system time.
    pub(crate) fn add_divided(&mut self, growth: &Growth, system_share: f64, category: usize) {
        let system_ns = growth.run_ns as f64 * system_share;
        let user_ns = growth.run_ns as f64 - system_ns;
        for (bin, share) in self.shares(growth.from_ns, growth.to_ns) {
            self.values[BinSeries::User as usize][bin] += user_ns * share;
            self.values[BinSeries::System as usize][bin] += system_ns * share;
            if let Some(category) = self.categories.get_mut(category) {
                category.user_ns[bin] += user_ns * share;
                category.system_ns[bin] += system_ns * share;
            }
        }
    }

    /// Called after the last addition: shifts user and system time so that their sums match the
    /// estimate for the whole tree.
    pub fn balance(&mut self, balance: Balance) {
        let (user, system) = (BinSeries::User as usize, BinSeries::System as usize);
        let [user, system] = [user, system].map(|at| std::mem::take(&mut self.values[at]));
        let (user, system) = balanced(balance, user, system);
        (self.values[BinSeries::User as usize], self.values[BinSeries::System as usize]) =
            (user, system);
        for category in &mut self.categories {
            (category.user_ns, category.system_ns) = balanced(
                balance,
                std::mem::take(&mut category.user_ns),
                std::mem::take(&mut category.system_ns),
            );
        }
    }

    /// Counts events of one kind, most of which arrive in time order.
    pub fn events(&mut self, quantity: BinSeries) -> BinEvents<'_> {
        let (start_ns, width_ns, len) = (self.start_ns, self.width_ns, self.len);
        let values = &mut self.values[quantity as usize];
        BinEvents { values, start_ns, width_ns, len, bin: 0, from_ns: 1, to_ns: 0 }
    }

    /// Moves in the values of a quantity that were accumulated in another set of bins of the same
    /// times.
    pub(crate) fn take_values(&mut self, quantity: BinSeries, other: &mut Self) {
        if self.len == other.len {
            let at = quantity as usize;
            self.values[at] = std::mem::take(&mut other.values[at]);
        }
    }

    /// Counts one more process of a category.
    pub(crate) fn add_process(&mut self, category: usize, time_ns: u64) {
        let bin = self.bin_of(time_ns);
        if let Some(category) = self.categories.get_mut(category) {
            category.processes[bin] += 1.0;
        }
    }

    /// Adds the lifetime of a task.
    pub(crate) fn add_life(&mut self, from_ns: u64, to_ns: u64) {
        let length = to_ns.saturating_sub(from_ns) as f64 / self.width_ns as f64;
        for (bin, share) in self.shares(from_ns, to_ns) {
            self.values[BinSeries::Live as usize][bin] += length * share;
        }
    }

    pub(crate) fn add_tick(&mut self, tick: &Tick) {
        let bin = self.bin_of(tick.head.time_ns);
        for (quantity, tasks) in [
            (BinSeries::Running, tick.running),
            (BinSeries::Sleeping, tick.sleeping),
            (BinSeries::Uninterruptible, tick.uninterruptible),
        ] {
            self.values[quantity as usize][bin] += f64::from(tasks);
        }
        self.ticks[bin] += 1;
    }

    /// Called after the last tick: turns sums into means and fills gaps with the last known value.
    pub(crate) fn finish_ticks(&mut self) {
        for quantity in [BinSeries::Running, BinSeries::Sleeping, BinSeries::Uninterruptible] {
            let mut known = 0.0;
            for (value, ticks) in self.values[quantity as usize].iter_mut().zip(&self.ticks) {
                if *ticks > 0 {
                    known = *value / f64::from(*ticks);
                }
                *value = known;
            }
        }
    }

    /// The bin that contains a time; times outside the range map to the first or last bin.
    pub fn bin_of(&self, time_ns: u64) -> usize {
        bin_of(time_ns, self.start_ns, self.width_ns, self.len)
    }

    /// The bins that an interval overlaps, with the fraction of it in each; the fractions add up to
    /// 1.
    pub fn shares(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (usize, f64)> + use<> {
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
            // The last bin includes everything beyond the end.
            let end = if bin == last { to_ns } else { edge(bin as u64 + 1).min(to_ns) };
            (bin, end.saturating_sub(begin) as f64 / length)
        })
    }
}

fn bin_of(time_ns: u64, start_ns: u64, width_ns: u64, len: usize) -> usize {
    let bin = time_ns.saturating_sub(start_ns) / width_ns;
    usize::try_from(bin).unwrap_or(usize::MAX).min(len - 1)
}

/// Counts events of one kind.
#[derive(Debug)]
pub struct BinEvents<'a> {
    values: &'a mut [f64],
    start_ns: u64,
    width_ns: u64,
    len: usize,
    /// Bin of the last event, and a range of times known to lie in it.
    bin: usize,
    from_ns: u64,
    to_ns: u64,
}

impl BinEvents<'_> {
    #[inline]
    pub fn add(&mut self, time_ns: u64) {
        if !(self.from_ns..self.to_ns).contains(&time_ns) {
            self.bin = bin_of(time_ns, self.start_ns, self.width_ns, self.len);
            let begin = (self.bin as u64).saturating_mul(self.width_ns);
            self.from_ns = self.start_ns.saturating_add(begin);
            self.to_ns = self.from_ns.saturating_add(self.width_ns);
        }
        self.values[self.bin] += 1.0;
    }
}

fn balanced(balance: Balance, user: Vec<f64>, system: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    user.into_iter().zip(system).map(|(user, system)| balance.of(user, system)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    const MS: u64 = 1_000_000;

    #[test]
    fn growth_is_spread_over_the_time_it_took() {
        let mut bins = Bins::new(0, 40 * MS, 10 * MS, 1);
        let born = Point::born(5 * MS);
        let to = Point::new(35 * MS, Usage { run_ns: 300, nvcsw: 30, ..Usage::default() });
        let mut told = Vec::new();
        let to = bins.add_growth(&born, to, |bin, ns| told.push((bin, ns)));
        bins.add_divided(&to.growth_since(&born), 0.25, 0);
        assert_eq!(bins.of(BinSeries::User), [37.5, 75.0, 75.0, 37.5]);
        assert_eq!(bins.of(BinSeries::System), [12.5, 25.0, 25.0, 12.5]);
        assert_eq!(bins.of(BinSeries::SwitchesVoluntary), [5.0, 10.0, 10.0, 5.0]);
        assert_eq!(bins.categories[0].user_ns, bins.of(BinSeries::User));
        assert_eq!(told, [(0, 50.0), (1, 100.0), (2, 100.0), (3, 50.0)]);
    }

    #[test]
    fn lives_add_up_to_the_mean_number_alive() {
        let mut bins = Bins::new(0, 40 * MS, 10 * MS, 0);
        bins.add_life(5 * MS, 25 * MS);
        bins.add_life(12 * MS, 14 * MS);
        let live = bins.of(BinSeries::Live);
        for (found, expected) in live.iter().zip([0.5, 1.2, 0.5, 0.0]) {
            assert!((found - expected).abs() < 1e-9, "{live:?}");
        }
    }

    #[test]
    fn gaps_between_ticks_keep_the_last_value() {
        let mut bins = Bins::new(0, 40 * MS, 10 * MS, 0);
        for (time_ns, running) in [(11 * MS, 3), (12 * MS, 5), (31 * MS, 1)] {
            let mut tick = Tick::new_zeroed();
            tick.head.time_ns = time_ns;
            tick.running = running;
            bins.add_tick(&tick);
        }
        bins.finish_ticks();
        assert_eq!(bins.of(BinSeries::Running)[1..], [4.0, 4.0, 1.0]);
        assert_eq!(bins.known_from(BinSeries::Running), 1);
        assert_eq!(bins.known_from(BinSeries::User), 0);
        assert_eq!(Bins::new(0, 40 * MS, 10 * MS, 0).known_from(BinSeries::Running), 4);
    }

    #[test]
    fn a_week_does_not_make_millions_of_bins() {
        let bins = Bins::new(0, 7 * 86_400 * 1000 * MS, 100 * MS, 0);
        assert!(bins.len() as u64 <= BINS_MAX && bins.len() as u64 > BINS_MAX / 2);
        assert_eq!(Bins::new(5, 5, 0, 0).len(), 1);
    }

    #[test]
    fn a_revised_split_never_takes_time_back() {
        let before = Point { told: CpuTime { user_ns: 80, system_ns: 20 }, ..Point::default() };
        let revised = Point { told: CpuTime { user_ns: 60, system_ns: 60 }, ..Point::default() };
        let after = revised.after(&before);
        assert_eq!(after.told, CpuTime { user_ns: 80, system_ns: 40 });
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_invented(
            times in proptest::collection::vec(0u64..2000, 2..10),
            user in 0u64..1_000_000,
            end in 1u64..3000,
            share in 0.0..=1.0f64,
        ) {
            let mut times = times;
            times.sort_unstable();
            let mut bins = Bins::new(100 * MS, (100 + end) * MS, 7 * MS, 1);
            let mut point = Point::born(times[0] * MS);
            for (at, time) in times.iter().enumerate().skip(1) {
                let run_ns = user * at as u64;
                let to = Point::new(time * MS, Usage { run_ns, ..Usage::default() });
                let to = bins.add_growth(&point, to, |_, _| ());
                bins.add_divided(&to.growth_since(&point), share, 0);
                point = to;
            }
            let of = |quantity| bins.of(quantity).iter().sum::<f64>();
            let total = of(BinSeries::User) + of(BinSeries::System);
            let expected = (user * (times.len() as u64 - 1)) as f64;
            prop_assert!((total - expected).abs() <= expected * 1e-9 + 1e-6, "{total} {expected}");
        }
    }
}
