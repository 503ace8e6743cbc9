//! The search of glibc's dynamic linker: `_dl_map_object` and `open_path` of elf/dl-load.c.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cache::Cache;
use crate::capabilities::Linker;
use crate::elf::Elf;
use crate::files::{Found, Identity};
use crate::list::{Tokens, Trust, directories, expand};
use crate::lookups::Lookups;
use crate::objects::{Object, Objects};
use crate::search::{After, Cause, Search, Started};

/// Maximum length of names in LD_PRELOAD, without and with a path (SECURE_NAME_LIMIT and SECURE_PATH_LIMIT of
/// elf/rtld.c).
const PRELOAD_NAME_MAX: usize = 255;
const PRELOAD_PATH_MAX: usize = 4096;

/// The look-ups at the start of a program.
pub(crate) fn search(
    started: Started<'_>,
    linker: &Linker,
    cache: &Cache,
    lookups: Lookups<'_>,
) -> Search {
    let Started { program, elf, interpreter, linker: (identity, linker_elf), after } = started;
    let mut run = Run {
        linker,
        cache,
        secure: program.secure,
        goes_on: matches!(after, After::Missing),
        subdirectories: linker.capabilities.subdirectories(),
        states: HashMap::new(),
        library_path: None,
        own_lists: HashMap::new(),
        objects: Objects::default(),
        lookups,
    };
    // The kernel has loaded both.
    run.objects.add(Object::new(program.path, elf, None), None);
    run.objects.add(Object::new(interpreter, linker_elf, None), Some(identity));
    if let Some(list) = program.library_path.filter(|list| !list.is_empty() && !program.secure) {
        run.library_path = Some(run.list(list, b":;", 0, Cause::LibraryPath));
    }
    run.preload(program.preload.unwrap_or_default());
    run.require_all(0);
    if run.lookups.search.missing.is_empty() {
        for name in after.opened() {
            let first = run.objects.len();
            run.require(name, 0, Mode::Common);
            run.require_all(first);
            run.lookups.search.missing.clear();
        }
    }
    run.lookups.search.loaded = run.objects.paths();
    run.lookups.search
}

/// Mode in which a library is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Common,
    /// By the LD_PRELOAD of a secure start: `__RTLD_SECURE`.
    Secure,
}

/// State of a sub-directory, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Existing,
    NonExisting,
}

/// Result of a look-up: `open_verify`.
enum Opened {
    Library(Loadable),
    /// Nothing there, or a library for another architecture, which is passed over.
    Nothing,
    /// Not there for another reason than ENOENT and EACCES.
    Error,
    /// A file that is no library: the start fails.
    Fatal,
}

struct Loadable {
    path: Vec<u8>,
    identity: Identity,
    elf: Arc<Elf>,
}

/// Result of the search through a list.
enum Listed {
    Library(Loadable),
    Nothing,
    Fatal,
}

type List = Arc<[(Cause, Vec<u8>)]>;

struct Run<'a> {
    linker: &'a Linker,
    cache: &'a Cache,
    secure: bool,
    /// True if the search goes on after a missing library.
    goes_on: bool,
    subdirectories: Vec<Vec<u8>>,
    /// By directory, which all lists share; one for each sub-directory.
    states: HashMap<Vec<u8>, Vec<State>>,
    library_path: Option<List>,
    /// RPATH (false) and RUNPATH (true) of objects.
    own_lists: HashMap<(usize, bool), List>,
    objects: Objects,
    lookups: Lookups<'a>,
}

