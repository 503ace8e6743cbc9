//! One directory of links that replaces those of LD_LIBRARY_PATH: whatever is found by a name in these is
//! found in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proctrace_libsearch::{Cause, Files, Found, Identity};

use crate::candidates::{Candidates, Same};
use crate::farm::{Farm, FarmPlan, Kept, gone};
use crate::held::{Held, List, Relative, Why, held, plain, staying};
use crate::places::{EntryState, Places};
use crate::uses::{Listed, Uses, found};

/// Maximum number of different lists that are merged, the most common ones.
const LISTS_MAX: usize = 100;

const RELATIVE: Why = "it is relative to the working directory";
const TOKEN: Why = "it has a token such as $ORIGIN";

/// The plan that merges the lists of all starts into one directory.
///
/// A link leads to the file that the linker would find in the list. A name for which no single file can be
/// told is not linked to: the directories that have it stay, in their order, behind the links.
pub(crate) fn merged<'a>(uses: &Uses<'a>) -> Farm<'a> {
    let system = uses.system();
    let entries = lists(uses);
    let mut places = Places::new(system.files, system.linker, taken(uses));
    for entry in entries.iter().flatten().filter(|entry| why_unread(entry).is_none()) {
        places.read(plain(entry));
    }
    let lists: Vec<List<'_>> = entries.iter().map(|list| List::of(list, &places)).collect();
    let held = held(&lists, system.files, system.linker);
    let (replaced, kept) = sorted_out(&entries, &places, &staying(&lists, &held));
    let mut candidates = Candidates::default();
    let mut stops: BTreeSet<Vec<u8>> = BTreeSet::new();
    let files = lists.iter().flat_map(List::found);
    for (name, directory, file) in files.filter(|(name, ..)| !held.contains_key(name)) {
        let path = [&directory.path, &b"/"[..], name].concat();
        match same(file, &path, system.files) {
            Some(file) => drop(candidates.add(name, file, &path)),
            None => drop(stops.insert(name.to_vec())),
        }
    }
    add_system(&mut candidates, uses, &lists, &held);
    count(&mut candidates, uses);
    stops.extend(in_vain(uses).filter(|name| !held.contains_key(name)).map(<[u8]>::to_vec));
    stops.retain(|name| !candidates.has(name));
    let (links, conflicts) = candidates.plan();
    let stops = stops.into_iter().collect();
    let (gone, failing) = (gone(uses), Vec::new());
    let plan = FarmPlan { links, conflicts, failing, gone, stops, replaced, kept };
    Farm::new(system.files, plan)
}

/// The searches that follow their list, in the files of the recorder's root.
fn ours<'u>(uses: &'u Uses<'_>) -> impl Iterator<Item = Listed<'u>> {
    uses.with_list().filter(|listed| !listed.kind.is_secure() && listed.kind.root().is_none())
}

/// The entries of each list, those of most starts first.
fn lists<'u>(uses: &'u Uses<'_>) -> Vec<Vec<&'u [u8]>> {
    let mut starts: HashMap<&[u8], u64> = HashMap::new();
    for Listed { list, times, .. } in ours(uses) {
        *starts.entry(list).or_insert(0) += times;
    }
    let mut lists: Vec<_> = starts.into_iter().collect();
    lists.sort_by_key(|(list, starts)| (Reverse(*starts), *list));
    lists.truncate(LISTS_MAX);
    let entries = |list: &'u [u8]| list.split(|byte| matches!(byte, b':' | b';')).collect();
    lists.into_iter().map(|(list, _)| entries(list)).collect()
}

/// Names of libraries that starts take from their lists.
fn taken(uses: &Uses<'_>) -> HashSet<Vec<u8>> {
    let all = ours(uses).flat_map(|listed| found(listed.search));
    let listed = all.filter(|found| matches!(found.cause, Cause::LibraryPath(_)));
    listed.map(|found| found.name.to_vec()).collect()
}

/// Reason why an entry is not read: it means different directories to different processes.
fn why_unread(entry: &[u8]) -> Option<Why> {
    if !entry.starts_with(b"/") {
        return Some(RELATIVE);
    }
    entry.contains(&b'$').then_some(TOKEN)
}

