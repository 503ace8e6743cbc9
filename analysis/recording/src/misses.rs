//! Counts of failed look-ups: by process, directory, errno and family, and by path.

use std::ops::Range;
use std::sync::OnceLock;

use proctrace_classify::fast::FastMap;
use proctrace_libsearch::Sought;
use proctrace_wire::layout::MissFixed;
use proctrace_wire::{Call, Family};

use crate::costs::Durations;
use crate::order::in_order;

/// True if a look-up found its file, which is no symbolic link: realpath(3) asks for each part of a path, and is told
/// so by an error (EINVAL of readlink(2)).
pub fn found_no_link(miss: &MissFixed) -> bool {
    const EINVAL: u16 = 22;
    miss.error == EINVAL && Family::of(Call::from_number(miss.call)) == Some(Family::Readlink)
}

/// Durations of the failed look-ups that were timed.
#[derive(Debug, Default)]
pub struct LookupTimes {
    /// Durations of look-ups of libraries.
    pub libraries: Durations,
    /// Opens of anything else.
    pub opens: Durations,
    /// All but those of libraries, by the number of their kind.
    pub by_kind: FastMap<u32, Durations>,
}

/// Minimum durations that have a mean worth telling.
const TIMED_MIN: u64 = 30;

impl LookupTimes {
    /// Time that this number of failed look-ups took, by the mean of all that were timed.
    pub fn of(&self, lookups: u64) -> Option<u64> {
        let all = || self.by_kind.values().chain([&self.libraries]);
        let timed: u64 = all().map(Durations::timed).sum();
        let sum_ns: f64 = all().filter_map(|it| Some(it.mean_ns()? * it.timed() as f64)).sum();
        (timed >= TIMED_MIN).then(|| (sum_ns / timed as f64 * lookups as f64).round() as u64)
    }
}

/// The key under which a failed look-up is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Miss {
    pub process: u32,
    pub directory: u32,
    pub errno: u16,
    /// Position in `Family::ALL`; beyond it for calls of no family.
    pub family: u8,
}

/// The part of the key that does not depend on the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MissKind {
    pub directory: u32,
    pub errno: u16,
    /// Position in `Family::ALL`; beyond it for calls of no family.
    pub family: u8,
}

/// Failed look-ups by process, directory, errno and family.
#[derive(Debug, Default)]
pub struct Misses {
    kinds: Vec<MissKind>,
    /// Counts in order, with one entry per process and kind, in groups of `GROUP_PROCESSES`
    /// consecutive processes.
    counted: Vec<GroupCounts>,
    /// See [`Misses::totals`].
    totals: OnceLock<Vec<(MissKind, u64, u64)>>,
}

/// Counts of `GROUP_PROCESSES` consecutive processes, in order: the number by which each process is higher than the one
/// before, the kind, and the count, as variable-length integers (LEB128). Most take three or four bytes together.
#[derive(Debug)]
struct GroupCounts {
    /// The first process of the group.
    first: u32,
    bytes: Box<[u8]>,
}

impl GroupCounts {
    fn of(group: usize, counted: &[Counted]) -> Self {
        let first = u32::try_from(group).unwrap_or(u32::MAX).saturating_mul(GROUP_PROCESSES);
        let (mut bytes, mut before) = (Vec::with_capacity(4 * counted.len()), first);
        for Counted { process, kind, count } in counted {
            for mut number in [process.wrapping_sub(before), *kind, *count] {
                while number > 0x7f {
                    bytes.push(number as u8 | 0x80);
                    number >>= 7;
                }
                bytes.push(number as u8);
            }
            before = *process;
        }
        Self { first, bytes: bytes.into() }
    }