impl Run<'_> {
    /// Loads what the objects from this one on need, breadth first: the libraries of each in the order in
    /// which the objects were loaded.
    fn require_all(&mut self, first: usize) {
        let mut at = first;
        while let Some(object) = self.objects.get(at) {
            let elf = Arc::clone(&object.elf);
            for name in &elf.needed {
                if self.require(name, at, Mode::Common).is_none() {
                    let search = &mut self.lookups.search;
                    search.missing.extend((!search.cut).then(|| name.clone()));
                    if !self.goes_on {
                        break;
                    }
                }
            }
            let ends = !self.lookups.search.missing.is_empty() && !self.goes_on;
            if ends || self.lookups.search.cut {
                break;
            }
            at += 1;
        }
    }

    /// `handle_preload_list` of elf/rtld.c. What is not found is ignored.
    fn preload(&mut self, list: &[u8]) {
        for name in list.split(|byte| matches!(byte, b' ' | b':')) {
            let is_valid = match self.secure {
                true => name.len() < PRELOAD_NAME_MAX && !name.contains(&b'/'),
                false => name.len() < PRELOAD_PATH_MAX,
            };
            if is_valid && !name.is_empty() {
                self.require(name, 0, if self.secure { Mode::Secure } else { Mode::Common });
            }
        }
    }

    /// The tokens of an object's lists, and which of them are trusted.
    fn tokens_of(&self, object: usize) -> (Tokens, Trust<'_>) {
        let path = self.objects.get(object).map_or(&b""[..], |object| &object.path);
        let path = self.lookups.absolute(path);
        // `_dl_get_origin` of sysdeps/unix/sysv/linux/dl-origin.c asks /proc/self/exe.
        let path = if object == 0 { self.lookups.files().executable(&path) } else { Some(path) };
        let origin = path.and_then(|path| {
            let slash = path.iter().rposition(|byte| *byte == b'/')?;
            Some(path[..slash.max(1)].to_vec())
        });
        let trust = match (self.secure, object) {
            (false, _) => Trust::All,
            (true, 0) => Trust::Below(&self.linker.default_directories),
            (true, _) => Trust::First,
        };
        (Tokens { origin, ..self.linker.tokens.clone() }, trust)
    }

    /// The directories of a list that an object has, or that holds for it.
    fn list(
        &mut self,
        list: &[u8],
        separators: &[u8],
        object: usize,
        cause: impl Fn(usize) -> Cause,
    ) -> List {
        let (tokens, trust) = self.tokens_of(object);
        let found = directories(list, separators, &tokens, trust);
        self.lookups.charge(found.iter().map(|(_, directory)| directory.len() + 64).sum());
        found.into_iter().map(|(at, directory)| (cause(at), directory)).collect()
    }

    /// Loads a library for an object, unless it is loaded already; `None` if there is none.
    fn require(&mut self, name: &[u8], loader: usize, mode: Mode) -> Option<()> {
        self.lookups.request()?;
        // An empty name is the program's: its `l_name` is empty.
        if name.is_empty() || self.objects.has(name) {
            return Some(());
        }
        let library = self.lookups.library(name);
        let found = if name.contains(&b'/') {
            let (tokens, trust) = self.tokens_of(loader);
            let path = expand(name, &tokens, trust)?;
            match self.open(path, library, &Cause::Path) {
                Opened::Library(found) => Some(found),
                _ => None,
            }
        } else {
            self.find(name, loader, library, mode)
        };
        let Loadable { path, identity, elf } = found?;
        // The same file by another name is not loaded again.
        if !self.objects.alias(identity, name) {
            let object = Object::new(&path, elf, Some(loader));
            self.objects.add_named(object, identity, name);
        }
        Some(())
    }

    /// Searches all lists, in the order of `_dl_map_object`.
    fn find(&mut self, name: &[u8], loader: usize, library: usize, mode: Mode) -> Option<Loadable> {
        let mut lists: Vec<List> = Vec::new();
        let elf = Arc::clone(&self.objects.get(loader)?.elf);
        if elf.runpath.is_none() {
            let mut next = Some(loader);
            let mut searched_program = false;
            while let Some(at) = next {
                searched_program |= at == 0;
                lists.extend(self.own_list(at, false));
                next = self.objects.get(at)?.loader;
            }
            if !searched_program {
                lists.extend(self.own_list(0, false));
            }
        }
        lists.extend(self.library_path.clone());
        lists.extend(self.own_list(loader, true));
        for list in lists {
            match self.in_list(name, &list, library, mode) {
                Listed::Library(found) => return Some(found),
                Listed::Fatal => return None,
                Listed::Nothing => {}
            }
        }
        if mode == Mode::Common
            && let Some(path) = self.cached(name, &elf)
        {
            match self.open(path, library, &Cause::Cache) {
                Opened::Library(found) => return Some(found),
                Opened::Fatal => return None,
                Opened::Nothing | Opened::Error => {}
            }
        }
        if elf.no_default_directories {
            return None;
        }
        let defaults = self.linker.default_directories.iter().enumerate();
        let list: Vec<_> = defaults
            .map(|(at, directory)| (Cause::Default(at), [directory, &b"/"[..]].concat()))
            .collect();
        match self.in_list(name, &list, library, mode) {
            Listed::Library(found) => Some(found),
            Listed::Nothing | Listed::Fatal => None,
        }
    }

    /// Path that the cache has for a library of this object.
    fn cached(&self, name: &[u8], loader: &Elf) -> Option<Vec<u8>> {
        let path = self.cache.path_of(name)?;
        let is_default = self.linker.default_directories.iter().any(|directory| {
            path.strip_prefix(&directory[..]).is_some_and(|rest| rest.starts_with(b"/"))
        });
        (!(loader.no_default_directories && is_default)).then(|| path.to_vec())
    }

    /// The RPATH of an object, or its RUNPATH.
    fn own_list(&mut self, object: usize, runpath: bool) -> Option<List> {
        let Object { path, elf, .. } = self.objects.get(object)?;
        let (path, elf) = (Arc::clone(path), Arc::clone(elf));
        let list = if runpath { elf.runpath.as_deref()? } else { elf.rpath.as_deref()? };
        // `decompose_rpath`: an empty one is none.
        if list.is_empty() {
            return None;
        }
        if let Some(known) = self.own_lists.get(&(object, runpath)) {
            return Some(Arc::clone(known));
        }
        let list = self.list(list, b":", object, |at| match runpath {
            true => Cause::Runpath(Arc::clone(&path), at),
            false => Cause::Rpath(Arc::clone(&path), at),
        });
        self.own_lists.insert((object, runpath), Arc::clone(&list));
        Some(list)
    }

    /// Tries each directory with all of its sub-directories: `open_path`.
    fn in_list(
        &mut self,
        name: &[u8],
        list: &[(Cause, Vec<u8>)],
        library: usize,
        mode: Mode,
    ) -> Listed {
        for (cause, directory) in list {
            // A relative directory is taken to exist.
            let first = if directory.starts_with(b"/") { State::Unknown } else { State::Existing };
            let known = self.states.remove(directory);
            let mut states = known.unwrap_or_else(|| vec![first; self.subdirectories.len()]);
            let ended = self.in_directory(name, directory, &mut states, (library, cause), mode);
            self.states.insert(directory.clone(), states);
            if let Some(ended) = ended {
                return ended;
            }
            if self.lookups.search.cut {
                return Listed::Fatal;
            }
        }
        Listed::Nothing
    }

    /// Tries a directory; `None` if the next one is to be tried.
    fn in_directory(
        &mut self,
        name: &[u8],
        directory: &[u8],
        states: &mut [State],
        (library, cause): (usize, &Cause),
        mode: Mode,
    ) -> Option<Listed> {
        let mut is_error = false;
        for (at, state) in states.iter_mut().enumerate() {
            if *state == State::NonExisting {
                continue;
            }
            let inner = [directory, &self.subdirectories[at]].concat();
            let opened = self.open([&inner[..], name].concat(), library, cause);
            if let Opened::Fatal = opened {
                return Some(Listed::Fatal);
            }
            if *state == State::Unknown {
                let exists = matches!(opened, Opened::Library(_))
                    // The linker cuts the slash off, and nothing is left of the root directory.
                    || self.lookups.stat(&inner[..inner.len() - 1], library, cause);
                *state = if exists { State::Existing } else { State::NonExisting };
            }
            is_error = matches!(opened, Opened::Error) && *state == State::Existing;
            // What a secure start preloads must be set-user-ID itself, which libraries are not.
            if let (Opened::Library(found), Mode::Common) = (opened, mode) {
                return Some(Listed::Library(found));
            }
        }
        // Something is wrong with a directory that exists: the rest of the list is not tried.
        is_error.then_some(Listed::Nothing)
    }

    fn open(&mut self, path: Vec<u8>, library: usize, cause: &Cause) -> Opened {
        match self.lookups.open(&path, library, cause) {
            Found::Object(identity, elf) => {
                let Some(Object { elf: program, .. }) = self.objects.get(0) else {
                    return Opened::Fatal;
                };
                if (elf.is_64, elf.machine) != (program.is_64, program.machine) {
                    Opened::Nothing
                } else if elf.is_executable || !elf.is_dynamic {
                    Opened::Fatal
                } else {
                    Opened::Library(Loadable { path, identity, elf })
                }
            }
            Found::Nothing => Opened::Nothing,
            Found::Unreachable | Found::Circle => Opened::Error,
            // "file too short", "invalid ELF header", "cannot read file data". Opening a FIFO blocks.
            Found::Directory | Found::Other => Opened::Fatal,
        }
    }
}
