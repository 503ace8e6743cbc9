//! Failed look-ups: counted by process, directory and errno, by path, and per program start.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::FastIndexSet;
use proctrace_classify::names::directory;
use proctrace_libsearch::{Sought, is_library, is_searched_by_default};
use proctrace_lineage::Serials;
use proctrace_replay::timed_lookups;
use proctrace_trace::Reader;
use proctrace_wire::layout::{MISS_PATH_FAULT, MissFixed};
use proctrace_wire::{Call, Family, mark_of_path};

use super::Loader;
use crate::bin_series::BinSeries;
use crate::bins::Bins;
use crate::counts::Counts;
use crate::last::{LastMiss, LastMisses, is_telling, is_telling_library};
use crate::load::starts::{Missed, Start, StartFinder};
use crate::marks::{MarkedBy, Marks};
use crate::misses::{
    LookupTimes, MissCounter, MissKind, MissedPaths, Misses, OTHERS, PathCounter, found_no_link,
};

/// `dirfd` of look-ups from the working directory: openat(2).
const AT_FDCWD: i32 = -100;
/// Position of opens in `Family::ALL`.
const OPEN: u8 = 0;

/// The keys under which a look-up is counted. They are resolved once per path, errno and family.
#[derive(Debug, Clone, Copy)]
struct LookupKeys {
    /// Kind of the look-up: failed, or something that is no failure.
    is: Is,
    /// Position in `Family::ALL`; beyond it for calls of no family.
    family: u8,
    /// Number of its path.
    path: u32,
    /// Number of its kind: directory, errno and family.
    kind: u32,
    sought: Sought,
    /// Number of its directory.
    directory: u32,
    /// True if it may be why a program gives up.
    tells: bool,
    /// Of a library: true if linkers search its directory though no list names it.
    is_by_default: bool,
}

/// Kind of a look-up of which the kernel reported a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Failed,
    /// The path exists: the look-up only showed that it is not a symbolic link.
    NoLink,
    Mark,
}

impl LookupKeys {
    fn of_no_failure(is: Is, family: u8, sought: Sought) -> Self {
        let (path, kind, directory) = (u32::MAX, u32::MAX, u32::MAX);
        Self { is, family, path, kind, sought, directory, tells: false, is_by_default: false }
    }
}

/// Assigns look-ups their keys.
#[derive(Default)]
struct Places {
    directories: FastIndexSet<Vec<u8>>,
    misses: MissCounter,
    paths: PathCounter,
    /// The keys of each path, by its number; `None` if it was not read.
    known: Vec<Option<LookupKeys>>,
}

impl Places {
    fn of(&mut self, miss: &MissFixed, path: &[u8]) -> LookupKeys {
        let known = Family::of(Call::from_number(miss.call));
        let family = Family::ALL.iter().position(|family| Some(*family) == known);
        let family = family.and_then(|family| u8::try_from(family).ok()).unwrap_or(u8::MAX);
        let sought = Sought::of(known, path);
        if found_no_link(miss) {
            return LookupKeys::of_no_failure(Is::NoLink, family, sought);
        }
        let unread = miss.bits & MISS_PATH_FAULT != 0;
        if !unread && mark_of_path(path).is_some() {
            return LookupKeys::of_no_failure(Is::Mark, family, sought);
        }
        let path_number =
            self.paths.number_of(if unread { b"?" } else { path }, miss.error, family);
        // A path is recorded in full each time that the recorder gives it a number.
        if let Some(Some(known)) = self.known.get(path_number as usize).filter(|_| !unread) {
            return *known;
        }
        let name: &[u8] = if unread { b"?" } else { directory(path) };
        let known = self.directories.get_index_of(name);
        let number = known.unwrap_or_else(|| self.directories.insert_full(name.to_vec()).0);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let kind = MissKind { directory: number, errno: miss.error, family };
        let keys = LookupKeys {
            is: Is::Failed,
            family,
            path: path_number,
            kind: self.misses.number_of(kind),
            sought,
            directory: number,
            is_by_default: sought == Sought::Library && is_searched_by_default(name),
            tells: !unread
                && match is_library(path) {
                    true => sought == Sought::Library && is_telling_library(path),
                    false => is_telling(path),
                },
        };
        // Paths beyond a number of them have no number of their own.
        if path_number != OTHERS {
            let at = path_number as usize;
            self.known.resize(self.known.len().max(at + 1), None);
            self.known[at] = (!unread).then_some(keys);
        }
        keys
    }
}

/// Tasks that looked up, and the programs that they ran at the time: everything from the lifecycle that counting
/// look-ups needs.
pub(super) struct Who {
    process_of_task: Serials,
    finder: StartFinder,
    /// Without values: only maps times to bins.
    bins: Bins,
    last_misses: LastMisses,
}

/// The results of counting the look-ups.
pub(super) struct Found {
    counts: Counts,
    marks: Marks,
    bins: Bins,
    starts: Vec<Start>,
    directories: Vec<Vec<u8>>,
    misses: Misses,
    missed_paths: MissedPaths,
    last_misses: LastMisses,
    times: LookupTimes,
    undecodable: u64,
}

