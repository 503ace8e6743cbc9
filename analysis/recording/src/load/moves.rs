//! Renames and removals of files: which name a file has now, who wrote what has it, and how large it is.
//!
//! The records of all tasks are in the order in which they were written, so that who wrote a file is known when it is
//! renamed, although their times are coarse.

use proctrace_classify::fast::FastMap;
use proctrace_wire::layout::{
    MOVED_EXCHANGED, MOVED_FROM_HERE, MOVED_FROM_IS_RELATIVE, MOVED_PATH_IS_RELATIVE,
    MOVED_REMOVED, MOVED_UNKNOWN, MovedFixed,
};

use super::file_numbers::{Numbers, Room};
use super::moved_directories::{Directories, Name};
use super::sizes::Sizes;
use crate::opened::{FileMove, OpenedFiles, Writer, makes_anew, may_make};

/// Writers of one file that are kept.
const WRITERS_MAX: usize = 16;
/// Files at and below what is renamed, all together.
const COMPARED_MAX: usize = 1 << 26;

#[derive(Default)]
pub(super) struct Moves {
    numbers: Numbers,
    directories: Directories,
    /// Who wrote what has this name now, by number of the file.
    writers: FastMap<u32, Vec<Writer>>,
    /// Names that nothing has since a rename, with its position in `kept`.
    left: FastMap<u32, usize>,
    /// When what a process had written under a name got another one, unless it wrote it again: by file and process.
    gone: FastMap<(u32, u32), u64>,
    kept: Vec<FileMove>,
    /// New names of what nobody had opened.
    unseen: Vec<Vec<u8>>,
    unknown: u64,
    compared: usize,
    sizes: Sizes,
    /// The directory of the job.
    job: Vec<u8>,
    room: Room,
}

/// A file that was renamed, or is below a directory that was.
struct Part {
    file: u32,
    /// Where the rest of its path begins, which it keeps.
    at: usize,
    /// From the new name to the old one.
    is_back: bool,
}

impl Moves {
    /// Of a job that was launched in this directory.
    pub(super) fn of(directory: &str) -> Self {
        let job = directory.trim_end_matches('/').as_bytes().to_vec();
        Self { job, ..Self::default() }
    }

    /// The name of a file whose path a record has; `None` if it is not told apart.
    pub(super) fn name(&mut self, path: &[u8]) -> Option<Name> {
        Some(self.directories.name(self.numbers.of(path)?))
    }

    /// The number of what is opened by this name again, of which a directory may have been renamed since.
    pub(super) fn now(&mut self, name: Name) -> u32 {
        self.directories.now(name, &mut self.numbers, &mut self.room)
    }

    /// A process has opened a file with these flags of open(2).
    pub(super) fn opened(&mut self, file: u32, by: Writer, (flags, is_write): (u32, bool)) {
        if makes_anew(flags) {
            self.writers.remove(&file);
        }
        if !self.left.is_empty()
            && let Some(at) = self.left.remove(&file)
            && !may_make(flags)
        {
            // It was there all the time: of two names of one file, rename(2) leaves both.
            let writers = self.kept[at].writers.clone();
            for writer in &writers {
                self.gone.remove(&(file, writer.process));
            }
            self.writers.insert(file, writers);
        }
        if is_write {
            self.gone.remove(&(file, by.process));
            add(self.writers.entry(file).or_default(), by);
        }
    }

    /// A process has closed a descriptor through which it could write a file of this size; `None` if its path is not known.
    pub(super) fn written(&mut self, path: Option<&[u8]>, bytes: u64, by: Writer) {
        match path.and_then(|path| self.numbers.of(path)) {
            Some(file) => self.sizes.written(file, bytes, by),
            None => self.sizes.unknown += 1,
        }
    }

    /// A process has removed a file.
    fn removed(&mut self, path: Option<Vec<u8>>, time_ns: u64) {
        let is_of_job = path.as_ref().is_none_or(|path| self.is_of_job(path));
        let Some(file) = path.and_then(|path| self.numbers.get(&path)) else {
            // Nobody had opened it, or it is known by another name.
            self.sizes.unknown += u64::from(self.sizes.is_any() && is_of_job);
            return;
        };
        self.sizes.gone(file, time_ns);
        let writers = self.writers.remove(&file).unwrap_or_default();
        self.gone.extend(writers.iter().map(|writer| ((file, writer.process), time_ns)));
    }

