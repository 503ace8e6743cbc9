//! Failed look-ups by searched directory.

use std::cmp::Reverse;

use proctrace_findings::DirectoryMisses;
use proctrace_wire::{Family, Quantity};

use proctrace_classify::names::{errno, text};
use proctrace_recording::Recording;
use proctrace_recording::misses::MissKind;

/// Failed look-ups by directory, call and errno, most frequent first; only calls whose failures the
/// recording knows.
pub fn by_directory(recording: &Recording) -> Vec<DirectoryMisses> {
    let known: Vec<bool> =
        Family::ALL.iter().map(|family| recording.knows().knows_family(family.name())).collect();
    let is_known = |kind: &MissKind| known.get(usize::from(kind.family)).copied().unwrap_or(true);
    let Some(misses) = recording.misses() else { return Vec::new() };
    let mut rows = misses.by_kind();
    rows.retain(|(kind, ..)| is_known(kind));
    rows.sort_unstable_by_key(|(kind, count, _)| {
        (Reverse(*count), kind.directory, kind.errno, kind.family)
    });
    let directory = |number: u32| {
        recording.directories().get(number as usize).map_or_else(String::new, |path| text(path))
    };
    let row = |(kind, count, processes): (MissKind, u64, u64)| DirectoryMisses {
        directory: directory(kind.directory),
        family: family_name(usize::from(kind.family)).to_owned(),
        errno: errno(kind.errno),
        count,
        processes,
    };
    rows.into_iter().map(row).collect()
}

/// The name of a family of calls by its position in `Family::ALL`.
fn family_name(at: usize) -> &'static str {
    Family::ALL.get(at).map_or("unknown", |family| family.name())
}

/// Failed look-ups of one path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathMisses {
    pub path: String,
    pub family: String,
    pub errno: String,
    pub count: u64,
}

/// Failed look-ups by path, most frequent first, and the number of look-ups whose paths were not
/// kept, which are limited in number. Only calls whose failures the recording knows.
pub fn by_path(recording: &Recording) -> (Vec<PathMisses>, u64) {
    let Some(missed) = recording.missed_paths() else { return (Vec::new(), 0) };
    let is_known = |family: u8| {
        Family::ALL
            .get(usize::from(family))
            .is_none_or(|family| recording.knows().knows_family(family.name()))
    };
    let mut rows: Vec<_> = missed.paths.iter().filter(|path| is_known(path.family)).collect();
    rows.sort_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then_with(|| (&a.path, a.errno, a.family).cmp(&(&b.path, b.errno, b.family)))
    });
    let row = |path: &&proctrace_recording::misses::MissedPath| PathMisses {
        path: text(&path.path),
        family: family_name(usize::from(path.family)).to_owned(),
        errno: errno(path.errno),
        count: path.count,
    };
    let others = if recording.knows().all(&Quantity::LOOKUPS) { missed.others } else { 0 };
    (rows.iter().map(row).collect(), others)
}
