//! Values of some of many indices: of a few, or of nearly all.

/// Values by index. A bit for each index from the first to the last says which have one, so a value is found by counting
/// bits: one and a half bits for each index, and no more than itself for each value.
#[derive(Debug, Clone)]
pub struct Sparse<T> {
    /// Number of the first word.
    first: usize,
    words: Vec<Word>,
    values: Vec<T>,
}

/// 64 indices.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// The low and the high half of the bits: in halves, a word takes 12 bytes.
    bits: [u32; 2],
    /// Number of values before these.
    before: u32,
}

impl Word {
    fn bits(self) -> u64 {
        u64::from(self.bits[0]) | u64::from(self.bits[1]) << 32
    }
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self { first: 0, words: Vec::new(), values: Vec::new() }
    }
}

impl<T> Sparse<T> {
    /// Adds a value. Its index must be higher than all before.
    pub fn push(&mut self, index: usize, value: T) {
        let word = index / 64;
        if self.words.is_empty() {
            self.first = word;
        }
        let at = word.saturating_sub(self.first);
        let before = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        if at >= self.words.len() {
            self.words.resize(at + 1, Word { bits: [0; 2], before });
        }
        let bit = index % 64;
        debug_assert!(self.words[at].bits() >> bit == 0, "{index} is not higher than all before");
        self.words[at].bits[bit / 32] |= 1 << (bit % 32);
        self.values.push(value);
    }

    /// The value of an index, if it has one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.values.get(self.position(index)?)
    }

    /// The number of values before that of an index, if it has one.
    #[inline]
    pub fn position(&self, index: usize) -> Option<usize> {
        let word = self.words.get((index / 64).wrapping_sub(self.first))?;
        let (bits, bit) = (word.bits(), 1_u64 << (index % 64));
        let before = (bits & (bit - 1)).count_ones() + word.before;
        (bits & bit != 0).then_some(before as usize)
    }

    /// All values with their indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let words = self.words.iter().zip(self.first..);
        let indices = words.flat_map(|(word, number)| {
            let bits = word.bits();
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| number * 64 + bit)
        });
        indices.zip(&self.values)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if no index has a value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_index_has_the_value_it_was_given(
            values in proptest::collection::btree_map(0..2000_usize, any::<u8>(), 0..200),
            dense in 0..300_usize,
        ) {
            let dense = (500..500 + dense).map(|index| (index, index as u8));
            let values: BTreeMap<usize, u8> = values.into_iter().chain(dense).collect();
            let mut sparse = Sparse::default();
            values.iter().for_each(|(index, value)| sparse.push(*index, *value));
            prop_assert_eq!((sparse.len(), sparse.is_empty()), (values.len(), values.is_empty()));
            for index in 0..2100 {
                prop_assert_eq!(sparse.get(index), values.get(&index));
                let before = values.range(..index).count();
                let position = values.contains_key(&index).then_some(before);
                prop_assert_eq!(sparse.position(index), position);
            }
            let all: Vec<_> = sparse.iter().map(|(index, value)| (index, *value)).collect();
            prop_assert_eq!(all, values.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn few_high_indices_take_little_memory() {
        let mut sparse = Sparse::default();
        [5_000_000, 5_000_100].into_iter().for_each(|index| sparse.push(index, ()));
        assert!(sparse.words.len() < 4 && size_of::<Word>() == 12, "{}", sparse.words.len());
    }
}
