//! The search of musl's dynamic linker: `load_library` and `path_open` of ldso/dynlink.c.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::files::{Found, Identity};
use crate::lookups::Lookups;
use crate::objects::Object;
use crate::search::{Cause, Search, Started};

/// Libraries that are part of libc.so, whatever follows the dot.
const RESERVED: [&[u8]; 7] =
    [b"libc.", b"libpthread.", b"librt.", b"libm.", b"libdl.", b"libutil.", b"libxnet."];
/// Directories of libraries if no file names others.
const SYSTEM_PATH: &[u8] = b"/lib:/usr/local/lib:/usr/lib";
/// The size of the buffer for a path with its NUL: longer ones are passed over.
const BUFFER: usize = 512;
/// Maximum length of a library's name.
const NAME_MAX: usize = 255;

/// Returns whether an interpreter is musl's: its name is ld-musl-$ARCH.so.1.
pub(crate) fn is_musl(interpreter: &[u8]) -> bool {
    file_name(interpreter).starts_with(b"ld-musl-")
}

/// The look-ups at the start of a program.
pub(crate) fn search(started: Started<'_>, lookups: Lookups<'_>) -> Search {
    let Started { program, elf, interpreter, linker: (linker, _), after } = started;
    let mut run = Run {
        interpreter,
        linker,
        has_linker: false,
        secure: program.secure,
        library_path: program
            .library_path
            .filter(|_| !program.secure)
            .map(|list| entries(list, Cause::LibraryPath)),
        system_path: None,
        own_lists: HashMap::new(),
        objects: vec![Object::new(program.path, elf, None)],
        names: HashSet::new(),
        identities: HashMap::new(),
        lookups,
    };
    // `load_preload`: what is not found is ignored. The separators are those of isspace(3) and colons.
    let preload = program.preload.filter(|_| !program.secure).unwrap_or_default();
    for name in preload.split(|byte| matches!(byte, b'\t'..=b'\r' | b' ' | b':')) {
        run.require(name, None);
    }
    run.require_all(0);
    if run.lookups.search.missing.is_empty() {
        for name in after.opened() {
            let first = run.objects.len();
            run.require(name, Some(0));
            run.require_all(first);
            run.lookups.search.missing.clear();
        }
    }
    let mut search = run.lookups.search;
    search.loaded = run.objects.iter().map(|object| object.path.to_vec()).collect();
    if run.has_linker {
        search.loaded.push(interpreter.to_vec());
    }
    search
}

/// The directories of a list, with their causes.
type List = Arc<[(Cause, Vec<u8>)]>;

/// Result of the search through a list.
enum Listed {
    Found(Vec<u8>, Found),
    Nothing,
    /// An error other than those that mean that the file does not exist: no further list is tried.
    Error,
}

struct Run<'a> {
    interpreter: &'a [u8],
    /// The file of the interpreter, which is libc.so as well.
    linker: Identity,
    has_linker: bool,
    secure: bool,
    library_path: Option<List>,
    system_path: Option<List>,
    own_lists: HashMap<usize, Option<List>>,
    /// Without the linker.
    objects: Vec<Object>,
    /// Names of files that were found by a search: `shortname`.
    names: HashSet<Vec<u8>>,
    /// All but the program, which is loaded once more if a library asks for it.
    identities: HashMap<Identity, usize>,
    lookups: Lookups<'a>,
}