    fn iter(&self) -> impl Iterator<Item = Counted> {
        let (mut bytes, mut process) = (self.bytes.iter(), self.first);
        let mut number = move || {
            let (mut number, mut shift) = (0, 0);
            loop {
                let byte = *bytes.next()?;
                number |= u32::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return Some(number);
                }
            }
        };
        std::iter::from_fn(move || {
            process = process.wrapping_add(number()?);
            Some(Counted { process, kind: number()?, count: number()? })
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    process: u32,
    /// Number of the kind.
    kind: u32,
    count: u32,
}

impl Counted {
    fn key(&self) -> u64 {
        u64::from(self.process) << 32 | u64::from(self.kind)
    }
}

impl Misses {
    /// Process, number of the kind, and number of look-ups, by process.
    pub fn counted(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let all = self.counted.iter().flat_map(GroupCounts::iter);
        all.map(|counted| (counted.process, counted.kind, counted.count))
    }

    /// Every key with its number of look-ups, by process.
    pub fn iter(&self) -> impl Iterator<Item = (Miss, u32)> {
        self.counted().filter_map(|(process, kind, count)| {
            let MissKind { directory, errno, family } = *self.kinds.get(kind as usize)?;
            Some((Miss { process, directory, errno, family }, count))
        })
    }

    /// Failed look-ups of each of these processes.
    pub(crate) fn by_process(&self, processes: Range<usize>) -> Vec<u64> {
        let mut sums = vec![0; processes.len()];
        let group = GROUP_PROCESSES as usize;
        let groups = processes.start / group..processes.end.div_ceil(group).min(self.counted.len());
        for counted in
            self.counted.get(groups).unwrap_or_default().iter().flat_map(GroupCounts::iter)
        {
            let at = (counted.process as usize).checked_sub(processes.start);
            if let Some(sum) = at.and_then(|at| sums.get_mut(at)) {
                *sum += u64::from(counted.count);
            }
        }
        sums
    }

    /// The kinds, by number.
    pub fn kinds(&self) -> &[MissKind] {
        &self.kinds
    }

    /// The kinds that occur, each with the number of look-ups and of processes that made them.
    pub fn by_kind(&self) -> Vec<(MissKind, u64, u64)> {
        self.totals().iter().copied().filter(|(_, count, _)| *count > 0).collect()
    }

    /// The same for every kind, by number.
    pub fn totals(&self) -> &[(MissKind, u64, u64)] {
        self.totals.get_or_init(|| {
            let mut sums: Vec<_> = self.kinds.iter().map(|kind| (*kind, 0_u64, 0_u64)).collect();
            for (_, kind, number) in self.counted() {
                if let Some((_, count, processes)) = sums.get_mut(kind as usize) {
                    *count = count.saturating_add(number.into());
                    *processes += 1;
                }
            }
            sums
        })
    }
}

/// Number of cached counts for processes that are currently looking up paths; a power of 2. A
/// process has a few hundred kinds, and about as many processes run at once as there are cores.
const AT_HAND: usize = 1 << 14;

/// Processes per group of flushed counts that is sorted together: few enough to fit in a cache.
const GROUP_PROCESSES: u32 = 1 << 12;
/// Maximum unsorted counts of a group before it is sorted.
const UNSORTED_MAX: usize = 1 << 14;
/// Groups that stay open: groups further back hardly receive any more counts.
const GROUPS_AT_HAND: usize = 8;

/// Counts look-ups. The failures of one process come close together, so nearly all of them hit the
/// cached counter of their kind, without a map of all processes and kinds.
#[derive(Debug)]
pub struct MissCounter {
    kinds: Vec<MissKind>,
    numbers: FastMap<MissKind, u32>,
    at_hand: Vec<Counted>,
    /// Flushed counts, by process.
    groups: Vec<Group>,
}

impl Default for MissCounter {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            numbers: FastMap::default(),
            at_hand: vec![Counted { process: 0, kind: 0, count: 0 }; AT_HAND],
            groups: Vec::new(),
        }
    }
}

/// Counts of consecutive processes.
#[derive(Debug, Default)]
struct Group {
    /// Earlier counts, sorted and compacted.
    done: Option<GroupCounts>,
    counted: Vec<Counted>,
    /// Number of leading entries that are sorted.
    sorted: usize,
}

impl Group {
    fn push(&mut self, counted: Counted) {
        self.counted.push(counted);
        if self.counted.len() - self.sorted >= self.sorted.max(UNSORTED_MAX) {
            self.sort();
        }
    }

    /// Sorts and compacts the counts; more may still be added afterwards.
    fn finish(&mut self, group: usize) {
        if self.counted.is_empty() && self.done.is_some() {
            return;
        }
        let mut counted = std::mem::take(&mut self.counted);
        counted.extend(self.done.take().iter().flat_map(GroupCounts::iter));
        *self = Self { done: None, counted, sorted: 0 };
        self.sort();
        self.done = Some(GroupCounts::of(group, &self.counted));
        (self.counted, self.sorted) = (Vec::new(), 0);
    }

    /// Sorts the counts and merges those with equal keys, so there are at most twice as many
    /// entries as necessary.
    fn sort(&mut self) {
        if self.sorted == self.counted.len() {
            return;
        }
        let counted = &self.counted;
        let process = |at: u32| u64::from(counted[at as usize].process);
        match u32::try_from(counted.len()) {
            Ok(count) => {
                let order = in_order(count, process, |at| counted[at as usize].key());
                self.counted = order.into_iter().map(|at| counted[at as usize]).collect();
            }
            Err(_) => self.counted.sort_unstable_by_key(Counted::key),
        }
        self.counted.dedup_by(|next, kept| {
            let same = next.key() == kept.key();
            if same {
                kept.count = kept.count.saturating_add(next.count);
            }
            same
        });
        self.sorted = self.counted.len();
    }
}

