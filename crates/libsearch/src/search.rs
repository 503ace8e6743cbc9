//! The search itself: from a program to the paths that its start looks up.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cache::Cache;
use crate::capabilities::Linker;
use crate::elf::Elf;
use crate::files::{Files, Found, Identity};
use crate::list::{Tokens, directories, expand};

/// A search ends after this number of look-ups: 300 directories for 1,000 libraries.
pub const PROBES_MAX: usize = 300_000;

/// A program to start.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its file, as given to execve(2).
    pub path: &'a [u8],
    /// LD_LIBRARY_PATH, if set.
    pub library_path: Option<&'a [u8]>,
    /// LD_PRELOAD, if set.
    pub preload: Option<&'a [u8]>,
    /// Whether the start is secure (AT_SECURE): set-user-ID programs ignore both.
    pub secure: bool,
}

/// How the linker looks at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// openat(2): is this the library?
    Open,
    /// stat(2): does this directory exist?
    Stat,
}

/// Why the linker looks at a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An entry of LD_LIBRARY_PATH, by its index.
    LibraryPath(usize),
    /// An entry of the RPATH of this object.
    Rpath(Arc<[u8]>, usize),
    /// An entry of the RUNPATH of this object.
    Runpath(Arc<[u8]>, usize),
    /// The path that the cache has for the library.
    Cache,
    /// A default directory, by its index.
    Default(usize),
    /// The library was asked for by a path.
    Path,
}

/// One look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// How.
    pub call: Call,
    /// The path.
    pub path: Vec<u8>,
    /// Whether something is there.
    pub found: bool,
    /// The library that is searched, as it was asked for: an index of [`Search::libraries`].
    pub library: usize,
    /// Why.
    pub cause: Cause,
}

/// All look-ups for libraries at the start of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// In order.
    pub probes: Vec<Probe>,
    /// The names that were searched for, in order.
    pub libraries: Vec<Vec<u8>>,
    /// Those that were not found: the start fails with status 127 (an LD_PRELOAD is left out).
    pub missing: Vec<Vec<u8>>,
    /// The files that were loaded, the program first.
    pub loaded: Vec<Vec<u8>>,
    /// Whether the search ended early, after [`PROBES_MAX`] look-ups.
    pub cut: bool,
}

impl Search {
    /// The look-ups that found nothing.
    pub fn misses(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| !probe.found)
    }
}

/// The look-ups at the start of a program; `None` if it is no dynamic executable.
pub fn search(
    program: &Program<'_>,
    linker: &Linker,
    cache: &Cache,
    files: &dyn Files,
) -> Option<Search> {
    let Found::Object(identity, elf) = files.at(program.path) else { return None };
    elf.interpreter.as_ref()?;
    let mut run = Run {
        linker,
        cache,
        files,
        subdirectories: linker.capabilities.subdirectories(),
        states: HashMap::new(),
        library_path: None,
        objects: Vec::new(),
        search: Search::default(),
    };
    if let Some(list) = program.library_path.filter(|list| !list.is_empty() && !program.secure) {
        let tokens = run.tokens_of(program.path);
        run.library_path = Some(
            directories(list, b":;", &tokens)
                .into_iter()
                .map(|(at, directory)| (Cause::LibraryPath(at), directory))
                .collect(),
        );
    }
    run.add(program.path, identity, Arc::clone(&elf), None, None);
    // The linker itself is loaded already.
    if let Some(interpreter) = &elf.interpreter
        && let Found::Object(identity, elf) = files.at(interpreter)
    {
        run.add(interpreter, identity, elf, None, None);
    }
    let preload = program.preload.filter(|_| !program.secure).unwrap_or_default();
    for name in preload.split(|byte| matches!(byte, b' ' | b':')).filter(|name| !name.is_empty()) {
        run.require(name, 0);
    }
    // An LD_PRELOAD that is not found is ignored.
    run.search.missing.clear();
    // Breadth first: the libraries of each object in the order in which the objects were loaded.
    let mut at = 0;
    while let Some(object) = run.objects.get(at) {
        let needed = object.elf.needed.clone();
        for name in &needed {
            run.require(name, at);
        }
        if !run.search.missing.is_empty() || run.search.cut {
            break;
        }
        at += 1;
    }
    run.search.loaded = run.objects.iter().map(|object| object.path.to_vec()).collect();
    Some(run.search)
}