impl Run<'_> {
    /// Breadth first. A missing library ends nothing: the start fails once all were searched.
    fn require_all(&mut self, first: usize) {
        let mut at = first;
        while let Some(object) = self.objects.get(at).filter(|_| !self.lookups.search.cut) {
            let elf = Arc::clone(&object.elf);
            for name in &elf.needed {
                if self.require(name, Some(at)).is_none() && !self.lookups.search.cut {
                    self.lookups.search.missing.push(name.clone());
                }
            }
            at += 1;
        }
    }

    /// Loads a library for an object, unless it is loaded already; `None` if there is none.
    fn require(&mut self, name: &[u8], loader: Option<usize>) -> Option<()> {
        self.lookups.request()?;
        let is_reserved = RESERVED.iter().any(|reserved| name.starts_with(reserved));
        if is_reserved || name == self.interpreter {
            self.has_linker = true;
            return Some(());
        }
        if name.is_empty() || self.names.contains(name) {
            return (!name.is_empty()).then_some(());
        }
        let is_path = name.contains(&b'/');
        if !is_path && name.len() > NAME_MAX {
            return None;
        }
        let library = self.lookups.library(name);
        let (path, found) = if is_path {
            (name.to_vec(), self.lookups.open(name, library, &Cause::Path))
        } else {
            self.find(name, loader, library)?
        };
        // The first file that can be opened is loaded, or the library is missing.
        let Found::Object(identity, elf) = found else { return None };
        if identity == self.linker {
            self.has_linker = true;
            return Some(());
        }
        if let Some(known) = self.identities.get(&identity) {
            // Not by this name, but by that of the file as it was loaded.
            if !is_path && let Some(object) = self.objects.get(*known) {
                self.names.insert(file_name(&object.path).to_vec());
            }
            return Some(());
        }
        // The machine is not compared; the header of a file for 32 bits makes no sense as the other.
        if !elf.is_dynamic || elf.is_64 != self.objects.first()?.elf.is_64 {
            return None;
        }
        if !is_path {
            self.names.insert(name.to_vec());
        }
        self.identities.insert(identity, self.objects.len());
        self.objects.push(Object::new(&path, elf, loader));
        Some(())
    }

    /// Searches all lists, in the order of `load_library`.
    fn find(
        &mut self,
        name: &[u8],
        loader: Option<usize>,
        library: usize,
    ) -> Option<(Vec<u8>, Found)> {
        if let Some(list) = self.library_path.clone() {
            match self.in_list(name, &list, library) {
                Listed::Found(path, found) => return Some((path, found)),
                Listed::Error => return None,
                Listed::Nothing => {}
            }
        }
        let mut next = loader;
        while let Some(at) = next {
            if let Some(list) = self.own_list(at) {
                match self.in_list(name, &list, library) {
                    Listed::Found(path, found) => return Some((path, found)),
                    Listed::Error => return None,
                    Listed::Nothing => {}
                }
            }
            next = self.objects.get(at)?.loader;
        }
        let list = match self.system_path.clone() {
            Some(list) => list,
            None => self.read_system_path(library),
        };
        match self.in_list(name, &list, library) {
            Listed::Found(path, found) => Some((path, found)),
            Listed::Nothing | Listed::Error => None,
        }
    }

    /// Tries each directory: `path_open`.
    fn in_list(&mut self, name: &[u8], list: &[(Cause, Vec<u8>)], library: usize) -> Listed {
        for (cause, directory) in list {
            if self.lookups.search.cut {
                return Listed::Error;
            }
            let path = [&directory[..], b"/", name].concat();
            if path.len() >= BUFFER {
                continue;
            }
            match self.lookups.open(&path, library, cause) {
                Found::Nothing | Found::Unreachable => {}
                Found::Circle => return Listed::Error,
                found => return Listed::Found(path, found),
            }
        }
        Listed::Nothing
    }

    /// The directories of the system, which a file names: <prefix>/etc/ld-musl-$ARCH.path for an
    /// interpreter <prefix>/lib/ld-musl-$ARCH.so.1. It is opened when it is first needed.
    fn read_system_path(&mut self, library: usize) -> List {
        let file = path_file(self.interpreter);
        let list = match self.lookups.open(&file, library, &Cause::PathFile) {
            Found::Nothing => SYSTEM_PATH.to_vec(),
            Found::Unreachable | Found::Circle => Vec::new(),
            _ => {
                let text = self.lookups.files().bytes(&self.lookups.absolute(&file));
                text.unwrap_or_default()
            }
        };
        // It is read as a string of C.
        let end = list.iter().position(|byte| *byte == 0).unwrap_or(list.len());
        let list = entries(&list[..end], Cause::Default);
        self.system_path = Some(Arc::clone(&list));
        list
    }

    /// The RPATH or RUNPATH of an object, which are the same to musl: `fixup_rpath`.
    fn own_list(&mut self, object: usize) -> Option<List> {
        if let Some(known) = self.own_lists.get(&object) {
            return known.clone();
        }
        let Object { path, elf, .. } = self.objects.get(object)?;
        let text = elf.runpath.as_deref().or(elf.rpath.as_deref());
        let list = text.and_then(|text| self.expand(text, object, path)).map(|text| {
            let is_runpath = elf.runpath.is_some();
            entries(&text, |at| match is_runpath {
                true => Cause::Runpath(Arc::clone(path), at),
                false => Cause::Rpath(Arc::clone(path), at),
            })
        });
        let charged = list.iter().flat_map(|list| list.iter());
        self.lookups.charge(charged.map(|(_, directory)| directory.len() + 64).sum());
        self.own_lists.insert(object, list.clone());
        list
    }

    /// A list with $ORIGIN replaced; `None` if it is not known, or if there is another dollar sign.
    fn expand(&self, list: &[u8], object: usize, path: &[u8]) -> Option<Vec<u8>> {
        if !list.contains(&b'$') {
            return Some(list.to_vec());
        }
        let path = match object {
            // Who starts a secure program may have linked it to another directory.
            0 if self.secure => return None,
            0 => {
                let real = self.lookups.files().executable(&self.lookups.absolute(path))?;
                // readlink(2) into the buffer.
                (real.len() < BUFFER).then_some(real)?
            }
            _ => path.to_vec(),
        };
        let origin = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => &path[..slash],
            None => b".",
        };
        if self.secure && !path.starts_with(b"/") {
            return None;
        }
        let mut parts = list.split(|byte| *byte == b'$');
        let mut expanded = parts.next().unwrap_or_default().to_vec();
        for part in parts {
            let rest = part.strip_prefix(b"ORIGIN").or_else(|| part.strip_prefix(b"{ORIGIN}"))?;
            expanded.extend_from_slice(origin);
            expanded.extend_from_slice(rest);
        }
        Some(expanded)
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// The file that names the directories of the system.
fn path_file(interpreter: &[u8]) -> Vec<u8> {
    let mut slashes = interpreter.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let prefix = match (interpreter.first(), slashes.nth(1)) {
        (Some(b'/'), Some((end, _))) => &interpreter[..end],
        _ => b"",
    };
    let name = file_name(interpreter);
    let end = name.windows(4).position(|window| window == b".so.").unwrap_or(name.len());
    [prefix, b"/etc/", &name[..end], b".path"].concat()
}

