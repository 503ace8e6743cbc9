//! A directory of links to libraries, which is searched first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proctrace_libsearch::{Cause, Elf, Files, Found, Identity};

use crate::libs::uses::{Listed, Uses, found};

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
    /// to its own place ($ORIGIN).
    pub failing: Vec<Vec<u8>>,
    /// Libraries that are gone since the recording, with the programs that asked for them.
    pub gone: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name by which programs ask for the library.
    pub name: Vec<u8>,
    /// The path at which it was found: absolute.
    pub target: Vec<u8>,
}

/// A name for which different starts find different files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The name.
    pub name: Vec<u8>,
    /// The file that is linked to: that of the most common start.
    pub chosen: Candidate,
    /// The others, the most used first.
    pub lost: Vec<Candidate>,
}

/// A file that starts find by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: Vec<u8>,
    /// Starts that find it.
    pub starts: u64,
    /// Their programs.
    pub programs: Vec<Vec<u8>>,
}

/// The candidates for each name, in the order in which they are found.
type Candidates = BTreeMap<Vec<u8>, Vec<(Identity, Candidate)>>;

/// A plan of a farm with a view of it.
pub(crate) struct Farm<'a> {
    today: &'a dyn Files,
    links: HashMap<Vec<u8>, (Identity, Arc<Elf>)>,
    pub(crate) plan: FarmPlan,
}

impl<'a> Farm<'a> {
    /// The libraries that are found by LD_LIBRARY_PATH, or also those of the system; of several of one
    /// name, that which the most common start finds.
    pub(crate) fn of(uses: &Uses<'a>, with_system: bool) -> Self {
        let today = uses.system().files;
        let (mut links, mut candidates) = (HashMap::new(), Candidates::new());
        let mut gone: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
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
                if let Found::Object(identity, elf) = today.at(found.path) {
                    links.entry(found.name.to_vec()).or_insert((identity, elf));
                    if !own.contains(&(found.name, identity)) {
                        own.push((found.name, identity));
                        count(&mut candidates, found.name, (identity, found.path), program, times);
                    }
                }
            }
            for name in &search.missing {
                gone.entry(name.clone()).or_default().push(program.to_vec());
            }
        }
        let mut plan = plan(candidates);
        plan.gone = gone.into_iter().collect();
        Self { today, links, plan }
    }
}

fn count(
    all: &mut Candidates,
    name: &[u8],
    (identity, path): (Identity, &[u8]),
    program: &[u8],
    times: u64,
) {
    let candidates = all.entry(name.to_vec()).or_default();
    let at = candidates.iter().position(|(known, _)| *known == identity);
    let at = at.unwrap_or_else(|| {
        let candidate = Candidate { path: path.to_vec(), starts: 0, programs: Vec::new() };
        candidates.push((identity, candidate));
        candidates.len() - 1
    });
    let candidate = &mut candidates[at].1;
    candidate.starts += times;
    if !candidate.programs.iter().any(|known| known == program) {
        candidate.programs.push(program.to_vec());
    }
}

fn plan(candidates: Candidates) -> FarmPlan {
    let mut plan = FarmPlan::default();
    for (name, candidates) in candidates {
        let mut candidates = candidates.into_iter().map(|(_, candidate)| candidate);
        let Some(chosen) = candidates.next() else { continue };
        plan.links.push(Link { name: name.clone(), target: chosen.path.clone() });
        let lost: Vec<_> = candidates.collect();
        if !lost.is_empty() {
            plan.conflicts.push(Conflict { name, chosen, lost });
        }
    }
    plan
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
