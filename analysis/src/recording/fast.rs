//! Maps and sets for keys that are looked up ten million times.

use std::collections::{HashMap, HashSet};

/// A map whose hash function costs a third of the standard library's. Its seed is random, so a
/// hostile trace cannot choose colliding keys.
pub(crate) type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The corresponding set.
pub(crate) type FastSet<K> = HashSet<K, foldhash::fast::RandomState>;

/// A set of indices with one bit each: a cheap filter for keys that a map does not contain.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn insert(&mut self, index: usize) {
        let word = index / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (index % 64);
    }

    #[inline]
    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let mut bits = Bits::default();
        assert!(!bits.contains(0));
        for index in [3, 64, 1000] {
            bits.insert(index);
        }
        let found: Vec<usize> = (0..2000).filter(|index| bits.contains(*index)).collect();
        assert_eq!(found, [3, 64, 1000]);
    }
}
