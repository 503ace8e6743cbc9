//! Resolves look-ups and opens recorded by number to those that they repeat.

use std::collections::HashMap;

use proctrace_wire::Record;
use proctrace_wire::layout::{
    Again, Head, MISS_LOST, MISS_PATH_FAULT, MissFixed, NAMED_SLOTS, Named,
};

/// Look-ups remembered per slot. The BPF programs remember one; but one of them may find a number
/// just before another replaces it, and write its record just after.
const KEPT_PER_SLOT: usize = 2;

/// Number of places: numbers are assigned consecutively, so twice as many as there can be look-ups leave few
/// collisions.
const PLACES: usize = 2 * KEPT_PER_SLOT * NAMED_SLOTS as usize;

const NONE: u32 = u32::MAX;

/// The look-ups that a record may refer to, each with the value that `make` returned for it. Memory
/// is bounded by the number of slots, whatever a trace contains.
#[derive(Debug)]
pub struct Lookups<T> {
    known: Vec<Numbered<T>>,
    /// The indices of each slot, oldest first.
    slots: Vec<[u32; KEPT_PER_SLOT]>,
    /// Index by number, addressed by the low bits of the number.
    places: Vec<u32>,
    /// The same for numbers whose place is occupied by another.
    crowded: HashMap<u32, u32>,
}

#[derive(Debug)]
struct Numbered<T> {
    number: u32,
    miss: MissFixed,
    path: Vec<u8>,
    made: T,
}

impl<T> Default for Lookups<T> {
    fn default() -> Self {
        Self { known: Vec::new(), slots: Vec::new(), places: Vec::new(), crowded: HashMap::new() }
    }
}

/// The failed look-ups and the opens that a record may refer to. A number belongs to one or the other,
/// so each is found among its own.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    failed: Lookups<()>,
    opened: Lookups<()>,
}

impl Recall {
    /// The record itself, or for any form of look-up or open, the same in full. If its full record is
    /// lost, [`MISS_LOST`] is set.
    pub(crate) fn recall<'a>(&'a mut self, record: Record<'a>) -> Recalled<'a> {
        let make = |_: &MissFixed, _: &[u8]| ();
        match record {
            Record::LookupFailed(miss, path) => Recalled::Failed(Lookup { miss, path, made: () }),
            Record::LookupNamed(named, path) => {
                Recalled::Failed(self.failed.in_full_first(named, path, make))
            }
            Record::LookupAgain(again) => Recalled::Failed(self.failed.in_full(again, make)),
            Record::LookupTime(time) => {
                let again = Again { head: time.head, number: time.number, pad: 0 };
                Recalled::Timed(time.duration_ns, self.failed.in_full(again, make))
            }
            Record::OpenedNamed(named, path) => {
                Recalled::Opened(self.opened.in_full_first(named, path, make))
            }
            Record::OpenedAgain(again) => Recalled::Opened(self.opened.in_full(again, make)),
            record => Recalled::Other(record),
        }
    }
}

