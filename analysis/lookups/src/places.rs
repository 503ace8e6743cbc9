//! Libraries that the dynamic linker could find in the directories of LD_LIBRARY_PATH.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proctrace_libsearch::{Files, Found, Linker};

/// Maximum number of files in all directories together: each is opened, and its headers are read.
const FILES_MAX: usize = 200_000;

/// Endings of the files, besides libraries, that ROOT looks for in the directories of LD_LIBRARY_PATH.
const BESIDE_LIBRARIES: [&[u8]; 2] = [b".rootmap", b".pcm"];

/// Reasons why the files of a directory are not known, for users.
const GONE: &str = "its files are gone or cannot be listed";
const TOO_MANY: &str = "there are too many files";

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: Vec<u8>,
    /// Without symbolic links.
    pub(crate) real: Vec<u8>,
    /// The files that can be asked for by name.
    pub(crate) files: BTreeMap<Vec<u8>, Found>,
    /// Files in its sub-directories for certain CPUs, which are tried first, each with its directory.
    pub(crate) variants: BTreeMap<Vec<u8>, Vec<(Vec<u8>, Found)>>,
}

/// Architecture of an object: true if it has 64 bits, and its machine.
pub(crate) type Architecture = (bool, u16);

/// The architecture of a program or library.
pub(crate) fn architecture(file: &Found) -> Option<Architecture> {
    match file {
        Found::Object(_, elf) => Some((elf.is_64, elf.machine)),
        _ => None,
    }
}

/// State of an entry of a list.
#[derive(Debug)]
pub(crate) enum EntryState {
    /// Nothing: the linker ignores it.
    Absent,
    /// Something that is not known, and why.
    Unknown(&'static str),
    Directory(Directory),
}

/// Reads directories, each once.
pub(crate) struct Places<'a> {
    files: &'a dyn Files,
    linker: &'a Linker,
    /// Names that programs ask for.
    asked: HashSet<Vec<u8>>,
    known: BTreeMap<Vec<u8>, EntryState>,
    left: usize,
}

impl<'a> Places<'a> {
    /// `asked` are names of libraries that are found in these directories, whatever they look like.
    pub(crate) fn new(files: &'a dyn Files, linker: &'a Linker, asked: HashSet<Vec<u8>>) -> Self {
        Self { files, linker, asked, known: BTreeMap::new(), left: FILES_MAX }
    }

    /// Reads the directory at an absolute path.
    pub(crate) fn read(&mut self, path: &[u8]) {
        if !self.known.contains_key(path) {
            let place = self.place(path);
            self.known.insert(path.to_vec(), place);
        }
    }

    /// The state of a path that was read.
    pub(crate) fn get(&self, path: &[u8]) -> Option<&EntryState> {
        self.known.get(path)
    }

    fn place(&mut self, path: &[u8]) -> EntryState {
        if self.files.at(path) != Found::Directory {
            return EntryState::Absent;
        }
        let (Some(names), Some(real)) = (self.files.names(path), self.files.real(path)) else {
            return EntryState::Unknown(GONE);
        };
        let mut directory = Directory {
            path: path.to_vec(),
            real,
            files: BTreeMap::new(),
            variants: self.variants(path),
        };
        for name in names {
            if !self.is_wanted(&name) {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else { return EntryState::Unknown(TOO_MANY) };
            self.left = left;
            match self.files.at(&[path, b"/", &name].concat()) {
                // To the linker a link that leads nowhere is not there.
                Found::Nothing | Found::Directory => {}
                // But this ends a search.
                Found::Unreachable | Found::Circle => {
                    drop(directory.files.insert(name, Found::Circle))
                }
                found => drop(directory.files.insert(name, found)),
            }
        }
        EntryState::Directory(directory)
    }

    /// The files in sub-directories: those for the CPU of this machine, and for others.
    fn variants(&self, path: &[u8]) -> BTreeMap<Vec<u8>, Vec<(Vec<u8>, Found)>> {
        let hwcaps = [path, b"/glibc-hwcaps"].concat();
        let of_others = self.files.names(&hwcaps).unwrap_or_default();
        let of_others = of_others.into_iter().map(|name| [&hwcaps, &b"/"[..], &name].concat());
        let own = self.linker.capabilities.subdirectories();
        let own = own.into_iter().filter(|sub| !sub.is_empty());
        let own = own.map(|sub| [path, b"/", &sub[..sub.len() - 1]].concat());
        let mut variants: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for directory in own.chain(of_others).collect::<BTreeSet<Vec<u8>>>() {
            let names = self.files.names(&directory).unwrap_or_default();
            for name in names.into_iter().filter(|name| self.is_wanted(name)) {
                let file = self.files.at(&[&directory, &b"/"[..], &name].concat());
                variants.entry(name).or_default().push((directory.clone(), file));
            }
        }
        variants
    }

    fn is_wanted(&self, name: &[u8]) -> bool {
        name.windows(3).any(|window| window == b".so")
            || BESIDE_LIBRARIES.iter().any(|ending| name.ends_with(ending))
            || self.asked.contains(name)
    }
}