/// The entries of a list, with the index of each. Empty ones are passed over.
fn entries(list: &[u8], cause: impl Fn(usize) -> Cause) -> List {
    let all = list.split(|byte| matches!(byte, b':' | b'\n')).enumerate();
    let named = all.filter(|(_, entry)| !entry.is_empty());
    named.map(|(at, entry)| (cause(at), entry.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_have_a_prefix() {
        for (interpreter, file) in [
            ("/lib/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path"),
            ("/opt/musl/lib/ld-musl-aarch64.so.1", "/opt/musl/etc/ld-musl-aarch64.path"),
            ("/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path"),
            ("lib/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path"),
        ] {
            assert!(is_musl(interpreter.as_bytes()));
            assert_eq!(path_file(interpreter.as_bytes()), file.as_bytes(), "{interpreter}");
        }
        assert!(!is_musl(b"/lib/ld-musl-x86_64/ld-linux-x86-64.so.2"));
    }

    #[test]
    fn lists_have_no_empty_entries() {
        let list = entries(b":/a\n\n/b/::$ORIGIN", Cause::Default);
        let list: Vec<_> = list.iter().map(|(cause, entry)| (cause.clone(), &entry[..])).collect();
        assert_eq!(
            list,
            [
                (Cause::Default(1), &b"/a"[..]),
                (Cause::Default(3), b"/b/"),
                (Cause::Default(5), b"$ORIGIN")
            ]
        );
    }
}