/// A loaded object: `struct link_map`.
struct Object {
    path: Arc<[u8]>,
    identity: Identity,
    elf: Arc<Elf>,
    /// The names by which it was loaded.
    names: Vec<Vec<u8>>,
    /// The object that asked for it.
    loader: Option<usize>,
}

/// What is known of a sub-directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Existing,
    NonExisting,
}

struct Run<'a> {
    linker: &'a Linker,
    cache: &'a Cache,
    files: &'a dyn Files,
    subdirectories: Vec<Vec<u8>>,
    /// By directory, which all lists share; one for each sub-directory.
    states: HashMap<Vec<u8>, Vec<State>>,
    library_path: Option<Vec<(Cause, Vec<u8>)>>,
    objects: Vec<Object>,
    search: Search,
}

impl Run<'_> {
    fn add(
        &mut self,
        path: &[u8],
        identity: Identity,
        elf: Arc<Elf>,
        name: Option<&[u8]>,
        loader: Option<usize>,
    ) {
        let names = name.map(<[u8]>::to_vec).into_iter().collect();
        self.objects.push(Object { path: path.into(), identity, elf, names, loader });
    }

    fn tokens_of(&self, object: &[u8]) -> Tokens {
        let slash = object.iter().rposition(|byte| *byte == b'/');
        let origin = slash.map(|slash| object[..slash.max(1)].to_vec());
        Tokens { origin, ..self.linker.tokens.clone() }
    }

    /// Loads a library for an object, unless it is loaded already.
    fn require(&mut self, name: &[u8], loader: usize) {
        let known = self.objects.iter().any(|object| {
            object.elf.soname.as_deref() == Some(name)
                || object.names.iter().any(|other| other == name)
                || *object.path == *name
        });
        if known {
            return;
        }
        let library = self.search.libraries.len();
        self.search.libraries.push(name.to_vec());
        let found = if name.contains(&b'/') {
            let tokens = self.tokens_of(&self.objects[loader].path.clone());
            expand(name, &tokens).and_then(|path| self.open(path, library, Cause::Path))
        } else {
            self.find(name, loader, library)
        };
        match found {
            None => self.search.missing.push(name.to_vec()),
            Some((path, identity, elf)) => {
                // The same file by another name is not loaded again.
                let same = self.objects.iter_mut().find(|object| object.identity == identity);
                match same {
                    Some(object) => object.names.push(name.to_vec()),
                    None => self.add(&path, identity, elf, Some(name), Some(loader)),
                }
            }
        }
    }

    /// Searches all lists, in the order of `_dl_map_object`.
    fn find(
        &mut self,
        name: &[u8],
        loader: usize,
        library: usize,
    ) -> Option<(Vec<u8>, Identity, Arc<Elf>)> {
        if self.objects[loader].elf.runpath.is_none() {
            let mut next = Some(loader);
            let mut searched_program = false;
            while let Some(at) = next {
                searched_program |= at == 0;
                if let Some(found) = self.in_own_list(name, at, false, library) {
                    return Some(found);
                }
                next = self.objects[at].loader;
            }
            if !searched_program && let Some(found) = self.in_own_list(name, 0, false, library) {
                return Some(found);
            }
        }
        if let Some(list) = self.library_path.clone()
            && let Some(found) = self.in_list(name, &list, library)
        {
            return Some(found);
        }
        if let Some(found) = self.in_own_list(name, loader, true, library) {
            return Some(found);
        }
        if self.objects[loader].elf.no_default_directories {
            return None;
        }
        if let Some(path) = self.cache.path_of(name)
            && let Some(found) = self.open(path.to_vec(), library, Cause::Cache)
        {
            return Some(found);
        }
        let defaults = self.linker.default_directories.iter().enumerate();
        let list: Vec<_> = defaults
            .map(|(at, directory)| (Cause::Default(at), [directory, &b"/"[..]].concat()))
            .collect();
        self.in_list(name, &list, library)
    }

    /// Searches the RPATH of an object, or its RUNPATH.
    fn in_own_list(
        &mut self,
        name: &[u8],
        object: usize,
        runpath: bool,
        library: usize,
    ) -> Option<(Vec<u8>, Identity, Arc<Elf>)> {
        let Object { path, elf, .. } = &self.objects[object];
        let list = if runpath { &elf.runpath } else { &elf.rpath };
        let tokens = self.tokens_of(path);
        let cause = |at: usize| match runpath {
            true => Cause::Runpath(Arc::clone(path), at),
            false => Cause::Rpath(Arc::clone(path), at),
        };
        let list: Vec<_> = directories(list.as_deref()?, b":", &tokens)
            .into_iter()
            .map(|(at, directory)| (cause(at), directory))
            .collect();
        self.in_list(name, &list, library)
    }

    /// Tries each directory with all of its sub-directories: `open_path`.
    fn in_list(
        &mut self,
        name: &[u8],
        list: &[(Cause, Vec<u8>)],
        library: usize,
    ) -> Option<(Vec<u8>, Identity, Arc<Elf>)> {
        for (cause, directory) in list {
            // A relative directory is taken to exist.
            let first = if directory.starts_with(b"/") { State::Unknown } else { State::Existing };
            let known = self.states.get(directory).cloned();
            let mut states = known.unwrap_or_else(|| vec![first; self.subdirectories.len()]);
            let mut found = None;
            for (at, state) in states.iter_mut().enumerate() {
                if *state == State::NonExisting {
                    continue;
                }
                let inner = [&directory[..], &self.subdirectories[at]].concat();
                found = self.open([&inner[..], name].concat(), library, cause.clone());
                if *state == State::Unknown {
                    let exists = found.is_some() || self.stat(&inner, library, cause.clone());
                    *state = if exists { State::Existing } else { State::NonExisting };
                }
                if found.is_some() {
                    break;
                }
            }
            self.states.insert(directory.clone(), states);
            if found.is_some() || self.search.cut {
                return found;
            }
        }
        None
    }

    fn open(
        &mut self,
        path: Vec<u8>,
        library: usize,
        cause: Cause,
    ) -> Option<(Vec<u8>, Identity, Arc<Elf>)> {
        let at = self.files.at(&path);
        let found = at != Found::Nothing;
        self.push(Probe { call: Call::Open, path: path.clone(), found, library, cause });
        match at {
            // A library for another architecture is passed over.
            Found::Object(identity, elf) => {
                let program = &self.objects[0].elf;
                let fits = (elf.is_64, elf.machine) == (program.is_64, program.machine);
                fits.then_some((path, identity, elf))
            }
            Found::Nothing | Found::Directory | Found::Other => None,
        }
    }

    /// Whether a directory exists.
    fn stat(&mut self, directory: &[u8], library: usize, cause: Cause) -> bool {
        // The linker cuts the slash off, as the directory's name ends there.
        let path = directory[..directory.len() - 1].to_vec();
        let at = self.files.at(if path.is_empty() { b"/" } else { &path });
        let found = at != Found::Nothing;
        self.push(Probe { call: Call::Stat, path, found, library, cause });
        at == Found::Directory
    }

    fn push(&mut self, probe: Probe) {
        if self.search.probes.len() < PROBES_MAX {
            self.search.probes.push(probe);
        } else {
            self.search.cut = true;
        }
    }
}
