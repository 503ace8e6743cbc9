//! Directories that were searched in vain.

use std::borrow::Cow;

use proctrace_wire::escape::to_text;

use super::FastMap;

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

/// A directory with the failed look-ups in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    path: Box<[u8]>,
    /// Number of failed look-ups; a lower bound if directories were dropped.
    pub count: u64,
}

impl Directory {
    /// Its path as given to the calls, not escaped for terminals; "." for names without a slash.
    pub fn path(&self) -> Cow<'_, str> {
        to_text(&self.path)
    }
}

/// Failed look-ups by directory, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    known: Vec<Directory>,
    numbers: FastMap<Box<[u8]>, u32>,
    generation: u32,
    /// Look-ups in directories that were dropped.
    pub dropped: u64,
}

impl Directories {
    /// The place of the directory of this path.
    pub(crate) fn place_of(&mut self, path: &[u8]) -> Slot {
        let directory = directory(path);
        if let Some(number) = self.numbers.get(directory) {
            return Slot { number: *number, generation: self.generation };
        }
        if self.known.len() >= DIRECTORIES_MAX {
            self.drop_half();
        }
        // Fits: there are fewer than DIRECTORIES_MAX.
        let number = self.known.len() as u32;
        self.known.push(Directory { path: directory.into(), count: 0 });
        self.numbers.insert(directory.into(), number);
        Slot { number, generation: self.generation }
    }

    /// Counts a look-up at a place, or of `path` if the place is not valid any more; returns the
    /// place.
    pub(crate) fn count(&mut self, place: Slot, path: &[u8]) -> Slot {
        let place = if place.generation == self.generation { place } else { self.place_of(path) };
        if let Some(known) = self.known.get_mut(place.number as usize) {
            known.count = known.count.saturating_add(1);
        }
        place
    }

    fn drop_half(&mut self) {
        self.known.sort_by_key(|known| std::cmp::Reverse(known.count));
        let dropped = self.known.split_off(DIRECTORIES_MAX / 2);
        let sum = dropped.iter().fold(0, |sum: u64, known| sum.saturating_add(known.count));
        self.dropped = self.dropped.saturating_add(sum);
        self.numbers = (0..).zip(&self.known).map(|(n, known)| (known.path.clone(), n)).collect();
        self.generation = self.generation.wrapping_add(1);
    }

    /// Number of times that directories were dropped: then numbers have changed.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Directory> {
        self.known.get(number as usize)
    }

    /// Most look-ups first.
    pub fn most(&self) -> Vec<&Directory> {
        let mut all: Vec<&Directory> = self.known.iter().collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
        all
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
        let most: Vec<_> =
            directories.most().iter().map(|d| (d.path().into_owned(), d.count)).collect();
        let expected = [("/usr/lib", 3), (".", 1), ("/", 1)];
        assert_eq!(most, expected.map(|(path, count)| (path.to_owned(), count)));
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
        assert_eq!(directories.get(found.number).map(|known| known.count), Some(4));
        let kept: u64 = directories.known.iter().map(|known| known.count).sum();
        assert_eq!(kept + directories.dropped, 20_004);
    }
}
