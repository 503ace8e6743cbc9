//! Renames of files: who wrote what has a name now.
//!
//! The records of all tasks are in the order in which they were written, so that who wrote a file is known when it is
//! renamed, although their times are coarse.

use proctrace_classify::fast::{FastMap, FastSet};
use proctrace_wire::layout::{
    MOVED_AS_GIVEN, MOVED_DIRECTORY, MOVED_EXCHANGED, MOVED_FROM_HERE, MOVED_UNKNOWN, MovedFixed,
};

use super::file_numbers::{Numbers, number_of};
use crate::opened::{FileMove, OpenedFiles, Writer};

/// Renames that are kept.
const MOVES_MAX: usize = 1 << 18;
/// Writers of one file that are kept.
const WRITERS_MAX: usize = 16;
/// Names that are compared with those of renamed directories, all together.
const COMPARED_MAX: usize = 1 << 26;

#[derive(Default)]
pub(super) struct Moves {
    /// Who wrote what has this name now, by number of the file.
    writers: FastMap<u32, Vec<Writer>>,
    /// Names that nothing has since a rename.
    left: FastSet<u32>,
    kept: Vec<FileMove>,
    unknown: u64,
    compared: usize,
}

impl Moves {
    /// A process has opened a file.
    pub(super) fn opened(&mut self, file: u32, by: Writer, is_write: bool) {
        if !self.left.is_empty() {
            self.left.remove(&file);
        }
        if is_write {
            add(self.writers.entry(file).or_default(), by);
        }
    }

    /// A process has renamed a file or directory.
    pub(super) fn moved(
        &mut self,
        moved: &MovedFixed,
        (from, to): (&[u8], &[u8]),
        process: u32,
        numbers: &mut Numbers,
    ) {
        let by = Writer { process, time_ns: moved.head.time_ns };
        let is = |bit| moved.bits & bit != 0;
        // Two names of one file: rename(2) does nothing.
        if from == to && !is(MOVED_UNKNOWN) {
            return;
        }
        let given;
        let (mut from, mut to, mut is_directory) = (from, to, is(MOVED_DIRECTORY));
        if is(MOVED_AS_GIVEN) {
            given = plain(from).zip(plain(to));
            let Some((plain_from, plain_to)) = &given else {
                self.unknown += 1;
                return;
            };
            (from, to) = (plain_from, plain_to);
            // Of what nobody wrote as a file, only what is below it is known.
            let file = numbers.get(from);
            is_directory = !file.is_some_and(|file| self.writers.contains_key(file));
        }
        let is_kept = match (is(MOVED_UNKNOWN), is_directory, is(MOVED_EXCHANGED)) {
            (true, ..) | (_, true, true) => false,
            (_, true, _) => self.moved_directory(from, to, by, numbers),
            (_, _, is_exchange) => match (number_of(numbers, from), number_of(numbers, to)) {
                (Some(from), Some(to)) => self.moved_file(from, to, by, is_exchange),
                _ => false,
            },
        };
        self.unknown += u64::from(!is_kept);
    }

    /// Returns whether it is kept.
    fn moved_file(&mut self, from: u32, to: u32, by: Writer, is_exchange: bool) -> bool {
        if self.kept.len() + 1 >= MOVES_MAX {
            return false;
        }
        let of_from = self.writers.remove(&from).unwrap_or_default();
        let of_to = self.writers.remove(&to).unwrap_or_default();
        self.has(from, to, of_from, by);
        if is_exchange {
            self.has(to, from, of_to, by);
        } else {
            self.left.insert(from);
        }
        true
    }

    /// What had one name, written by these, has another one now.
    fn has(&mut self, from: u32, to: u32, mut writers: Vec<Writer>, by: Writer) {
        let Writer { process, time_ns } = by;
        self.kept.push(FileMove { from, to, process, time_ns, writers: writers.clone() });
        self.left.remove(&to);
        add(&mut writers, by);
        self.writers.insert(to, writers);
    }

    /// The files below a directory that somebody wrote have other names; nothing is said of others. Returns whether it
    /// is known which.
    fn moved_directory(
        &mut self,
        from: &[u8],
        to: &[u8],
        by: Writer,
        numbers: &mut Numbers,
    ) -> bool {
        self.compared = self.compared.saturating_add(numbers.len());
        if self.compared > COMPARED_MAX {
            return false;
        }
        let is_written = |file: &u32| self.writers.contains_key(file);
        let mut below: Vec<(u32, Vec<u8>)> = numbers
            .iter()
            .filter(|(_, file)| is_written(file))
            .filter_map(|(path, file)| {
                let rest = path.strip_prefix(from).filter(|rest| rest.starts_with(b"/"))?;
                Some((*file, [to, rest].concat()))
            })
            .collect();
        below.sort_unstable();
        let mut all = true;
        for (file, path) in below {
            all &= match number_of(numbers, &path) {
                Some(now) => self.moved_file(file, now, by, false),
                None => false,
            };
        }
        all
    }

    pub(super) fn end(self, found: &mut OpenedFiles) {
        found.moves = self.kept;
        found.left = self.left.into_iter().collect();
        found.left.sort_unstable();
        found.moves_unknown = self.unknown;
    }
}

/// A path as given to a call without `.` and `..`; `None` if it leaves a directory that may be a symbolic link. The
/// directory to which a path is relative is none.
fn plain(path: &[u8]) -> Option<Vec<u8>> {
    let at = path.windows(MOVED_FROM_HERE.len()).position(|part| part == MOVED_FROM_HERE);
    let (directory, given) = path.split_at(at.unwrap_or(0));
    let parts = |path| <[u8]>::split(path, |byte| *byte == b'/').filter(|part| !part.is_empty());
    let mut kept: Vec<&[u8]> = parts(directory).collect();
    let mut has_left = false;
    for part in parts(given) {
        match part {
            b"." => {}
            b".." if has_left => return None,
            b".." => {
                kept.pop();
            }
            part => {
                has_left = true;
                kept.push(part);
            }
        }
    }
    let whole: Vec<u8> = kept.iter().flat_map(|part| [b"/", *part]).flatten().copied().collect();
    (!whole.is_empty()).then_some(whole)
}

fn add(writers: &mut Vec<Writer>, by: Writer) {
    let is_known = writers.iter().any(|known| known.process == by.process);
    if !is_known && writers.len() < WRITERS_MAX {
        writers.push(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_is_resolved() {
        let of = |path: &str| plain(path.as_bytes()).map(|path| String::from_utf8(path).unwrap());
        for (path, expected) in [
            ("/w/./a", "/w/a"),
            ("/w//b/././a/./x/", "/w/b/a/x"),
            ("/w/d/./../a", "/w/a"),
            ("/w/./../../../a", "/a"),
            ("/w/a", "/w/a"),
        ] {
            assert_eq!(of(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["/w/./link/../a", "/link/../a", "/w/./..", "", "/./"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
