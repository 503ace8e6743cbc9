//! The files that a job saw: those of today, and directories that its failed look-ups show.

use std::collections::HashSet;

use proctrace_libsearch::{Files, Found, Sought};

use proctrace_classify::names::directory;
use proctrace_recording::misses::MissedPaths;

/// Files with directories that have gone since the recording. The dynamic linker asks whether a directory
/// exists when it first finds no library there: if that question did not fail, it existed.
pub(crate) struct Inferred<'a> {
    today: &'a dyn Files,
    existed: HashSet<Vec<u8>>,
}

impl<'a> Inferred<'a> {
    pub(crate) fn of(missed: &MissedPaths, today: &'a dyn Files) -> Self {
        let paths = |sought| missed.paths.iter().filter(move |it| it.sought() == sought);
        let searched = paths(Sought::Library).map(|it| directory(&it.path).to_vec());
        let mut existed: HashSet<Vec<u8>> = searched.collect();
        for asked in paths(Sought::Existence) {
            existed.remove(&*asked.path);
        }
        Self { today, existed }
    }
}

impl Files for Inferred<'_> {
    fn at(&self, path: &[u8]) -> Found {
        match self.today.at(path) {
            Found::Nothing | Found::Unreachable if self.existed.contains(path) => Found::Directory,
            found => found,
        }
    }

    fn bytes(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.bytes(path)
    }

    fn real(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.real(path)
    }

    fn names(&self, path: &[u8]) -> Option<Vec<Vec<u8>>> {
        self.today.names(path)
    }

    fn executable(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.today.executable(path)
    }
}