impl<T: Copy> Lookups<T> {
    /// Remembers a look-up that is recorded in full, and passes it on.
    pub fn in_full_first<'a>(
        &mut self,
        named: Named,
        path: &'a [u8],
        make: impl FnOnce(&MissFixed, &[u8]) -> T,
    ) -> Lookup<'a, T> {
        let miss = named.miss();
        let made = make(&miss, path);
        self.remember(named, path, made);
        Lookup { miss, path, made }
    }

    fn remember(&mut self, named: Named, path: &[u8], made: T) {
        let Named { number, slot, .. } = named;
        if number == 0 || slot >= NAMED_SLOTS {
            return;
        }
        if self.places.is_empty() {
            self.slots = vec![[NONE; KEPT_PER_SLOT]; NAMED_SLOTS as usize];
            self.places = vec![NONE; PLACES];
        }
        let oldest = self.slots[slot as usize][0];
        let at = match self.known.get_mut(oldest as usize) {
            Some(known) => {
                let forgotten = std::mem::replace(&mut known.number, number);
                known.miss = named.miss();
                known.path.clear();
                known.path.extend_from_slice(path);
                known.made = made;
                self.forget(forgotten, oldest);
                oldest
            }
            None => {
                // Fits: there are fewer than four times as many as slots.
                let at = self.known.len() as u32;
                let (miss, path) = (named.miss(), path.to_vec());
                self.known.push(Numbered { number, miss, path, made });
                at
            }
        };
        let slot = &mut self.slots[slot as usize];
        slot[0] = at;
        slot.rotate_left(1);
        let place = &mut self.places[number as usize % PLACES];
        if *place == NONE || self.known[*place as usize].number == number {
            *place = at;
        } else {
            self.crowded.insert(number, at);
        }
    }

    fn forget(&mut self, number: u32, at: u32) {
        let place = &mut self.places[number as usize % PLACES];
        if *place == at {
            *place = NONE;
        } else if self.crowded.get(&number) == Some(&at) {
            self.crowded.remove(&number);
        }
    }

    #[inline]
    fn find(&self, number: u32) -> Option<&Numbered<T>> {
        let place = *self.places.get(number as usize % PLACES)?;
        match self.known.get(place as usize) {
            Some(known) if known.number == number => Some(known),
            _ if self.crowded.is_empty() => None,
            _ => self.known.get(*self.crowded.get(&number)? as usize),
        }
    }

    /// Resolves a repeated look-up.
    #[inline]
    pub fn in_full(
        &self,
        again: Again,
        make: impl FnOnce(&MissFixed, &[u8]) -> T,
    ) -> Lookup<'_, T> {
        match self.find(again.number) {
            Some(known) => Lookup {
                miss: MissFixed { head: again.head, ..known.miss },
                path: &known.path,
                made: known.made,
            },
            None => {
                let miss = lost(again.head);
                Lookup { miss, path: b"", made: make(&miss, b"") }
            }
        }
    }
}

