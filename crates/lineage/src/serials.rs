//! An index by serial: from the serial number of a task to its place in a table.

use std::collections::HashMap;

/// Places by serial. Serial numbers are consecutive, so a vector holds them without hashing. Outliers from a hostile
/// trace go to a map, so memory stays proportional to the entries stored.
#[derive(Debug, Default)]
pub struct Serials {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
    stored: usize,
}

const NOTHING: u32 = u32::MAX;
/// Gap tolerated in the vector: lost records.
const SLACK: usize = 1 << 16;

impl Serials {
    /// Sets the place of a serial.
    #[inline]
    pub fn insert(&mut self, serial: u32, place: usize) {
        let Ok(place) = u32::try_from(place) else { return };
        self.stored += 1;
        let at = serial as usize;
        if at >= self.stored.saturating_mul(4).saturating_add(SLACK) {
            self.sparse.insert(serial, place);
            return;
        }
        if at >= self.dense.len() {
            self.dense.resize(at + 1, NOTHING);
        }
        if !self.sparse.is_empty() {
            self.sparse.remove(&serial);
        }
        self.dense[at] = place;
    }

    /// The place of a serial.
    #[inline]
    pub fn get(&self, serial: u32) -> Option<usize> {
        match self.dense.get(serial as usize) {
            Some(&place) if place != NOTHING => Some(place as usize),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&serial).map(|place| *place as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn does_what_a_map_does(
            entries in proptest::collection::vec((prop_oneof![0u32..300, any::<u32>()], 0usize..1000), 0..200),
            questions in proptest::collection::vec(prop_oneof![0u32..300, any::<u32>()], 0..50),
        ) {
            let mut serials = Serials::default();
            let mut map = HashMap::new();
            for (serial, place) in &entries {
                serials.insert(*serial, *place);
                map.insert(*serial, *place);
            }
            for serial in entries.iter().map(|(serial, _)| serial).chain(&questions) {
                prop_assert_eq!(serials.get(*serial), map.get(serial).copied());
            }
            prop_assert!(serials.dense.len() <= 4 * entries.len() + SLACK + 1);
        }
    }
}