impl Who {
    /// Counts all look-ups of a trace.
    pub(super) fn read_lookups(self, reader: &mut Reader<BufReader<File>>) -> Found {
        reader.rewind();
        let Self { process_of_task, mut finder, mut bins, mut last_misses } = self;
        let places = RefCell::new(Places::default());
        let (mut counts, mut marks) = (Counts::default(), Marks::default());
        let mut events = bins.events(BinSeries::LookupsFailed);
        // A task usually makes many look-ups in a row.
        let mut last = (0, None);
        let mut times = LookupTimes::default();
        let decoded = timed_lookups(
            reader,
            |miss, path| places.borrow_mut().of(miss, path),
            |lookup| {
                let (head, place) = (lookup.miss.head, lookup.made);
                counts.lookups_failed += 1;
                match place.is {
                    Is::Failed => {}
                    Is::NoLink => {
                        counts.not_links += 1;
                        return;
                    }
                    Is::Mark => {
                        counts.marks += 1;
                        let process = process_of_task.get(head.task);
                        let process = process.and_then(|process| u32::try_from(process).ok());
                        if let (Some(process), Some(text)) = (process, mark_of_path(lookup.path)) {
                            marks.add(head.time_ns, process, MarkedBy::Lookup, text);
                        } else {
                            counts.orphans += 1;
                        }
                        return;
                    }
                }
                events.add(head.time_ns);
                if let Some(count) = counts.by_family.get_mut(usize::from(place.family)) {
                    *count += 1;
                }
                let mut places = places.borrow_mut();
                places.paths.add(place.path);
                if last.0 != head.task || last.1.is_none() {
                    last = (head.task, process_of_task.get(head.task));
                }
                let Some(process) = last.1 else {
                    counts.orphans += 1;
                    return;
                };
                let LookupKeys { sought, directory, .. } = place;
                let missed = Missed {
                    time_ns: head.time_ns,
                    sought,
                    path: lookup.path,
                    directory,
                    is_by_default: place.is_by_default,
                };
                finder.add(process, missed, &places.directories);
                // After a library, linkers ask whether the directory exists.
                let is_linkers = match sought {
                    Sought::Library => {
                        last_misses.missed_library(process, directory);
                        false
                    }
                    _ => last_misses.after_library(process).is_some_and(|directory| {
                        let directory = places.directories.get_index(directory as usize);
                        sought == Sought::Existence
                            && directory.is_some_and(|directory| *directory == *lookup.path)
                    }),
                };
                if place.tells && !is_linkers {
                    let is_from_cwd = lookup.miss.dirfd == AT_FDCWD;
                    let (time_ns, path) = (head.time_ns, place.path);
                    last_misses.note(process, LastMiss { time_ns, path, is_from_cwd });
                }
                places.misses.add(u32::try_from(process).unwrap_or(u32::MAX), place.kind);
            },
            |duration_ns, place| {
                if place.is != Is::Failed {
                    return;
                }
                if place.sought == Sought::Library {
                    times.libraries.time(duration_ns);
                    return;
                }
                times.by_kind.entry(place.kind).or_default().time(duration_ns);
                if place.family == OPEN {
                    times.opens.time(duration_ns);
                }
            },
        );
        let Places { directories, misses, paths, .. } = places.into_inner();
        Found {
            counts,
            marks,
            bins,
            starts: finder.into_inner(),
            directories: directories.into_iter().collect(),
            misses: misses.finish(),
            missed_paths: paths.finish(),
            last_misses,
            times,
            undecodable: decoded.undecodable,
        }
    }
}

impl Loader<'_> {
    /// Everything that must be known before look-ups can be counted, detached from the loader so
    /// that they can be counted concurrently with other work.
    pub(super) fn who(&self) -> Who {
        let mut process_of_task = Serials::default();
        for task in &self.made.tasks {
            process_of_task.insert(task.serial, task.process());
        }
        let status = self.made.processes.iter().map(|process| process.status());
        let failed = status.map(|status| status.is_some_and(|status| status != 0));
        Who {
            process_of_task,
            finder: StartFinder::new(&self.made.runs, self.made.processes.len()),
            last_misses: LastMisses::of_failed(failed),
            bins: Bins::new(self.made.first_ns, self.made.last_ns, self.interval_ns, 0),
        }
    }

    pub(super) fn take_lookups(&mut self, found: Found) {
        let Found {
            counts,
            marks,
            mut bins,
            starts,
            directories,
            misses,
            missed_paths,
            last_misses,
            times,
            undecodable,
        } = found;
        self.made.counts.lookups_failed = counts.lookups_failed;
        self.made.counts.not_links = counts.not_links;
        self.made.counts.marks = counts.marks;
        self.made.marks.append(marks);
        self.made.counts.by_family = counts.by_family;
        self.made.counts.orphans += counts.orphans;
        self.made.bins.take_values(BinSeries::LookupsFailed, &mut bins);
        self.made.undecodable += undecodable;
        (self.made.starts, self.made.directories) = (starts, directories);
        (self.made.misses, self.made.missed_paths) = (misses, missed_paths);
        self.made.last_misses = last_misses;
        self.made.lookup_times = times;
    }
}
