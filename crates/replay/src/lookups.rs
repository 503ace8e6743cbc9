//! Failed look-ups that are told by number, given back what they repeat.

use std::collections::HashMap;

use proctrace_wire::Record;
use proctrace_wire::layout::{Again, MISS_LOST, MISS_PATH_FAULT, MissFixed, NAMED_SLOTS, Named};

/// How many look-ups of one slot are remembered. The programs remember one; but one of them may
/// find a number just before another replaces it, and write its record just after.
const KEPT_PER_SLOT: usize = 2;

/// The look-ups that a record may refer to. What it remembers is bounded by the number of slots,
/// whatever a trace says.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    known: HashMap<u32, Known>,
    /// Numbers by slot, oldest first; 0: none yet.
    slots: HashMap<u32, [u32; KEPT_PER_SLOT]>,
}

#[derive(Debug)]
struct Known {
    miss: MissFixed,
    path: Vec<u8>,
}

impl Lookups {
    /// The record itself, or where it is a look-up in whichever form, the look-up in full. If what
    /// it refers to is lost, [`MISS_LOST`] says so.
    pub(crate) fn recall<'a>(&'a mut self, record: Record<'a>) -> Record<'a> {
        match record {
            Record::LookupNamed(named, path) => {
                self.remember(named, path);
                Record::LookupFailed(named.miss(), path)
            }
            Record::LookupAgain(again) => self.in_full(again),
            record => record,
        }
    }

    fn remember(&mut self, named: Named, path: &[u8]) {
        let Named { number, slot, .. } = named;
        if number == 0 || slot >= NAMED_SLOTS {
            return;
        }
        let slot = self.slots.entry(slot).or_default();
        let forgotten = std::mem::replace(&mut slot[0], number);
        slot.rotate_left(1);
        self.known.remove(&forgotten);
        self.known.insert(number, Known { miss: named.miss(), path: path.to_vec() });
    }

    fn in_full(&self, again: Again) -> Record<'_> {
        match self.known.get(&again.number) {
            Some(known) => {
                Record::LookupFailed(MissFixed { head: again.head, ..known.miss }, &known.path)
            }
            None => {
                let miss = MissFixed {
                    head: again.head,
                    call: 0,
                    error: 0,
                    dirfd: 0,
                    flags: 0,
                    path_bytes: 0,
                    bits: MISS_LOST | MISS_PATH_FAULT,
                };
                Record::LookupFailed(miss, b"")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::layout::Head;
    use zerocopy::FromZeros;

    fn head(task: u32) -> Head {
        Head { kind: 0, size: 0, task, time_ns: u64::from(task) }
    }

    fn told(number: u32, slot: u32, path: &[u8]) -> Record<'_> {
        let mut named = Named::new_zeroed();
        (named.head, named.error, named.number, named.slot) = (head(1), 2, number, slot);
        Record::LookupNamed(named, path)
    }

    fn again(lookups: &mut Lookups, number: u32) -> (u32, u16, u16, Vec<u8>) {
        let record = Record::LookupAgain(Again { head: head(7), number, pad: 0 });
        let Record::LookupFailed(miss, path) = lookups.recall(record) else {
            panic!("no look-up came back")
        };
        (miss.head.task, miss.error, miss.bits, path.to_vec())
    }

    #[test]
    fn a_number_brings_back_the_look_up_under_the_head_of_who_repeats_it() {
        let mut lookups = Lookups::default();
        lookups.recall(told(5, 3, b"/a"));
        lookups.recall(told(6, 4, b"/b"));
        assert_eq!(again(&mut lookups, 5), (7, 2, 0, b"/a".to_vec()));
        assert_eq!(again(&mut lookups, 6), (7, 2, 0, b"/b".to_vec()));
    }

    #[test]
    fn every_form_comes_out_as_one() {
        let mut lookups = Lookups::default();
        let Record::LookupFailed(miss, path) = lookups.recall(told(0, 0, b"/a")) else {
            panic!("no look-up came back")
        };
        assert_eq!((miss.error, path), (2, &b"/a"[..]));
        let old = Record::LookupFailed(miss, b"/b");
        assert_eq!(lookups.recall(old), old);
    }

    #[test]
    fn what_was_never_told_is_marked() {
        let (task, error, bits, path) = again(&mut Lookups::default(), 5);
        assert_eq!((task, error, bits, path), (7, 0, MISS_LOST | MISS_PATH_FAULT, Vec::new()));
    }

    #[test]
    fn a_slot_remembers_two() {
        let mut lookups = Lookups::default();
        lookups.recall(told(1, 9, b"/1"));
        lookups.recall(told(2, 9, b"/2"));
        assert_eq!(again(&mut lookups, 1).3, b"/1");
        lookups.recall(told(3, 9, b"/3"));
        assert_ne!(again(&mut lookups, 1).2 & MISS_LOST, 0);
        assert_eq!(again(&mut lookups, 2).3, b"/2");
        assert_eq!(again(&mut lookups, 3).3, b"/3");
    }

    #[test]
    fn a_hostile_trace_cannot_make_it_remember_without_bound() {
        let mut lookups = Lookups::default();
        for number in 1..200_000 {
            lookups.recall(told(number, number % (2 * NAMED_SLOTS), b"/x"));
        }
        assert!(lookups.known.len() <= KEPT_PER_SLOT * NAMED_SLOTS as usize);
        assert!(lookups.slots.len() <= NAMED_SLOTS as usize);
    }
}
