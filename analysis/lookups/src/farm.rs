//! A directory of links to libraries, which is searched first.

use std::collections::{BTreeMap, HashMap};

use proctrace_libsearch::{Cause, Files, Found, Identity};

use crate::candidates::{Candidates, Conflict, Link, Same};
use crate::uses::{Listed, Uses, found};

/// A directory of links that does not exist yet.
pub(crate) const FARM: &[u8] = b"/proctrace-farm";

/// A directory of links, to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FarmPlan {
    /// By name.
    pub links: Vec<Link>,
    /// Names for which different starts find different files, by name.
    pub conflicts: Vec<Conflict>,
    /// Programs that would not start with it, because one of their libraries finds others only relative
    /// to its own place ($ORIGIN), or because they have another root.
    pub failing: Vec<Vec<u8>>,
    /// Libraries that are gone since the recording, with the programs that asked for them.
    pub gone: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Names that were found nowhere: a link to itself ends the search for them.
    pub stops: Vec<Vec<u8>>,
    /// Entries of LD_LIBRARY_PATH that it replaces, as they are written; empty if it replaces none.
    pub replaced: Vec<Vec<u8>>,
    /// Entries that it cannot replace.
    pub kept: Vec<Kept>,
}

/// An entry of LD_LIBRARY_PATH that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The entry.
    pub entry: Vec<u8>,
    /// The reason, for users.
    pub why: &'static str,
}

impl FarmPlan {
    /// A list with this directory of links first, without the entries that it replaces.
    pub fn list(&self, directory: &[u8], was: &[u8]) -> Vec<u8> {
        let entries = was.split(|byte| matches!(byte, b':' | b';'));
        let stays = |entry: &&[u8]| {
            *entry != directory && !self.replaced.iter().any(|replaced| replaced == entry)
        };
        let entries = entries.filter(|entry| !was.is_empty() && stays(entry));
        [directory].into_iter().chain(entries).collect::<Vec<_>>().join(&b':')
    }
}

/// A plan of a farm with a view of it.
pub(crate) struct Farm<'a> {
    today: &'a dyn Files,
    links: HashMap<Vec<u8>, Found>,
    pub(crate) plan: FarmPlan,
}

impl<'a> Farm<'a> {
    /// A plan, and what its links lead to.
    pub(crate) fn new(today: &'a dyn Files, plan: FarmPlan) -> Self {
        let links = plan.links.iter().map(|link| (link.name.clone(), today.at(&link.target)));
        let stops = plan.stops.iter().map(|name| (name.clone(), Found::Circle));
        Self { today, links: links.chain(stops).collect(), plan }
    }

    /// The libraries that are found by LD_LIBRARY_PATH, or also those of the system; of several of one
    /// name, that which the most common start finds.
    pub(crate) fn of(uses: &Uses<'a>, with_system: bool) -> Self {
        let today = uses.system().files;
        let mut candidates = Candidates::default();
        for Listed { search, times, .. } in uses.with_list() {
            let program = search.loaded.first().map(Vec::as_slice).unwrap_or_default();
            let mut own: Vec<(&[u8], Identity)> = Vec::new();
            for found in found(search) {
                let listed = matches!(found.cause, Cause::LibraryPath(_));
                let system = matches!(found.cause, Cause::Cache | Cause::Default(_));
                // A relative path leads to other files from elsewhere.
                if !(listed || with_system && system) || !found.path.starts_with(b"/") {
                    continue;
                }
                if let Found::Object(identity, _) = today.at(found.path)
                    && !own.contains(&(found.name, identity))
                {
                    own.push((found.name, identity));
                    let file = Same::Object(identity);
                    candidates.add(found.name, file, found.path).count(program, times);
                }
            }
        }
        let (links, conflicts) = candidates.plan();
        Self::new(today, FarmPlan { links, conflicts, gone: gone(uses), ..FarmPlan::default() })
    }
}

/// Libraries that are gone since the recording, with the programs that asked for them.
pub(crate) fn gone(uses: &Uses<'_>) -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut gone: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for Listed { search, .. } in uses.with_list() {
        let program = search.loaded.first().cloned().unwrap_or_default();
        for name in &search.missing {
            gone.entry(name.clone()).or_default().push(program.clone());
        }
    }
    gone.into_iter().collect()
}

impl Files for Farm<'_> {
    fn at(&self, path: &[u8]) -> Found {
        let Some(rest) = path.strip_prefix(FARM) else { return self.today.at(path) };
        match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => Found::Directory,
            name => self.links.get(name).cloned().unwrap_or(Found::Nothing),
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
