//! The files that a job saw: those of today, and directories that its failed look-ups show.

use std::collections::HashSet;
use std::path::Path;

use proctrace_libsearch::{Files, Found};
use proctrace_trace::Reader;
use proctrace_wire::{Call, Family};

use crate::error::AnalysisError;

/// Files with directories that have gone since the recording. The dynamic linker asks whether a directory
/// exists when it first finds no library there: if that question did not fail, it existed.
pub(crate) struct Inferred<'a> {
    today: &'a dyn Files,
    existed: HashSet<Vec<u8>>,
}

impl<'a> Inferred<'a> {
    pub(crate) fn of(trace: &Path, today: &'a dyn Files) -> Result<Self, AnalysisError> {
        let mut searched: HashSet<Vec<u8>> = HashSet::new();
        let mut missed: HashSet<Vec<u8>> = HashSet::new();
        let mut reader = Reader::open(trace)?;
        proctrace_replay::lookups(
            &mut reader,
            |miss, path| match Family::of(Call::from_number(miss.call)) {
                Some(Family::Open) if is_library(path) => {
                    if let Some(slash) = path.iter().rposition(|byte| *byte == b'/') {
                        searched.insert(path[..slash].to_vec());
                    }
                }
                Some(Family::Stat) => {
                    missed.insert(path.to_vec());
                }
                _ => {}
            },
            |_| {},
        );
        Ok(Self { today, existed: searched.difference(&missed).cloned().collect() })
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

/// Whether a path names a shared library: "libm.so", "libm.so.6".
pub(crate) fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.ends_with(b".so") || name.windows(4).any(|window| window == b".so.")
}