impl MissCounter {
    pub fn number_of(&mut self, kind: MissKind) -> u32 {
        if let Some(number) = self.numbers.get(&kind) {
            return *number;
        }
        let number = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        self.kinds.push(kind);
        self.numbers.insert(kind, number);
        number
    }

    /// Adds one look-up of a process and a kind, given by number.
    #[inline]
    pub fn add(&mut self, process: u32, kind: u32) {
        let spread = process.wrapping_mul(0x9e37_79b1).wrapping_add(kind);
        let at_hand = &mut self.at_hand[spread as usize % AT_HAND];
        if (at_hand.process, at_hand.kind) == (process, kind) {
            at_hand.count = at_hand.count.saturating_add(1);
            return;
        }
        let past = std::mem::replace(at_hand, Counted { process, kind, count: 1 });
        if past.count > 0 {
            self.push(past);
        }
    }

    fn push(&mut self, past: Counted) {
        let group = (past.process / GROUP_PROCESSES) as usize;
        while self.groups.len() <= group {
            self.groups.push(Group::default());
            let done = self.groups.len().saturating_sub(GROUPS_AT_HAND + 1);
            if self.groups.len() > GROUPS_AT_HAND {
                self.groups[done].finish(done);
            }
        }
        self.groups[group].push(past);
    }

    pub fn finish(mut self) -> Misses {
        for past in std::mem::take(&mut self.at_hand) {
            if past.count > 0 {
                self.push(past);
            }
        }
        let finished = |(at, mut group): (usize, Group)| {
            group.finish(at);
            group.done
        };
        let counted = self.groups.into_iter().enumerate().filter_map(finished).collect();
        Misses { kinds: self.kinds, counted, totals: OnceLock::new() }
    }
}

/// Limits on the paths counted individually: their number, and their total size in bytes.
const PATHS_MAX: usize = 1 << 20;
const PATH_BYTES_MAX: usize = 64 << 20;

/// A path whose look-up failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedPath {
    /// Path as passed to the call; `?` where it could not be read.
    pub path: Box<[u8]>,
    pub errno: u16,
    /// Position in `Family::ALL`; beyond it for calls of no family.
    pub family: u8,
    pub count: u64,
}

impl MissedPath {
    pub fn sought(&self) -> Sought {
        Sought::of(Family::ALL.get(usize::from(self.family)).copied(), &self.path)
    }
}

/// Failed look-ups by path, errno and family, without readlinks of files that are not symbolic
/// links.
#[derive(Debug, Default)]
pub struct MissedPaths {
    /// Paths in order of the first look-up.
    pub paths: Vec<MissedPath>,
    /// Look-ups of paths beyond the limits. With these the counts add up to all failed look-ups,
    /// including those of tasks that no record announced.
    pub others: u64,
}

/// Counts look-ups by path.
#[derive(Debug, Default)]
pub struct PathCounter {
    /// Numbers by path, followed by the suffix described at [`PathCounter::key`].
    numbers: FastMap<Box<[u8]>, u32>,
    bytes: usize,
    counts: Vec<u64>,
    others: u64,
    key: Vec<u8>,
}

/// The number of all paths that are not counted individually.
pub const OTHERS: u32 = u32::MAX;
/// Bytes of the suffix: errno and family.
const BEHIND: usize = 3;

impl PathCounter {
    /// The number of a path, new or not.
    pub fn number_of(&mut self, path: &[u8], errno: u16, family: u8) -> u32 {
        self.key.clear();
        self.key.extend_from_slice(path);
        self.key.extend(errno.to_le_bytes());
        self.key.push(family);
        if let Some(number) = self.numbers.get(&*self.key) {
            return *number;
        }
        if self.counts.len() >= PATHS_MAX || self.bytes + self.key.len() > PATH_BYTES_MAX {
            return OTHERS;
        }
        // There are at most PATHS_MAX.
        let number = self.counts.len() as u32;
        self.counts.push(0);
        self.bytes += self.key.len();
        self.numbers.insert(self.key.clone().into(), number);
        number
    }

    #[inline]
    pub fn add(&mut self, number: u32) {
        match self.counts.get_mut(number as usize) {
            Some(count) => *count += 1,
            None => self.others += 1,
        }
    }

