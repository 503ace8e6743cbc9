//! Sizes of files that are written, as they are renamed and removed.

use proctrace_classify::fast::FastMap;

use super::file_numbers::Room;
use crate::opened::{FileSize, OpenedFiles, Writer};

#[derive(Default)]
pub(super) struct Sizes {
    /// Bytes of each file that is not empty, and the process that wrote it last.
    now: FastMap<u32, (u64, u32)>,
    changes: Vec<FileSize>,
    pub(super) unknown: u64,
    /// Not that of renames, of which figures of other kinds depend.
    pub(super) room: Room,
}

impl Sizes {
    /// A file has this size when a process closes it.
    pub(super) fn written(&mut self, file: u32, bytes: u64, by: Writer) {
        if bytes == 0 {
            return self.gone(file, by.time_ns);
        }
        let size = (bytes, by.process);
        if self.now.insert(file, size) != Some(size) {
            self.change((file, by.process), bytes, by.time_ns);
        }
    }

    /// Nothing is left under a name.
    pub(super) fn gone(&mut self, file: u32, time_ns: u64) {
        if let Some((_, process)) = self.now.remove(&file) {
            self.change((file, process), 0, time_ns);
        }
    }

    /// Files have other names: from, to. All at once, as two may change places.
    pub(super) fn moved(&mut self, moves: Vec<(u32, u32)>, time_ns: u64) {
        let taken: Vec<_> =
            moves.into_iter().map(|(from, to)| (from, to, self.now.remove(&from))).collect();
        for (from, _, size) in &taken {
            if let Some((_, process)) = size {
                self.change((*from, *process), 0, time_ns);
            }
        }
        for (_, to, size) in taken {
            if let Some((bytes, process)) = size {
                self.now.insert(to, (bytes, process));
                self.change((to, process), bytes, time_ns);
            }
        }
    }

    /// True if a file has a size.
    pub(super) fn is_known(&self, file: u32) -> bool {
        self.now.contains_key(&file)
    }

    /// True if any file has a size.
    pub(super) fn is_any(&self) -> bool {
        !self.now.is_empty()
    }

    fn change(&mut self, (file, process): (u32, u32), bytes: u64, time_ns: u64) {
        // Also in the map.
        if self.room.take(2 * size_of::<FileSize>()) {
            self.changes.push(FileSize { file, process, time_ns, bytes });
        } else {
            self.unknown += 1;
        }
    }

    pub(super) fn end(self, found: &mut OpenedFiles) {
        found.sizes = self.changes;
        found.sizes_unknown = self.unknown;
    }
}
