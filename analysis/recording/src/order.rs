//! Puts millions of things in order of time, which they nearly are already.

use proctrace_classify::fast::counters;

/// Number of things for which there is one bucket.
const BUCKET: usize = 4;

/// The numbers from 0 to `count`, exclusive, in order of their keys, which begin with their times.
///
/// Times are divided into intervals of equal length, a quarter as many as there are numbers, and the numbers of each
/// interval are sorted by themselves. That takes five to six bytes for each; numbers sorted along with their times take
/// sixteen.
pub fn in_order<K: Ord>(
    count: u32,
    time_ns: impl Fn(u32) -> u64,
    key: impl Fn(u32) -> K,
) -> Vec<u32> {
    let intervals = Intervals::of((0..count).map(&time_ns));
    // Where the numbers of each interval begin; while they are filled in, where the next one is written.
    let mut begins = counters(intervals.count + 1);
    for number in 0..count {
        begins[intervals.at(time_ns(number)) + 1] += 1;
    }
    for at in 1..begins.len() {
        begins[at] += begins[at - 1];
    }
    let mut order = vec![0; count as usize];
    for number in 0..count {
        let next = &mut begins[intervals.at(time_ns(number))];
        order[*next as usize] = number;
        *next += 1;
    }
    // Each now begins where the one before it began, at its own end.
    let mut begin = 0;
    for end in &begins[..intervals.count] {
        order[begin..*end as usize].sort_unstable_by_key(|number| key(*number));
        begin = *end as usize;
    }
    order
}

/// The time of all of them, divided into intervals of equal length.
#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    first_ns: u64,
    /// The length is two to the power of this, in nanoseconds.
    shift: u32,
    pub count: usize,
}

impl Intervals {
    /// A quarter as many intervals as there are times, up to twice as many as that.
    pub fn of(times_ns: impl Iterator<Item = u64>) -> Self {
        let (mut first_ns, mut last_ns, mut count) = (u64::MAX, 0, 0_usize);
        for time_ns in times_ns {
            first_ns = first_ns.min(time_ns);
            last_ns = last_ns.max(time_ns);
            count += 1;
        }
        let first_ns = first_ns.min(last_ns);
        let at_most = (count / BUCKET).max(1) as u64;
        let mut shift = 0;
        while (last_ns - first_ns) >> shift >= 2 * at_most {
            shift += 1;
        }
        Self { first_ns, shift, count: ((last_ns - first_ns) >> shift) as usize + 1 }
    }

    /// The interval of a time; times beyond both ends are in the first and last one.
    #[inline]
    pub fn at(&self, time_ns: u64) -> usize {
        let at = time_ns.saturating_sub(self.first_ns) >> self.shift;
        usize::try_from(at).unwrap_or(usize::MAX).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = Vec<u64>> {
        // Dense, in bursts, and anything.
        prop_oneof![
            proptest::collection::vec(0..50_u64, 0..200),
            proptest::collection::vec((0..4_u64, 0..9_u64), 0..200)
                .prop_map(|times| times.iter().map(|(burst, at)| burst * 1_000_000 + at).collect()),
            proptest::collection::vec(any::<u64>(), 0..200),
        ]
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_sort(times in times()) {
            let key = |number: u32| (times[number as usize], number);
            let mut sorted: Vec<u32> = (0..times.len() as u32).collect();
            sorted.sort_by_key(|number| key(*number));
            prop_assert_eq!(in_order(times.len() as u32, |at| times[at as usize], key), sorted);
        }

        #[test]
        fn there_are_no_more_intervals_than_half_the_times(times in times()) {
            let intervals = Intervals::of(times.iter().copied());
            prop_assert!(intervals.count <= (times.len() / BUCKET).max(1) * 2);
            prop_assert!(times.iter().all(|time_ns| intervals.at(*time_ns) < intervals.count));
        }
    }
}
