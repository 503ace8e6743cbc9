//! Shorter lists of directories: LD_LIBRARY_PATH and PATH without the entries in which nothing was found.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proctrace_libsearch::Cause;
use proctrace_replay::{Environment, Exec, Miss};
use proctrace_wire::layout::{EXEC_ENV_CUT, EXEC_PATH_CUT};

use crate::uses::{Listed, Uses, found};

/// Maximum number of different values of a variable, and of programs for each, that are kept.
const KEPT_MAX: usize = 1000;

/// A value of a variable that programs had, and a better one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListChange {
    /// As recorded.
    pub was: Vec<u8>,
    /// Without what found nothing; `None` if nothing is left.
    pub becomes: Option<Vec<u8>>,
    /// Starts of programs that had it.
    pub starts: u64,
    /// These programs.
    pub programs: Vec<Vec<u8>>,
}

/// Libraries found by each entry of LD_LIBRARY_PATH, over all starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    by_entry: BTreeMap<Vec<u8>, u64>,
    /// Lists of which searches are known.
    known: HashSet<Vec<u8>>,
}

impl Hits {
    pub(crate) fn of(uses: &Uses<'_>) -> Self {
        let mut hits = Self::default();
        for Listed { list, search, times, .. } in uses.with_list() {
            hits.known.insert(list.to_vec());
            let entries: Vec<_> = list.split(|byte| matches!(byte, b':' | b';')).collect();
            for found in found(search) {
                if let Cause::LibraryPath(at) = found.cause
                    && let Some(entry) = entries.get(*at)
                {
                    *hits.by_entry.entry(entry.to_vec()).or_insert(0) += times;
                }
            }
        }
        hits
    }

    /// A list with the remedy of this name; `None` if no entry is left. Other remedies do not change it.
    pub(crate) fn changed(&self, remedy: &str, list: &[u8]) -> Option<Vec<u8>> {
        let used = |entry: &[u8]| self.by_entry.get(entry).copied().unwrap_or(0);
        let mut entries: Vec<&[u8]> = list.split(|byte| matches!(byte, b':' | b';')).collect();
        if !matches!(remedy, "drop" | "reorder" | "clean") {
            return Some(list.to_vec());
        }
        if remedy != "reorder" {
            // The linker ignores an entry that is repeated.
            let mut seen = HashSet::new();
            entries.retain(|entry| used(entry) > 0 && seen.insert(*entry));
        }
        if remedy != "drop" {
            entries.sort_by_key(|entry| Reverse(used(entry)));
        }
        (!entries.is_empty()).then(|| entries.join(&b':'))
    }
}

/// The values that programs had of LD_LIBRARY_PATH and PATH, and where programs were found.
#[derive(Debug, Default)]
pub(crate) struct Values {
    library_paths: HashMap<Vec<u8>, Value>,
    paths: HashMap<Vec<u8>, Value>,
    /// Directories of the programs that were started.
    programs_in: HashSet<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Value {
    starts: u64,
    programs: BTreeSet<Vec<u8>>,
}

impl Values {
    /// A program that was started.
    pub(crate) fn started(&mut self, exec: &Exec) {
        if exec.record.bits & EXEC_PATH_CUT == 0 {
            self.found_in(&exec.path);
        }
        if exec.record.bits & EXEC_ENV_CUT != 0 {
            return;
        }
        let Some(environment) = exec.environment.as_deref() else { return };
        keep(&mut self.library_paths, variable(environment, b"LD_LIBRARY_PATH"), &exec.exe);
        keep(&mut self.paths, variable(environment, b"PATH"), &exec.exe);
    }

    /// A program that could not be started: if it exists, as a script without an interpreter does, then
    /// its directory is one in which a program was found.
    pub(crate) fn failed(&mut self, miss: &Miss) {
        const ENOENT: u16 = 2;
        const ENOTDIR: u16 = 20;
        if !matches!(miss.record.error, ENOENT | ENOTDIR) {
            self.found_in(&miss.path);
        }
    }

    fn found_in(&mut self, path: &[u8]) {
        let directory = directory_of(path);
        if !self.programs_in.contains(directory) {
            self.programs_in.insert(directory.to_vec());
        }
    }

    /// Returns whether a program was found by an entry of PATH.
    pub(crate) fn finds_programs(&self, entry: &[u8]) -> bool {
        self.programs_in.contains(plain(entry))
    }

    /// Returns whether any program had a PATH.
    pub(crate) fn has_path(&self) -> bool {
        !self.paths.is_empty()
    }

