//! Numbers of files, by path: as many as are told apart.

use std::collections::BTreeMap;
use std::rc::Rc;

use proctrace_classify::fast::FastMap;

/// Files that are told apart; opens of others are only counted.
const FILES_MAX: usize = 1 << 20;

/// Numbers of files, by path, and the reverse.
#[derive(Default)]
pub(super) struct Numbers {
    by_path: FastMap<Rc<[u8]>, u32>,
    paths: Vec<Rc<[u8]>>,
    /// The first of them in order of their paths: as many as there were when that was last asked for.
    in_order: BTreeMap<Rc<[u8]>, u32>,
}

impl Numbers {
    /// The number of the file with this path; `None` if it has none yet.
    pub(super) fn get(&self, path: &[u8]) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// The same, with a new number if it has none; `None` if it is not told apart.
    pub(super) fn of(&mut self, path: &[u8]) -> Option<u32> {
        if let Some(number) = self.get(path) {
            return Some(number);
        }
        // Fits: smaller than `FILES_MAX`.
        let number = (self.paths.len() < FILES_MAX).then_some(self.paths.len() as u32)?;
        let path: Rc<[u8]> = path.into();
        self.by_path.insert(Rc::clone(&path), number);
        self.paths.push(path);
        Some(number)
    }

    /// The path of a file with a number.
    pub(super) fn path(&self, number: u32) -> &[u8] {
        &self.paths[number as usize]
    }

    /// The numbers of the file with this path and of those below it, if it is a directory.
    pub(super) fn at_and_below(&mut self, path: &[u8]) -> Vec<u32> {
        for number in self.in_order.len()..self.paths.len() {
            // Fits: smaller than `FILES_MAX`.
            self.in_order.insert(Rc::clone(&self.paths[number]), number as u32);
        }
        let (from, to): (Rc<[u8]>, Rc<[u8]>) =
            ([path, b"/"].concat().into(), [path, b"0"].concat().into());
        let below = self.in_order.range(from..to).map(|(_, number)| *number);
        self.get(path).into_iter().chain(below).collect()
    }

    /// The paths, by number.
    pub(super) fn into_paths(self) -> Vec<Vec<u8>> {
        drop((self.by_path, self.in_order));
        self.paths.into_iter().map(|path| path.to_vec()).collect()
    }
}

/// Bytes of what renames add to a recording: a directory has many files, of which a short record renames all.
const ROOM_BYTES: usize = 64 << 20;

/// What is left of that.
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(ROOM_BYTES)
    }
}

impl Room {
    /// Takes this many bytes; false if they are not left.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// The number of a path, for which there is room if it has none yet.
    pub(super) fn number(&mut self, path: &[u8], numbers: &mut Numbers) -> Option<u32> {
        let known = numbers.get(path);
        known.or_else(|| self.take(path.len() + 64).then(|| numbers.of(path)).flatten())
    }
}
