//! The files that starts find by a name, and which of them a directory of links leads to.

use std::collections::BTreeMap;

use proctrace_libsearch::Identity;

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
    /// The file that is linked to: that of the most common start, or in the most common list.
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

/// A file, whatever its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Same {
    /// A program or library.
    Object(Identity),
    /// Any other, by its path without symbolic links.
    Other(Vec<u8>),
}

/// The candidates for each name, in the order in which they are found: the first is linked to.
#[derive(Debug, Default)]
pub(crate) struct Candidates(BTreeMap<Vec<u8>, Vec<(Same, Candidate)>>);

impl Candidates {
    /// Returns whether there is a file of this name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.0.contains_key(name)
    }

    /// A file that may be found by this name.
    pub(crate) fn add(&mut self, name: &[u8], file: Same, path: &[u8]) -> &mut Candidate {
        let candidates = self.0.entry(name.to_vec()).or_default();
        let at = candidates.iter().position(|(known, _)| *known == file);
        let at = at.unwrap_or_else(|| {
            let candidate = Candidate { path: path.to_vec(), starts: 0, programs: Vec::new() };
            candidates.push((file, candidate));
            candidates.len() - 1
        });
        &mut candidates[at].1
    }

    /// The links, and the names for which there are several files.
    pub(crate) fn plan(self) -> (Vec<Link>, Vec<Conflict>) {
        let (mut links, mut conflicts) = (Vec::new(), Vec::new());
        for (name, candidates) in self.0 {
            let mut candidates = candidates.into_iter().map(|(_, candidate)| candidate);
            let Some(chosen) = candidates.next() else { continue };
            links.push(Link { name: name.clone(), target: chosen.path.clone() });
            let mut lost: Vec<_> = candidates.collect();
            if !lost.is_empty() {
                lost.sort_by_key(|candidate| std::cmp::Reverse(candidate.starts));
                conflicts.push(Conflict { name, chosen, lost });
            }
        }
        (links, conflicts)
    }
}

impl Candidate {
    /// Counts starts that find it.
    pub(crate) fn count(&mut self, program: &[u8], times: u64) {
        self.starts = self.starts.saturating_add(times);
        if !self.programs.iter().any(|known| known == program) {
            self.programs.push(program.to_vec());
        }
    }
}
