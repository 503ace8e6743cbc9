//! What would avoid failed look-ups of the dynamic linker: each remedy is a changed list or a changed set
//! of files, for which the model searches again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proctrace_findings::Remedy;
use proctrace_libsearch::{Cause, Elf, Files, Found, Identity, Search};

use crate::libs::System;
use crate::libs::starts::{Start, Starts, searched};

/// A directory of links that does not exist yet.
const FARM: &[u8] = b"/proctrace-farm";

/// Each remedy by its stable name: what it does, and what it risks.
const REMEDIES: [(&str, &str, &str); 6] = [
    ("none", "nothing: as recorded", ""),
    (
        "drop",
        "remove the entries of LD_LIBRARY_PATH in which no library was found",
        "a library that only another run needs, or dlopen(3), is not found there any more",
    ),
    (
        "reorder",
        "put the entries in which most libraries are found first",
        "of two libraries of one name another one may be found",
    ),
    (
        "unset",
        "unset LD_LIBRARY_PATH for programs that take no library from it",
        "programs that they start no longer have it either",
    ),
    (
        "farm",
        "put one directory first, with links to all libraries that are found by LD_LIBRARY_PATH",
        "the links must be renewed when libraries are; one version of each name for all programs",
    ),
    (
        "farm-system",
        "the same with links to the libraries of the system as well",
        "as for farm, and links to libc must be renewed when the system is upgraded",
    ),
];

/// Remedies by what they leave, the most effective first; today's state is the last of equals.
pub(crate) fn remedies(starts: &Starts<'_>) -> Vec<Remedy> {
    let hits = hits_by_entry(starts);
    let system = starts.system();
    let farm = Farm { today: system.files, links: links(starts, false) };
    let whole_farm = Farm { today: system.files, links: links(starts, true) };
    let has_list = starts.all().any(|(start, _)| start.library_path.is_some());
    let predicted = |name: &str| -> u64 {
        let files = match name {
            "farm" => &farm,
            "farm-system" => &whole_farm,
            _ => system.files,
        };
        let changed = System { files, ..system };
        let misses = |start: &Start| {
            let search = searched(&start.kind, list(name, start, &hits).as_deref(), changed);
            search.as_ref().unwrap_or(&start.search).misses().count() as u64
        };
        starts.all().map(|(start, times)| misses(start).saturating_mul(times)).sum()
    };
    let mut remedies: Vec<Remedy> = REMEDIES
        .iter()
        .filter(|(name, ..)| has_list || *name == "none")
        .map(|(name, does, risk)| Remedy {
            name,
            does: (*does).to_owned(),
            risk,
            predicted_misses: predicted(name),
        })
        .collect();
    remedies.sort_by_key(|remedy| (remedy.predicted_misses, remedy.name == "none"));
    remedies
}

/// LD_LIBRARY_PATH of a start with a remedy.
fn list(remedy: &str, start: &Start, hits: &BTreeMap<Vec<u8>, u64>) -> Option<Vec<u8>> {
    let list = start.library_path.as_ref()?;
    let entries = list.split(|byte| matches!(byte, b':' | b';'));
    let used = |entry: &[u8]| hits.get(entry).copied().unwrap_or(0);
    match remedy {
        "drop" => {
            let kept: Vec<_> = entries.filter(|entry| used(entry) > 0).collect();
            (!kept.is_empty()).then(|| kept.join(&b':'))
        }
        "reorder" => {
            let mut entries: Vec<_> = entries.collect();
            entries.sort_by_key(|entry| Reverse(used(entry)));
            Some(entries.join(&b':'))
        }
        "unset" => {
            let mut found =
                start.search.probes.iter().filter(|probe| probe.found && is_open(probe));
            let own = found.any(|probe| matches!(probe.cause, Cause::LibraryPath(_)));
            own.then(|| list.clone())
        }
        "farm" | "farm-system" => Some([FARM, b":", list].concat()),
        _ => Some(list.clone()),
    }
}

fn is_open(probe: &proctrace_libsearch::Probe) -> bool {
    probe.call == proctrace_libsearch::Call::Open
}

/// Libraries found by each entry of LD_LIBRARY_PATH, over all starts.
fn hits_by_entry(starts: &Starts<'_>) -> BTreeMap<Vec<u8>, u64> {
    let mut hits = BTreeMap::new();
    for (start, times) in starts.all() {
        let list = start.library_path.as_deref().unwrap_or_default();
        let entries: Vec<_> = list.split(|byte| matches!(byte, b':' | b';')).collect();
        for probe in start.search.probes.iter().filter(|probe| probe.found && is_open(probe)) {
            if let Cause::LibraryPath(at) = probe.cause
                && let Some(entry) = entries.get(at)
            {
                *hits.entry(entry.to_vec()).or_insert(0) += times;
            }
        }
    }
    hits
}

/// The libraries that a directory of links would hold, by name; of several, that which the most common
/// start finds.
fn links(starts: &Starts<'_>, with_system: bool) -> HashMap<Vec<u8>, (Identity, Arc<Elf>)> {
    let mut by_use: Vec<(&Start, u64)> =
        starts.all().filter(|(start, _)| start.library_path.is_some()).collect();
    by_use.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.search.loaded.cmp(&b.0.search.loaded)));
    let files = starts.system().files;
    let mut links = HashMap::new();
    for (start, _) in by_use {
        for (name, path) in found(&start.search, with_system) {
            if let Found::Object(identity, elf) = files.at(path) {
                links.entry(name.to_vec()).or_insert((identity, elf));
            }
        }
    }
    links
}

/// The libraries of a search by name, with their paths.
fn found(search: &Search, with_system: bool) -> impl Iterator<Item = (&[u8], &[u8])> {
    search.probes.iter().filter_map(move |probe| {
        let listed = matches!(probe.cause, Cause::LibraryPath(_));
        let system = matches!(probe.cause, Cause::Cache | Cause::Default(_));
        let wanted = probe.found && is_open(probe) && (listed || (with_system && system));
        wanted.then(|| (&*search.libraries[probe.library], &*probe.path))
    })
}

/// Today's files and a directory of links.
struct Farm<'a> {
    today: &'a dyn Files,
    links: HashMap<Vec<u8>, (Identity, Arc<Elf>)>,
}

impl Files for Farm<'_> {
    fn at(&self, path: &[u8]) -> Found {
        let Some(rest) = path.strip_prefix(FARM) else { return self.today.at(path) };
        match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => Found::Directory,
            name => match self.links.get(name) {
                Some((identity, elf)) => Found::Object(*identity, Arc::clone(elf)),
                None => Found::Nothing,
            },
        }
    }

    fn bytes(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.bytes(path)
    }

    fn real(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.real(path)
    }

    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.executable(path)
    }
}
