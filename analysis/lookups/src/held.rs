//! The files that a list of directories holds, and those to which no link can lead in its place.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proctrace_libsearch::{Elf, Files, Found, Linker, Tokens, has_origin, own_directories};

use crate::places::{Directory, EntryState, Places, architecture};

/// Reason why a directory stays in LD_LIBRARY_PATH, for users.
pub(crate) type Why = &'static str;

const CPUS: Why = "it has libraries for certain CPUs";
const ARCHITECTURES: Why = "a name in it belongs to libraries of several architectures";
const OWN_PLACE: Why = "a library in it finds others relative to its own place";

/// Names to which no link leads, and why.
pub(crate) type Held<'p> = BTreeMap<&'p [u8], Why>;

/// The directories of a list, each once.
pub(crate) struct List<'p> {
    directories: Vec<&'p Directory>,
    /// Those that have a file of some name, in order.
    holders: BTreeMap<&'p [u8], Vec<&'p Directory>>,
}

/// An entry without slashes at its end.
pub(crate) fn plain(entry: &[u8]) -> &[u8] {
    let slashes = entry.iter().rev().take_while(|byte| **byte == b'/').count();
    &entry[..(entry.len() - slashes).max(entry.len().min(1))]
}

impl<'p> List<'p> {
    /// Makes the list of these entries; those that were not read hold nothing.
    pub(crate) fn of(entries: &[&[u8]], places: &'p Places<'_>) -> Self {
        let mut list = Self { directories: Vec::new(), holders: BTreeMap::new() };
        let mut seen: HashSet<&[u8]> = HashSet::new();
        for entry in entries.iter().map(|entry| plain(entry)).filter(|entry| seen.insert(entry)) {
            let Some(EntryState::Directory(directory)) = places.get(entry) else { continue };
            list.directories.push(directory);
            let names: BTreeSet<&Vec<u8>> =
                directory.files.keys().chain(directory.variants.keys()).collect();
            for name in names {
                list.holders.entry(name).or_default().push(directory);
            }
        }
        list
    }

    /// The directories of the RUNPATHs of its libraries.
    pub(crate) fn runpaths(&self, linker: &Linker) -> BTreeSet<Vec<u8>> {
        let mut all = BTreeSet::new();
        for directory in &self.directories {
            let variants = directory.variants.values().flatten();
            let variants = variants.map(|(directory, file)| (directory, file));
            let files = directory.files.values().map(|file| (&directory.path, file));
            for (origin, file) in variants.chain(files) {
                if let Found::Object(_, elf) = file
                    && let Some(list) = &elf.runpath
                {
                    let tokens = Tokens { origin: Some(origin.clone()), ..linker.tokens.clone() };
                    all.extend(own_directories(list, &tokens).map(|(path, _)| path));
                }
            }
        }
        all
    }

    /// The files that the linker finds: for each name the first one.
    pub(crate) fn found(&self) -> impl Iterator<Item = (&'p [u8], &'p Directory, &'p Found)> {
        self.holders.keys().filter_map(|name| {
            let (directory, file) = self.first(name)?;
            Some((*name, directory, file))
        })
    }

    fn first(&self, name: &[u8]) -> Option<(&'p Directory, &'p Found)> {
        let mut holders = self.holders.get(name)?.iter();
        holders.find_map(|directory| Some((*directory, directory.files.get(name)?)))
    }

    /// Reason why no link of this name would find the same file, for any program on any machine.
    fn why_held(&self, name: &[u8], files: &dyn Files, linker: &Linker) -> Option<Why> {
        let holders = self.holders.get(name)?;
        let first = holders.iter().position(|directory| directory.files.contains_key(name));
        // The linker passes over libraries of another architecture.
        let architectures = holders.iter().flat_map(|directory| {
            let file = directory.files.get(name).and_then(architecture);
            let variants = directory.variants.get(name).into_iter().flatten();
            variants.filter_map(|(_, file)| architecture(file)).chain(file)
        });
        if architectures.collect::<BTreeSet<_>>().len() > 1 {
            return Some(ARCHITECTURES);
        }
        let tried = &holders[..first.map_or(holders.len(), |first| first + 1)];
        if tried.iter().any(|directory| directory.variants.contains_key(name)) {
            return Some(CPUS);
        }
        let (directory, file) = self.first(name)?;
        let Found::Object(_, elf) = file else { return None };
        let places = Relative::of(elf, &directory.path, files, linker);
        self.loses(&places).then_some(OWN_PLACE)
    }

    /// Returns whether a library would find others elsewhere if it were opened by a link.
    ///
    /// By RUNPATH it finds the same ones if its directories are in the list, which is searched before it in
    /// any case. RPATH comes before the list, and before the RPATHs of what has loaded the library.
    fn loses(&self, places: &Relative) -> bool {
        let is_listed =
            |real: &Vec<u8>| self.directories.iter().any(|directory| directory.real == *real);
        places.needed || !places.rpath.is_empty() || !places.runpath.iter().all(is_listed)
    }
}

/// Directories in which a library looks for others relative to its own place. The linker takes $ORIGIN for the
/// directory of the path by which it was opened (`l_origin` in elf/dl-object.c), not for that of the file.
pub(crate) struct Relative {
    /// Existing directories, without symbolic links.
    runpath: Vec<Vec<u8>>,
    rpath: Vec<Vec<u8>>,
    /// True if it needs a library by such a path.
    needed: bool,
}

impl Relative {
    /// Finds the directories of a library in this directory.
    pub(crate) fn of(elf: &Elf, directory: &[u8], files: &dyn Files, linker: &Linker) -> Self {
        let tokens = Tokens { origin: Some(directory.to_vec()), ..linker.tokens.clone() };
        let of = |list: &Option<Vec<u8>>| -> Vec<Vec<u8>> {
            let all = own_directories(list.as_deref().unwrap_or_default(), &tokens);
            all.filter(|(_, relative)| *relative)
                .filter_map(|(directory, _)| files.real(&directory))
                .collect()
        };
        let needed = elf.needed.iter().any(|name| has_origin(name));
        Self { runpath: of(&elf.runpath), rpath: of(&elf.rpath), needed }
    }

    /// Returns whether there is any such place.
    pub(crate) fn is_any(&self) -> bool {
        self.needed || !self.runpath.is_empty() || !self.rpath.is_empty()
    }
}

/// The names of all lists to which no link leads.
pub(crate) fn held<'p>(lists: &[List<'p>], files: &dyn Files, linker: &Linker) -> Held<'p> {
    let mut held = Held::new();
    for list in lists {
        for name in list.holders.keys() {
            if let Some(why) = list.why_held(name, files, linker) {
                let known = held.entry(*name).or_insert(why);
                // The reason for which most directories stay.
                if why == ARCHITECTURES {
                    *known = why;
                }
            }
        }
    }
    held
}

/// The directories in which these names are found.
pub(crate) fn staying<'p>(lists: &[List<'p>], held: &Held<'p>) -> HashMap<&'p [u8], Why> {
    let mut staying = HashMap::new();
    for list in lists {
        for (name, why) in held {
            for directory in list.holders.get(name).into_iter().flatten() {
                staying.entry(&*directory.path).or_insert(*why);
                // What comes after the first file is found by another architecture only.
                if directory.files.contains_key(*name) && *why != ARCHITECTURES {
                    break;
                }
            }
        }
    }
    staying
}