    /// All values of LD_LIBRARY_PATH, the most common first. Those of which no search is known stay.
    pub(crate) fn library_paths(&self, hits: &Hits) -> Vec<ListChange> {
        changes(&self.library_paths, |was| {
            let remedy = if hits.known.contains(was) { "clean" } else { "none" };
            hits.changed(remedy, was)
        })
    }

    /// All values of PATH, the most common first.
    pub(crate) fn paths(&self) -> Vec<ListChange> {
        changes(&self.paths, |was| {
            let mut entries: Vec<_> = was.split(|byte| *byte == b':').collect();
            // What is not found in the first of two that are the same is not in the second either.
            let mut seen = HashSet::new();
            entries.retain(|entry| self.finds_programs(entry) && seen.insert(plain(entry)));
            (!entries.is_empty()).then(|| entries.join(&b':'))
        })
    }
}

fn changes(
    values: &HashMap<Vec<u8>, Value>,
    becomes: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Vec<ListChange> {
    let mut changes: Vec<ListChange> = values
        .iter()
        .map(|(was, value)| ListChange {
            was: was.clone(),
            becomes: becomes(was),
            starts: value.starts,
            programs: value.programs.iter().cloned().collect(),
        })
        .collect();
    changes.sort_by(|a, b| b.starts.cmp(&a.starts).then_with(|| a.was.cmp(&b.was)));
    changes
}

fn keep(values: &mut HashMap<Vec<u8>, Value>, value: &[u8], program: &[u8]) {
    if value.is_empty() || (values.len() >= KEPT_MAX && !values.contains_key(value)) {
        return;
    }
    if !values.contains_key(value) {
        values.insert(value.to_vec(), Value::default());
    }
    if let Some(known) = values.get_mut(value) {
        known.starts += 1;
        if known.programs.len() < KEPT_MAX && !known.programs.contains(program) {
            known.programs.insert(program.to_vec());
        }
    }
}

fn variable<'a>(environment: &'a Environment, name: &[u8]) -> &'a [u8] {
    let found = environment.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_slice()).unwrap_or_default()
}

/// The directory of a path, in the form of [`plain`].
fn directory_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.map_or(&b"."[..], |slash| plain(&path[..=slash]))
}

/// A directory without slashes at its end. The current directory can be written as nothing.
fn plain(entry: &[u8]) -> &[u8] {
    let slashes = entry.iter().rev().take_while(|byte| **byte == b'/').count();
    match &entry[..entry.len() - slashes] {
        b"" if slashes == 0 => b".",
        b"" => b"/",
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_entries_are_dropped_and_used_ones_come_first() {
        let by_entry = [(b"/a".to_vec(), 1), (b"/b".to_vec(), 5)].into();
        let hits = Hits { by_entry, ..Hits::default() };
        let changed = |remedy, list: &str| {
            let changed = hits.changed(remedy, list.as_bytes());
            changed.map(|list| String::from_utf8(list).expect("UTF-8"))
        };
        assert_eq!(changed("drop", "/x:/a;/b:/a:").as_deref(), Some("/a:/b"));
        assert_eq!(changed("reorder", "/x:/a:/b").as_deref(), Some("/b:/a:/x"));
        assert_eq!(changed("clean", "/x:/a:/b").as_deref(), Some("/b:/a"));
        assert_eq!(changed("clean", "/x:"), None);
        assert_eq!(changed("farm", "/x:").as_deref(), Some("/x:"));
    }

    #[test]
    fn a_path_has_each_directory_once() {
        let mut values = Values::default();
        values.found_in(b"/a/x");
        values.found_in(b"/b/y");
        keep(&mut values.paths, b"/a:/none:/b:/a/:/b", b"/a/x");
        let [ListChange { becomes, .. }] = &values.paths()[..] else { panic!("it is one value") };
        assert_eq!(becomes.as_deref(), Some(&b"/a:/b"[..]));
    }

    #[test]
    fn programs_are_found_by_the_entry_of_their_directory() {
        let mut values = Values::default();
        for path in ["/usr/bin/ls", "//sh", "./tool", "/opt/x//y"] {
            values.found_in(path.as_bytes());
        }
        for entry in ["/usr/bin", "/usr/bin/", "/", "", ".", "/opt/x"] {
            assert!(values.finds_programs(entry.as_bytes()), "{entry}");
        }
        assert!(!values.finds_programs(b"/usr"));
    }
}
