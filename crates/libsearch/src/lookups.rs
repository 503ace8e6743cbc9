//! The look-ups of one search: asks what is at a path, and keeps the answers within bounds.

use crate::files::{Files, Found};
use crate::search::{Cause, LinkerCall, PROBES_MAX, Probe, Search};

/// Memory for paths and lists that one search may take; 300,000 look-ups of common paths need a third.
const BYTES_MAX: usize = 128 << 20;
/// Maximum number of names that the objects of one search ask for; 1,000 libraries with 300 each.
const REQUESTS_MAX: usize = 300_000;
/// Maximum length of a path with the NUL at its end: PATH_MAX of linux/limits.h.
const PATH_MAX: usize = 4096;

/// The result so far, and what is asked.
pub(crate) struct Lookups<'a> {
    files: &'a dyn Files,
    cwd: &'a [u8],
    bytes: usize,
    requests: usize,
    pub(crate) search: Search,
}

impl<'a> Lookups<'a> {
    pub(crate) fn new(files: &'a dyn Files, cwd: &'a [u8]) -> Self {
        Self { files, cwd, bytes: 0, requests: 0, search: Search::default() }
    }

    pub(crate) fn files(&self) -> &'a dyn Files {
        self.files
    }

    /// A path as seen from the root directory.
    pub(crate) fn absolute(&self, path: &[u8]) -> Vec<u8> {
        absolute(self.cwd, path)
    }

    /// The object at a path, which may be relative.
    pub(crate) fn at(&self, path: &[u8]) -> Found {
        match path.len() {
            // path_resolution(7): an empty path is no path.
            0 => Found::Nothing,
            PATH_MAX.. => Found::Unreachable,
            _ => self.files.at(&self.absolute(path)),
        }
    }

    /// A library that is asked for; `None` if there were too many.
    pub(crate) fn request(&mut self) -> Option<()> {
        self.requests += 1;
        self.search.cut |= self.requests > REQUESTS_MAX;
        (!self.search.cut).then_some(())
    }

    /// A library that is searched: its index.
    pub(crate) fn library(&mut self, name: &[u8]) -> usize {
        self.charge(name.len());
        self.search.libraries.push(name.to_vec());
        self.search.libraries.len() - 1
    }

    pub(crate) fn open(&mut self, path: &[u8], library: usize, cause: &Cause) -> Found {
        let at = self.at(path);
        self.push(LinkerCall::Open, path, at.exists(), library, cause);
        at
    }

    /// Looks the path up by stat(2), and returns whether a directory is there.
    pub(crate) fn stat(&mut self, path: &[u8], library: usize, cause: &Cause) -> bool {
        let at = self.at(path);
        self.push(LinkerCall::Stat, path, at.exists(), library, cause);
        at == Found::Directory
    }

    fn push(&mut self, call: LinkerCall, path: &[u8], found: bool, library: usize, cause: &Cause) {
        self.charge(path.len());
        if self.search.probes.len() < PROBES_MAX && !self.search.cut {
            let (path, cause) = (path.to_vec(), cause.clone());
            self.search.probes.push(Probe { call, path, found, library, cause });
        } else {
            self.search.cut = true;
        }
    }

    /// Notes that memory is taken; too much ends the search.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.search.cut |= self.bytes > BYTES_MAX;
    }
}

/// A path as seen from the root directory by a process with this working directory.
pub(crate) fn absolute(cwd: &[u8], path: &[u8]) -> Vec<u8> {
    match path {
        [b'/', ..] => path.to_vec(),
        _ if cwd.ends_with(b"/") => [cwd, path].concat(),
        _ => [cwd, b"/", path].concat(),
    }
}