/// A record with its reference resolved.
pub(crate) enum Recalled<'a> {
    Failed(Lookup<'a, ()>),
    /// A failed look-up that took so many nanoseconds.
    Timed(u32, Lookup<'a, ()>),
    Opened(Lookup<'a, ()>),
    Other(Record<'a>),
}

/// A failed look-up in full, see [`crate::lookups()`], or an open, see [`crate::opens`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup<'a, T> {
    /// The fixed part of the record.
    pub miss: MissFixed,
    /// The path as given to the call.
    pub path: &'a [u8],
    /// The value that `make` returned for it.
    pub made: T,
}

/// A look-up whose full record is missing.
fn lost(head: Head) -> MissFixed {
    MissFixed {
        head,
        call: 0,
        error: 0,
        dirfd: 0,
        flags: 0,
        path_bytes: 0,
        bits: MISS_LOST | MISS_PATH_FAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::layout::LookupTime;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    fn head(task: u32) -> Head {
        Head { kind: 0, size: 0, task, time_ns: u64::from(task) }
    }

    fn told(number: u32, slot: u32, path: &[u8]) -> Record<'_> {
        let mut named = Named::new_zeroed();
        (named.head, named.error, named.number, named.slot) = (head(1), 2, number, slot);
        Record::LookupNamed(named, path)
    }

    fn recalled<'a>(recall: &'a mut Recall, record: Record<'a>) -> Lookup<'a, ()> {
        match recall.recall(record) {
            Recalled::Failed(lookup) => lookup,
            _ => panic!("no look-up came back"),
        }
    }

    fn again(recall: &mut Recall, number: u32) -> (u32, u16, u16, Vec<u8>) {
        let record = Record::LookupAgain(Again { head: head(7), number, pad: 0 });
        let Lookup { miss, path, .. } = recalled(recall, record);
        (miss.head.task, miss.error, miss.bits, path.to_vec())
    }

    #[test]
    fn a_number_brings_back_the_look_up_under_the_head_of_who_repeats_it() {
        let mut recall = Recall::default();
        recalled(&mut recall, told(5, 3, b"/a"));
        recalled(&mut recall, told(6, 4, b"/b"));
        assert_eq!(again(&mut recall, 5), (7, 2, 0, b"/a".to_vec()));
        assert_eq!(again(&mut recall, 6), (7, 2, 0, b"/b".to_vec()));
    }

    #[test]
    fn a_time_and_an_open_come_back_with_their_paths() {
        let mut recall = Recall::default();
        recalled(&mut recall, told(5, 3, b"/a"));
        let mut named = Named::new_zeroed();
        (named.head, named.number, named.slot) = (head(1), 6, 4);
        recall.recall(Record::OpenedNamed(named, b"/b"));
        let time = LookupTime { head: head(7), number: 5, duration_ns: 900 };
        let Recalled::Timed(900, lookup) = recall.recall(Record::LookupTime(time)) else {
            panic!("no time came back")
        };
        assert_eq!((lookup.miss.head.task, lookup.path), (7, &b"/a"[..]));
        for (number, path) in [(6, &b"/b"[..]), (5, b"")] {
            let record = Record::OpenedAgain(Again { head: head(7), number, pad: 0 });
            let Recalled::Opened(lookup) = recall.recall(record) else { panic!("no open") };
            assert_eq!(lookup.path, path);
        }
    }

    #[test]
    fn what_was_never_told_is_marked() {
        let (task, error, bits, path) = again(&mut Recall::default(), 5);
        assert_eq!((task, error, bits, path), (7, 0, MISS_LOST | MISS_PATH_FAULT, Vec::new()));
    }

    #[test]
    fn a_slot_remembers_two() {
        let mut recall = Recall::default();
        recalled(&mut recall, told(1, 9, b"/1"));
        recalled(&mut recall, told(2, 9, b"/2"));
        assert_eq!(again(&mut recall, 1).3, b"/1");
        recalled(&mut recall, told(3, 9, b"/3"));
        assert_ne!(again(&mut recall, 1).2 & MISS_LOST, 0);
        assert_eq!(again(&mut recall, 2).3, b"/2");
        assert_eq!(again(&mut recall, 3).3, b"/3");
    }

    #[test]
    fn a_hostile_trace_cannot_make_it_remember_without_bound() {
        let mut recall = Recall::default();
        for number in 1..200_000 {
            recalled(&mut recall, told(number, number % (2 * NAMED_SLOTS), b"/x"));
        }
        assert!(recall.failed.known.len() <= KEPT_PER_SLOT * NAMED_SLOTS as usize);
        assert!(recall.failed.slots.len() <= NAMED_SLOTS as usize);
    }

    proptest! {
        #[test]
        fn it_remembers_the_last_two_of_each_slot_whatever_their_numbers(
            told in proptest::collection::vec((0u32..6, 0u32..4, 0u32..4), 1..60),
        ) {
            // Numbers that collide; each is recorded once.
            let place = |n: usize, crowd: u32, step: u32| {
                1 + (n as u32) / 4 + (crowd * 64 + step * 16 + n as u32 % 4) * PLACES as u32
            };
            let mut lookups = Lookups::default();
            let mut slots: Vec<Vec<u32>> = vec![Vec::new(); 6];
            for (n, (slot, crowd, step)) in told.iter().enumerate() {
                let number = place(n, *crowd, *step);
                let mut named = Named::new_zeroed();
                (named.number, named.slot) = (number, *slot);
                let path = number.to_le_bytes();
                lookups.in_full_first(named, &path, |_, _| number);
                slots[*slot as usize].push(number);
                for slot in &slots {
                    for (age, number) in slot.iter().rev().enumerate() {
                        let known = (age < KEPT_PER_SLOT).then_some(*number);
                        let found = lookups.find(*number);
                        prop_assert_eq!(found.map(|found| found.made), known);
                        prop_assert!(found.is_none_or(|found| found.path == number.to_le_bytes()));
                    }
                }
            }
        }
    }
}
