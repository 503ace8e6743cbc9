//! Directories that were searched in vain.

use std::borrow::Cow;
use std::cmp::Reverse;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use proctrace_wire::escape::to_text;

/// Directories that are kept; when there are more, the half that was searched least is dropped.
pub(crate) const DIRECTORIES_MAX: usize = 4096;

/// A place in the table, valid for as long as nothing was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: u32,
    generation: u32,
}

impl Slot {
    /// None yet: valid for no table.
    pub(crate) const NONE: Self = Self { number: 0, generation: u32::MAX };
}

/// Failed look-ups by directory, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    /// Numbers of failed look-ups; lower bounds if directories were dropped.
    known: IndexMap<Box<[u8]>, u64, RandomState>,
    generation: u32,
    /// Look-ups in directories that were dropped.
    pub dropped: u64,
}

impl Directories {
    /// The place of the directory of this path.
    pub(crate) fn place_of(&mut self, path: &[u8]) -> Slot {
        let directory = directory(path);
        let number = self.known.get_index_of(directory).unwrap_or_else(|| {
            if self.known.len() >= DIRECTORIES_MAX {
                self.drop_half();
            }
            self.known.insert_full(directory.into(), 0).0
        });
        // Fits: there are at most DIRECTORIES_MAX.
        Slot { number: number as u32, generation: self.generation }
    }

    /// Counts a look-up at a place, or of `path` if the place is not valid any more; returns the
    /// place.
    pub(crate) fn count(&mut self, place: Slot, path: &[u8]) -> Slot {
        let place = if place.generation == self.generation { place } else { self.place_of(path) };
        if let Some((_, count)) = self.known.get_index_mut(place.number as usize) {
            *count = count.saturating_add(1);
        }
        place
    }

    fn drop_half(&mut self) {
        self.known.sort_by(|_, a, _, b| b.cmp(a));
        let dropped = self.known.split_off(DIRECTORIES_MAX / 2);
        self.dropped = dropped.values().fold(self.dropped, |sum, count| sum.saturating_add(*count));
        self.generation = self.generation.wrapping_add(1);
    }

    /// Number of times that directories were dropped: then numbers have changed.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// The path of a directory as given to the calls, not escaped for terminals; "." for names without a slash.
    pub(crate) fn path(&self, number: u32) -> Option<Cow<'_, str>> {
        self.known.get_index(number as usize).map(|(path, _)| to_text(path))
    }

    /// The paths with the number of failed look-ups, most first.
    pub fn most(&self) -> Vec<(Cow<'_, str>, u64)> {
        let mut all: Vec<(&Box<[u8]>, &u64)> = self.known.iter().collect();
        all.sort_by_key(|(path, count)| (Reverse(**count), *path));
        all.into_iter().map(|(path, count)| (to_text(path), *count)).collect()
    }
}

/// Everything before the last component: "/" for a file in the root directory, "." without a slash.
fn directory(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_are_counted_by_directory() {
        let mut directories = Directories::default();
        for path in ["/usr/lib/a", "/usr/lib/b", "c", "/d", "/usr/lib/a"] {
            let place = directories.place_of(path.as_bytes());
            directories.count(place, path.as_bytes());
        }
        let expected = [("/usr/lib", 3), (".", 1), ("/", 1)];
        assert_eq!(directories.most(), expected.map(|(path, count)| (path.into(), count)));
    }

    #[test]
    fn memory_is_bounded_and_what_is_dropped_is_counted() {
        let mut directories = Directories::default();
        let often = directories.place_of(b"/often/x");
        for _ in 0..3 {
            directories.count(often, b"/often/x");
        }
        for number in 0..20_000 {
            let path = format!("/{number}/x");
            let place = directories.place_of(path.as_bytes());
            directories.count(place, path.as_bytes());
            assert!(directories.known.len() <= DIRECTORIES_MAX);
        }
        // A place from before is found again.
        let found = directories.count(often, b"/often/x");
        assert_eq!(directories.path(found.number).unwrap(), "/often");
        assert_eq!(directories.most()[0], ("/often".into(), 4));
        let kept: u64 = directories.known.values().sum();
        assert_eq!(kept + directories.dropped, 20_004);
    }
}
