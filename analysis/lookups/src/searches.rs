//! Searches of modelled starts: for each library how long until it is found, for each program how much a start of it
//! costs.

use std::collections::BTreeMap;

use proctrace_findings::{LibrarySearch, ProgramSearch};
use proctrace_libsearch::LinkerCall;
use proctrace_wire::escape::to_text;

use crate::starts::Starts;

#[derive(Default)]
struct Library {
    searches: u64,
    misses: u64,
    most: u64,
    found: u64,
    path: Option<Vec<u8>>,
}

/// The libraries that modelled starts search for, those with most failed look-ups first.
pub(crate) fn libraries(starts: &Starts<'_>) -> Vec<LibrarySearch> {
    let mut libraries: BTreeMap<&[u8], Library> = BTreeMap::new();
    for (start, times) in starts.all() {
        let names = &start.search.libraries;
        let mut misses = vec![0; names.len()];
        for probe in &start.search.probes {
            let library = libraries.entry(&names[probe.library]).or_default();
            if !probe.found {
                misses[probe.library] += 1;
                library.misses += times;
            } else if probe.call == LinkerCall::Open {
                library.found += times;
                library.path.get_or_insert_with(|| probe.path.clone());
            }
        }
        for (name, misses) in names.iter().zip(misses) {
            let library = libraries.entry(name).or_default();
            library.searches += times;
            library.most = library.most.max(misses);
        }
    }
    let text = |bytes: &[u8]| to_text(bytes).into_owned();
    let mut found: Vec<LibrarySearch> = libraries
        .into_iter()
        .map(|(name, library)| LibrarySearch {
            name: text(name),
            searches: library.searches,
            found: library.found,
            misses: library.misses,
            most_misses: library.most,
            path: library.path.as_deref().map(text),
        })
        .collect();
    found.sort_by(|a, b| b.misses.cmp(&a.misses).then_with(|| a.name.cmp(&b.name)));
    found
}

/// The programs whose starts were modelled, those with most failed look-ups first.
pub(crate) fn programs(starts: &Starts<'_>) -> Vec<ProgramSearch> {
    let mut programs: BTreeMap<&[u8], ProgramSearch> = BTreeMap::new();
    for (start, times) in starts.all() {
        let misses = start.search.misses().count() as u64;
        let exe = start.kind.exe();
        let program = programs.entry(exe).or_insert_with(|| ProgramSearch {
            exe: to_text(exe).into_owned(),
            starts: 0,
            misses: 0,
            fewest_misses: u64::MAX,
            most_misses: 0,
        });
        program.starts += times;
        program.misses += misses.saturating_mul(times);
        program.fewest_misses = program.fewest_misses.min(misses);
        program.most_misses = program.most_misses.max(misses);
    }
    let mut found: Vec<ProgramSearch> = programs.into_values().collect();
    found.sort_by(|a, b| b.misses.cmp(&a.misses).then_with(|| a.exe.cmp(&b.exe)));
    found
}
