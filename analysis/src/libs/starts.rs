//! The starts of programs, each with the look-ups that the dynamic linker is expected to make.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use proctrace_libsearch::{Call, Cause, Linker, Program, Search, search};
use proctrace_replay::Exec;
use proctrace_wire::layout::{EXEC_ENV_CUT, EXEC_PATH_CUT, EXEC_WITHHELD};

use crate::libs::System;

/// Maximum number of different starts that are modelled; a job has some dozens.
const KINDS_MAX: usize = 2000;

/// Starts that would search for the same libraries in the same places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    exe: Vec<u8>,
    library_path: Option<Vec<u8>>,
    preload: Option<Vec<u8>>,
}

/// A look-up that is expected to fail.
#[derive(Debug)]
pub(crate) struct ExpectedMiss {
    pub(crate) cause: Cause,
    /// How often in one start.
    pub(crate) times: u32,
}

/// A modelled start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) kind: Kind,
    pub(crate) library_path: Option<Vec<u8>>,
    pub(crate) search: Search,
    pub(crate) misses: Vec<ExpectedMiss>,
    /// Where a look-up is in `misses`.
    pub(crate) index: HashMap<(Call, Vec<u8>), usize>,
}

/// All starts of a recording.
pub(crate) struct Starts<'a> {
    system: System<'a>,
    /// `None` for those that cannot be modelled; with their number.
    known: HashMap<Kind, (Option<Arc<Start>>, u64)>,
}

impl<'a> Starts<'a> {
    pub(crate) fn new(system: System<'a>) -> Self {
        Self { system, known: HashMap::new() }
    }

    pub(crate) fn linker(&self) -> &'a Linker {
        self.system.linker
    }

    pub(crate) fn system(&self) -> System<'a> {
        self.system
    }

    /// The model of a start; `None` without the files, or if not enough was recorded.
    pub(crate) fn of(&mut self, exec: &Exec) -> Option<Arc<Start>> {
        if exec.record.bits & (EXEC_PATH_CUT | EXEC_ENV_CUT | EXEC_WITHHELD) != 0 {
            return None;
        }
        let environment = exec.environment.as_ref()?;
        let variable = |name: &[u8]| {
            let found = environment.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let kind = Kind {
            exe: exec.exe.clone(),
            library_path: variable(b"LD_LIBRARY_PATH"),
            preload: variable(b"LD_PRELOAD"),
        };
        if self.known.len() >= KINDS_MAX && !self.known.contains_key(&kind) {
            return None;
        }
        let (start, times) = match self.known.entry(kind) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let kind = entry.key().clone();
                let start = model(kind, self.system).map(Arc::new);
                entry.insert((start, 0))
            }
        };
        *times += 1;
        start.clone()
    }

    /// Each kind of start, with the number of its starts.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Start, u64)> {
        self.known.values().filter_map(|(start, times)| Some((start.as_deref()?, *times)))
    }
}

/// The search of a start; `None` if it would fail, which it did not: files have gone since then.
pub(crate) fn searched(
    kind: &Kind,
    library_path: Option<&[u8]>,
    system: System<'_>,
) -> Option<Search> {
    let program = Program {
        path: &kind.exe,
        cwd: b"/",
        library_path,
        preload: kind.preload.as_deref(),
        secure: false,
    };
    let search = search(&program, system.linker, system.cache, system.files).ok()?;
    (search.missing.is_empty() && !search.cut).then_some(search)
}

fn model(kind: Kind, system: System<'_>) -> Option<Start> {
    let search = searched(&kind, kind.library_path.as_deref(), system)?;
    let (mut misses, mut index) = (Vec::new(), HashMap::new());
    for probe in search.misses() {
        let at = *index.entry((probe.call, probe.path.clone())).or_insert_with(|| {
            misses.push(ExpectedMiss { cause: probe.cause.clone(), times: 0 });
            misses.len() - 1
        });
        misses[at].times += 1;
    }
    Some(Start { library_path: kind.library_path.clone(), kind, search, misses, index })
}