    /// A process has renamed a file or directory, or removed a file.
    pub(super) fn moved(&mut self, moved: &MovedFixed, (from, to): (&[u8], &[u8]), process: u32) {
        let by = Writer { process, time_ns: moved.head.time_ns };
        let is = |bit| moved.bits & bit != 0;
        if is(MOVED_REMOVED) {
            let path = plain(from, is(MOVED_FROM_IS_RELATIVE)).filter(|_| !is(MOVED_UNKNOWN));
            return self.removed(path, by.time_ns);
        }
        let paths =
            plain(from, is(MOVED_FROM_IS_RELATIVE)).zip(plain(to, is(MOVED_PATH_IS_RELATIVE)));
        let is_known = match paths.filter(|_| !is(MOVED_UNKNOWN)) {
            // Two names of one file: rename(2) does nothing.
            Some((from, to)) if from == to => true,
            Some((from, to)) => self.renamed(&from, &to, by, is(MOVED_EXCHANGED)),
            None => {
                self.sizes.unknown += u64::from(self.sizes.is_any());
                false
            }
        };
        self.unknown += u64::from(!is_known);
    }

    /// True of a path below the directory of the job, as it was given or as it is known.
    fn is_of_job(&self, path: &[u8]) -> bool {
        path.strip_prefix(&*self.job).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Returns whether all of it is kept.
    fn renamed(&mut self, from: &[u8], to: &[u8], by: Writer, is_exchange: bool) -> bool {
        let old = self.numbers.at_and_below(from);
        let new = self.numbers.at_and_below(to);
        self.compared = self.compared.saturating_add(old.len() + new.len());
        if self.compared > COMPARED_MAX {
            // Then nothing is said of who wrote any file so far.
            self.writers.clear();
            self.left.clear();
            self.sizes.unknown += 1;
            return false;
        }
        self.move_sizes((from, &old), (to, &new), by.time_ns, is_exchange);
        if old.is_empty() && self.sizes.is_any() && (self.is_of_job(from) || self.is_of_job(to)) {
            // It may have been written by another name.
            self.sizes.unknown += 1;
        }
        let mut all = true;
        // What somebody wrote under a name, and nothing below it, is a file.
        let is_written = |file: &u32| self.writers.contains_key(file);
        let is_file = |path: &[u8], files: &[u32]| {
            let file = self.numbers.get(path).filter(is_written);
            file.is_some_and(|file| files.iter().all(|below| *below == file || !is_written(below)))
        };
        if !is_file(from, &old) || is_exchange && !is_file(to, &new) {
            all &= self.directories.moved(from, to, is_exchange, &mut self.room);
        }
        if old.is_empty() && (!is_exchange || new.is_empty()) {
            // It was there before, or is known by another name: that depends on who opens it later.
            match self.room.take(to.len() + size_of::<Vec<u8>>()) {
                true => self.unseen.push(to.to_vec()),
                false => all = false,
            }
        }
        let part = |file: &u32, is_back: bool| {
            let at = if is_back { to.len() } else { from.len() };
            is_written(file).then_some(Part { file: *file, at, is_back })
        };
        let mut files: Vec<Part> = old.iter().filter_map(|file| part(file, false)).collect();
        if is_exchange {
            files.extend(new.iter().filter_map(|file| part(file, true)));
        }
        files.sort_unstable_by_key(|part| part.file);
        let moves: Vec<_> = files
            .into_iter()
            .map(|part| (self.writers.remove(&part.file).unwrap_or_default(), part))
            .collect();
        // What had the new name has none any more.
        for replaced in new.iter().chain(old.iter().filter(|_| is_exchange)) {
            self.writers.remove(replaced);
            self.left.remove(replaced);
        }
        let (first, time_ns) = (self.kept.len(), by.time_ns);
        for (writers, Part { file, at, is_back }) in moves {
            let directory = if is_back { from } else { to };
            let path = [directory, &self.numbers.path(file)[at..]].concat();
            all &= self.keep(file, &path, writers, by);
        }
        let added = first..self.kept.len();
        for at in added.clone() {
            let FileMove { from, writers, .. } = &self.kept[at];
            self.left.insert(*from, at);
            self.gone.extend(writers.iter().map(|it| ((*from, it.process), time_ns)));
        }
        for at in added {
            let FileMove { to, writers, .. } = &self.kept[at];
            self.left.remove(to);
            let mut writers = writers.clone();
            add(&mut writers, by);
            for writer in &writers {
                self.gone.remove(&(*to, writer.process));
            }
            self.writers.insert(*to, writers);
        }
        all
    }

    /// Files at and below two paths, by number, get each other's names, or the first ones those of the others.
    fn move_sizes(
        &mut self,
        (from, old): (&[u8], &[u32]),
        (to, new): (&[u8], &[u32]),
        time_ns: u64,
        is_exchange: bool,
    ) {
        if !self.sizes.is_any() {
            return;
        }
        let back = new.iter().filter(|_| is_exchange).map(|file| (*file, to, from));
        let all = old.iter().map(|file| (*file, from, to)).chain(back);
        let sized: Vec<_> = all.filter(|(file, ..)| self.sizes.is_known(*file)).collect();
        let mut moves = Vec::with_capacity(sized.len());
        for (file, before, since) in sized {
            let path = [since, &self.numbers.path(file)[before.len()..]].concat();
            match self.sizes.room.number(&path, &mut self.numbers) {
                Some(number) => moves.push((file, number)),
                None => self.sizes.unknown += 1,
            }
        }
        if !is_exchange {
            // What had the new name has none any more.
            new.iter().for_each(|file| self.sizes.gone(*file, time_ns));
        }
        self.sizes.moved(moves, time_ns);
    }

    /// What had one name, written by these, has this path now. Returns whether there is room for that.
    fn keep(&mut self, from: u32, path: &[u8], writers: Vec<Writer>, by: Writer) -> bool {
        let Some(to) = self.room.number(path, &mut self.numbers) else { return false };
        // Also in three maps.
        let each_bytes = 4 * size_of::<Writer>() * (writers.len() + 1);
        if !self.room.take(size_of::<FileMove>() + each_bytes) {
            return false;
        }
        let Writer { process, time_ns } = by;
        self.kept.push(FileMove { from, to, process, time_ns, writers });
        true
    }

    pub(super) fn end(mut self, found: &mut OpenedFiles) {
        for path in std::mem::take(&mut self.unseen) {
            self.unknown += u64::from(self.numbers.at_and_below(&path).is_empty());
        }
        found.paths = self.numbers.into_paths();
        found.moves = self.kept;
        found.left = self.left.into_keys().collect();
        found.left.sort_unstable();
        found.gone = self.gone.into_iter().map(|((file, by), at_ns)| (file, by, at_ns)).collect();
        found.gone.sort_unstable();
        found.moves_unknown = self.unknown;
        self.sizes.end(found);
    }
}

/// A path as given to a call without `.` and `..`; `None` if it leaves a directory that may be a symbolic link. The
/// directory to which a path is relative is none.
fn plain(path: &[u8], is_relative: bool) -> Option<Vec<u8>> {
    let mut parts = path.windows(MOVED_FROM_HERE.len());
    let at = if is_relative { parts.position(|part| part == MOVED_FROM_HERE)? } else { 0 };
    let (directory, given) = path.split_at(at);
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
        let of = |path: &str, is_relative| {
            plain(path.as_bytes(), is_relative).map(|path| String::from_utf8(path).unwrap())
        };
        for (path, expected) in [
            ("/w/./a", "/w/a"),
            ("/w/./b//././a/./x/", "/w/b/a/x"),
            ("/w/d/./../a", "/w/a"),
            ("/w/./../../../a", "/a"),
            ("//./a", "/a"),
        ] {
            assert_eq!(of(path, true).as_deref(), Some(expected), "{path}");
        }
        for (path, expected) in [("/w/a", "/w/a"), ("/../w/./a//b/", "/w/a/b")] {
            assert_eq!(of(path, false).as_deref(), Some(expected), "{path}");
        }
        for path in ["/w/./link/../a", "/w/./..", "", "/./", "/w/a", "w"] {
            assert_eq!(of(path, true), None, "{path}");
        }
        // What is in front of the marker is a caller's own, and may be a link.
        for path in ["/x/link/./../f", "/link/../a", "", "/./"] {
            assert_eq!(of(path, false), None, "{path}");
        }
    }
}