/// The entries that are replaced, and those that stay.
fn sorted_out(
    lists: &[Vec<&[u8]>],
    places: &Places<'_>,
    staying: &HashMap<&[u8], Why>,
) -> (Vec<Vec<u8>>, Vec<Kept>) {
    let (mut replaced, mut kept) = (Vec::new(), Vec::new());
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for entry in lists.iter().flatten().filter(|entry| seen.insert(entry)) {
        let why = why_unread(entry).or_else(|| match places.get(plain(entry)) {
            Some(EntryState::Unknown(why)) => Some(*why),
            _ => staying.get(plain(entry)).copied(),
        });
        match why {
            Some(why) => kept.push(Kept { entry: entry.to_vec(), why }),
            None => replaced.push(entry.to_vec()),
        }
    }
    (replaced, kept)
}

/// The file that a link leads to; `None` if it ends the search.
fn same(file: &Found, path: &[u8], files: &dyn Files) -> Option<Same> {
    match file {
        Found::Object(identity, _) => Some(Same::Object(*identity)),
        Found::Circle => None,
        _ => Some(Same::Other(files.real(path).unwrap_or_else(|| path.to_vec()))),
    }
}

/// Adds the libraries of the system that no list has: as far as each program still finds what it found
/// before. A library that depends on its place is left out, and so are names for which some start finds
/// another file, or would by the RUNPATH of a library in a list.
fn add_system(candidates: &mut Candidates, uses: &Uses<'_>, lists: &[List<'_>], held: &Held<'_>) {
    let linker = uses.system().linker;
    let files = uses.system().files;
    let mut system: BTreeMap<&[u8], (Identity, &[u8])> = BTreeMap::new();
    let mut disputed: HashSet<&[u8]> = HashSet::new();
    for found in ours(uses).flat_map(|listed| found(listed.search)) {
        if candidates.has(found.name) || held.contains_key(found.name) {
            continue;
        }
        let is_of_system = match found.cause {
            // These come before the links as well.
            Cause::Rpath(..) | Cause::Path => continue,
            cause => matches!(cause, Cause::Cache | Cause::Default(_)),
        };
        match files.at(found.path) {
            Found::Object(identity, elf) if is_of_system => {
                let (known, _) = system.entry(found.name).or_insert((identity, found.path));
                let slash = found.path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
                let place = Relative::of(&elf, &found.path[..slash], files, linker);
                if *known != identity || place.is_any() {
                    disputed.insert(found.name);
                }
            }
            _ => drop(disputed.insert(found.name)),
        }
    }
    let runpaths: BTreeSet<Vec<u8>> = lists.iter().flat_map(|list| list.runpaths(linker)).collect();
    let subdirectories = linker.capabilities.subdirectories();
    system.retain(|name, (identity, _)| {
        let tried = runpaths.iter().flat_map(|path| {
            subdirectories.iter().map(move |sub| [path, &b"/"[..], sub, name].concat())
        });
        let mut others = tried.map(|path| files.at(&path));
        !disputed.contains(name)
            && others.all(|other| match other {
                Found::Object(other, _) => other == *identity,
                other => !other.exists(),
            })
    });
    for (name, (identity, path)) in system {
        candidates.add(name, Same::Object(identity), path);
    }
}

/// Counts the starts that find each file today.
fn count(candidates: &mut Candidates, uses: &Uses<'_>) {
    let files = uses.system().files;
    for Listed { search, times, .. } in ours(uses) {
        let program = search.loaded.first().map(Vec::as_slice).unwrap_or_default();
        let mut own: HashSet<(&[u8], Identity)> = HashSet::new();
        // An RPATH comes before the links as well.
        let found = found(search).filter(|found| !matches!(found.cause, Cause::Rpath(..)));
        for found in found.filter(|found| candidates.has(found.name)).collect::<Vec<_>>() {
            if found.path.starts_with(b"/")
                && let Found::Object(identity, _) = files.at(found.path)
                && own.insert((found.name, identity))
            {
                let file = Same::Object(identity);
                candidates.add(found.name, file, found.path).count(program, times);
            }
        }
    }
}

/// Names that were searched and never found. A library that has gone was found in its time.
fn in_vain<'u>(uses: &'u Uses<'_>) -> impl Iterator<Item = &'u [u8]> {
    let mut known: HashSet<&[u8]> = HashSet::new();
    for used in uses.all() {
        known.extend(used.found().map(|found| found.name));
    }
    for Listed { search, .. } in uses.with_list() {
        known.extend(search.missing.iter().map(Vec::as_slice));
    }
    let asked = ours(uses).flat_map(|listed| listed.search.libraries.iter().map(Vec::as_slice));
    asked.filter(move |name| !name.contains(&b'/') && !known.contains(name))
}