    pub fn finish(self) -> MissedPaths {
        let mut numbered: Vec<(u32, Box<[u8]>)> =
            self.numbers.into_iter().map(|(key, number)| (number, key)).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        let counts = self.counts;
        let path = |(number, key): (u32, Box<[u8]>)| {
            let mut path = key.into_vec();
            let behind = path.split_off(path.len().saturating_sub(BEHIND));
            let count = counts.get(number as usize).copied().unwrap_or(0);
            let (errno, family) = match behind[..] {
                [low, high, family] => (u16::from_le_bytes([low, high]), family),
                _ => (0, u8::MAX),
            };
            MissedPath { path: path.into(), errno, family, count }
        };
        MissedPaths { paths: numbered.into_iter().map(path).collect(), others: self.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn kind(directory: u32) -> MissKind {
        MissKind { directory, errno: 2, family: 0 }
    }

    proptest! {
        #[test]
        fn it_counts_what_a_map_counts(
            added in proptest::collection::vec((0u32..9, 0u32..5), 0..400),
            rounds in 1usize..3,
        ) {
            let (mut counter, mut map) = (MissCounter::default(), BTreeMap::new());
            for _ in 0..rounds {
                for (process, directory) in &added {
                    let number = counter.number_of(kind(*directory));
                    // Processes that share a cache slot with others.
                    counter.add(*process << 14, number);
                    *map.entry((*process << 14, *directory)).or_insert(0u32) += 1;
                }
                counter.groups.iter_mut().for_each(Group::sort);
            }
            let misses = counter.finish();
            let counted: BTreeMap<_, _> = misses
                .iter()
                .map(|(miss, count)| ((miss.process, miss.directory), count))
                .collect();
            prop_assert_eq!(counted.len(), misses.iter().count());
            let all: u64 = map.values().map(|count| u64::from(*count)).sum();
            prop_assert_eq!(misses.by_kind().iter().map(|(_, count, _)| count).sum::<u64>(), all);
            for (found, _, processes) in misses.by_kind() {
                let of = map.keys().filter(|(_, directory)| *directory == found.directory).count();
                prop_assert_eq!(processes, of as u64);
            }
            let processes = 9 << 14;
            let by_process = misses.by_process(0..processes);
            prop_assert_eq!(by_process.iter().sum::<u64>(), all);
            for from in (0..processes).step_by(5_000) {
                let to = processes.min(from + 5_000);
                prop_assert_eq!(&misses.by_process(from..to), &by_process[from..to]);
            }
            prop_assert_eq!(counted, map);
        }
    }

    proptest! {
        #[test]
        fn a_group_keeps_all_that_is_counted(
            group in 0..=u32::MAX / GROUP_PROCESSES,
            counted in proptest::collection::vec(
                (0..GROUP_PROCESSES, prop_oneof![0..300_u32, any::<u32>()], any::<u32>()), 0..50),
        ) {
            let first = group * GROUP_PROCESSES;
            let mut counted: Vec<_> = counted
                .into_iter()
                .map(|(at, kind, count)| Counted { process: first + at, kind, count })
                .collect();
            counted.sort_by_key(Counted::key);
            let kept: Vec<_> = GroupCounts::of(group as usize, &counted).iter().collect();
            prop_assert_eq!(kept, counted);
        }
    }

    #[test]
    fn many_counts_are_put_in_order_as_they_come() {
        let mut counter = MissCounter::default();
        let number = counter.number_of(kind(1));
        let processes = 3 * GROUPS_AT_HAND as u32 * GROUP_PROCESSES;
        for process in (0..processes).chain(0..processes) {
            counter.add(process, number);
        }
        let kept: usize = counter.groups.iter().map(|group| group.counted.len()).sum();
        assert!(kept <= 2 * processes as usize);
        let misses = counter.finish();
        assert_eq!(misses.by_kind(), [(kind(1), 2 * u64::from(processes), u64::from(processes))]);
    }

    #[test]
    fn paths_beyond_what_is_kept_are_counted_together() {
        let mut counter = PathCounter::default();
        let long = vec![b'x'; PATH_BYTES_MAX / 2];
        for (path, errno) in [(&b"/a"[..], 2), (b"/a", 13), (&long, 2), (&long, 13), (b"/a", 2)] {
            let number = counter.number_of(path, errno, 1);
            counter.add(number);
        }
        let found = counter.finish();
        let counts: Vec<_> =
            found.paths.iter().map(|path| (path.path.len(), path.errno, path.count)).collect();
        assert_eq!(counts, [(2, 2, 2), (2, 13, 1), (long.len(), 2, 1)]);
        assert_eq!(found.paths[0].path[..], *b"/a");
        assert_eq!((found.paths[0].family, found.others), (1, 1));
    }
}
