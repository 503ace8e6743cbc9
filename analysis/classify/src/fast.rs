//! Maps, sets and counters that are used ten million times.

use std::collections::{HashMap, HashSet};

/// A map whose hash function costs a third of the standard library's. Its seed is random, so a
/// hostile trace cannot choose colliding keys.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The corresponding set.
pub type FastSet<K> = HashSet<K, foldhash::fast::RandomState>;

/// A set whose values have numbers, in the order in which they came.
pub type FastIndexSet<K> = indexmap::IndexSet<K, foldhash::fast::RandomState>;

/// Counters that begin at zero.
///
/// Unlike that of `vec![0; count]`, their memory is written here. There it is fresh from the kernel, and the increment of
/// a counter reads it first: the kernel maps its page of zeros, replaces it when the sum is written, and interrupts the
/// CPUs of all other threads to make the change known (`do_wp_page` in mm/memory.c).
pub fn counters(count: usize) -> Vec<u32> {
    std::iter::repeat_n(0, count).collect()
}

/// A set of indices with one bit each, from about the lowest to the highest: a cheap filter for keys that a map does not
/// contain. A process and its descendants take a few words, wherever they are among millions.
#[derive(Debug, Default, Clone)]
pub struct Bits {
    /// Number of the first word.
    first: usize,
    words: Vec<u64>,
}

impl Bits {
    pub fn insert(&mut self, index: usize) {
        let word = index / 64;
        if self.words.is_empty() {
            self.first = word;
        }
        if word < self.first {
            // At least twice as many words, so that few of many indices in descending order move the others.
            let more = (self.first - word).max(self.words.len()).min(self.first);
            self.words.splice(..0, std::iter::repeat_n(0, more));
            self.first -= more;
        }
        let at = word - self.first;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (index % 64);
    }

    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        let at = (index / 64).wrapping_sub(self.first);
        self.words.get(at).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.filled().is_none()
    }

    /// The words from the first to the last one that is not empty, with the number of the first.
    fn filled(&self) -> Option<(usize, &[u64])> {
        let begin = self.words.iter().position(|word| *word != 0)?;
        let end = self.words.iter().rposition(|word| *word != 0)?;
        Some((self.first + begin, &self.words[begin..=end]))
    }
}

/// Sets are equal if they have the same indices, whatever memory they take.
impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.filled() == other.filled()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_indices_take_little_memory() {
        let mut bits = Bits::default();
        for index in [5_000_000, 5_000_100, 4_999_900] {
            bits.insert(index);
        }
        assert!(bits.words.len() < 16, "{}", bits.words.len());
    }

    proptest! {
        #[test]
        fn a_set_has_what_was_put_into_it(
            indices in proptest::collection::vec(0..3000_usize, 0..60),
            others in proptest::collection::vec(0..3000_usize, 0..3),
        ) {
            let bits_of = |indices: &[usize]| {
                let mut bits = Bits::default();
                indices.iter().for_each(|index| bits.insert(*index));
                bits
            };
            let set: BTreeSet<usize> = indices.iter().copied().collect();
            let bits = bits_of(&indices);
            prop_assert!((0..4000).all(|index| bits.contains(index) == set.contains(&index)));
            prop_assert_eq!(&bits, &bits_of(&set.iter().rev().copied().collect::<Vec<_>>()));
            let more: BTreeSet<usize> = set.iter().chain(&others).copied().collect();
            let equal = bits == bits_of(&more.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(equal, set == more);
        }
    }
}
