//! Libraries that each start finds, and by which list: at the start itself, and later by dlopen(3).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proctrace_libsearch::{Cause, LinkerCall, Search, is_library};

use crate::System;
use crate::starts::{Kind, Start, Starts, searched, searched_later};

/// Maximum number of names that are kept for one start.
const NAMES_MAX: usize = 10_000;

/// Libraries that dlopen(3) searched for, by start. Those that it found at the first attempt are not known:
/// successful opens are recorded only on request.
#[derive(Debug, Default)]
pub(crate) struct Dlopened(HashMap<usize, Later>);

/// Libraries that a kind of start opened later.
#[derive(Debug)]
struct Later {
    start: Arc<Start>,
    names: BTreeSet<Vec<u8>>,
    /// Failed look-ups, in all processes.
    misses: u64,
}

impl Dlopened {
    /// A failed look-up by dlopen(3) in a process that had started already: of a library, or of a
    /// directory.
    pub(crate) fn take(&mut self, start: &Arc<Start>, path: &[u8]) {
        // The entry keeps the start, so no other one can have its address.
        let later = self.0.entry(Arc::as_ptr(start) as usize).or_insert_with(|| Later {
            start: Arc::clone(start),
            names: BTreeSet::new(),
            misses: 0,
        });
        later.misses += 1;
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let name = slash.map_or(path, |slash| &path[slash + 1..]);
        if is_library(name) && later.names.len() < NAMES_MAX && !later.names.contains(name) {
            later.names.insert(name.to_vec());
        }
    }

    /// All its failed look-ups.
    pub(crate) fn misses(&self) -> u64 {
        self.0.values().map(|later| later.misses).sum()
    }

    fn of(&self, start: &Start) -> Option<&Later> {
        let later = self.0.get(&(std::ptr::from_ref(start) as usize))?;
        debug_assert!(std::ptr::eq(&*later.start, start), "an address has one start");
        Some(later)
    }
}

/// A library that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finding<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) path: &'a [u8],
    pub(crate) cause: &'a Cause,
}

/// A kind of start.
#[derive(Debug)]
pub(crate) struct Use<'a> {
    pub(crate) start: &'a Start,
    /// Number of such starts.
    pub(crate) times: u64,
    /// Names that it opened later with dlopen(3).
    later: Vec<Vec<u8>>,
    /// Failed look-ups of that, in all processes.
    later_misses: u64,
    /// Its search and that of these.
    later_search: Option<Search>,
}

/// All libraries that a search finds.
pub(crate) fn found(search: &Search) -> impl Iterator<Item = Finding<'_>> {
    let hits = search.probes.iter().filter(|probe| probe.found && probe.call == LinkerCall::Open);
    hits.map(|probe| Finding {
        name: &search.libraries[probe.library],
        path: &probe.path,
        cause: &probe.cause,
    })
}

impl Use<'_> {
    /// Its search, and that of what it opened later.
    pub(crate) fn search(&self) -> &Search {
        self.later_search.as_ref().unwrap_or(&self.start.search)
    }

    /// All libraries that are found, those of the start first.
    pub(crate) fn found(&self) -> impl Iterator<Item = Finding<'_>> {
        found(self.search())
    }

    /// All files that are loaded, the program first.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = &[u8]> {
        self.search().loaded.iter().map(Vec::as_slice)
    }

    /// Failed look-ups of its start, and those of dlopen(3) in all its processes, with another list and
    /// other files; `None` if it would not start.
    pub(crate) fn misses_with(
        &self,
        list: Option<&[u8]>,
        system: System<'_>,
    ) -> Option<(u64, u64)> {
        let kind = &self.start.kind;
        let misses = |search: &Search| search.misses().count() as u64;
        let start = misses(&searched(kind, list, system)?);
        let Some(today) = &self.later_search else { return Some((start, self.later_misses)) };
        let both = misses(&searched_later(kind, list, &self.later, system)?);
        // Not each process opens all of them: their number is scaled by what was recorded.
        let today = misses(today).saturating_sub(misses(&self.start.search));
        let changed = both.saturating_sub(start);
        let scaled = u128::from(self.later_misses) * u128::from(changed) / u128::from(today.max(1));
        Some((start, u64::try_from(scaled).unwrap_or(u64::MAX)))
    }

    /// Failed look-ups by dlopen(3) in all its processes, as recorded.
    pub(crate) fn later_misses(&self) -> u64 {
        self.later_misses
    }

    /// Returns whether it takes a library from LD_LIBRARY_PATH.
    pub(crate) fn takes_from_list(&self) -> bool {
        self.found().any(|found| matches!(found.cause, Cause::LibraryPath(_)))
    }

    /// The program.
    pub(crate) fn program(&self) -> &[u8] {
        self.start.search.loaded.first().map(Vec::as_slice).unwrap_or_default()
    }
}

/// All kinds of starts, the most common first.
pub(crate) struct Uses<'a> {
    system: System<'a>,
    all: Vec<Use<'a>>,
    /// Starts that cannot be modelled, because libraries are gone: as far as they get.
    incomplete: Vec<(&'a Kind, Search, u64)>,
}

/// A search with LD_LIBRARY_PATH.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) list: &'a [u8],
    pub(crate) search: &'a Search,
    /// Number of its starts.
    pub(crate) times: u64,
}

impl<'a> Uses<'a> {
    pub(crate) fn of(starts: &'a Starts<'_>, dlopened: &Dlopened) -> Self {
        let system = starts.system();
        let mut all: Vec<Use<'a>> = starts
            .all()
            .map(|(start, times)| {
                let opened = dlopened.of(start);
                let later: Vec<_> =
                    opened.into_iter().flat_map(|opened| opened.names.iter().cloned()).collect();
                let later_misses = opened.map_or(0, |opened| opened.misses);
                let list = start.library_path.as_deref();
                let later_search = (!later.is_empty())
                    .then(|| searched_later(&start.kind, list, &later, system))
                    .flatten();
                Use { start, times, later, later_misses, later_search }
            })
            .collect();
        all.sort_by(|a, b| {
            let key =
                |used: &Use<'a>| (used.start.library_path.as_ref(), &used.start.search.loaded);
            b.times.cmp(&a.times).then_with(|| key(a).cmp(&key(b)))
        });
        let mut incomplete: Vec<_> = starts.incomplete().collect();
        incomplete.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.1.loaded.cmp(&b.1.loaded)));
        Self { system, all, incomplete }
    }

    /// The searches with LD_LIBRARY_PATH: those of modelled starts, the most common first, then those that
    /// libraries have gone of.
    pub(crate) fn with_list(&self) -> impl Iterator<Item = Listed<'_>> {
        let modelled = self.all.iter().map(|used| (&used.start.kind, used.search(), used.times));
        let incomplete = self.incomplete.iter();
        let incomplete = incomplete.map(|(kind, search, times)| (*kind, search, *times));
        modelled.chain(incomplete).filter_map(|(kind, search, times)| {
            Some(Listed { kind, list: kind.library_path()?, search, times })
        })
    }

    pub(crate) fn system(&self) -> System<'a> {
        self.system
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Use<'a>> {
        self.all.iter()
    }
}
