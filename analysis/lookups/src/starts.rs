//! The starts of programs, each with the look-ups that the dynamic linker is expected to make.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use proctrace_libsearch::{
    Cache, Cause, Files, Linker, LinkerCall, Program, Search, Unmodelled, search_later, search_on,
};
use proctrace_replay::Exec;
use proctrace_wire::layout::{EXEC_ENV_CUT, EXEC_PATH_CUT, EXEC_SECURE, EXEC_WITHHELD};

use crate::System;
use crate::mounts::Root;

/// Maximum number of different starts that are modelled; a job has some dozens.
const KINDS_MAX: usize = 2000;

/// Starts that would search for the same libraries in the same places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    exe: Vec<u8>,
    library_path: Option<Vec<u8>>,
    preload: Option<Vec<u8>>,
    secure: bool,
    /// "/" where no entry of a list is relative to it.
    cwd: Vec<u8>,
    /// `None` for the recorder's.
    root: Option<Arc<Root>>,
}

impl Kind {
    /// The executable.
    pub(crate) fn exe(&self) -> &[u8] {
        &self.exe
    }

    /// Returns whether the start is secure, so that LD_LIBRARY_PATH is ignored.
    pub(crate) fn is_secure(&self) -> bool {
        self.secure
    }

    /// LD_LIBRARY_PATH, unless it is empty.
    pub(crate) fn library_path(&self) -> Option<&[u8]> {
        self.library_path.as_deref()
    }

    /// The root of the process, if it is not the recorder's.
    pub(crate) fn root(&self) -> Option<&Arc<Root>> {
        self.root.as_ref()
    }
}

/// A look-up that is expected to fail.
#[derive(Debug)]
pub(crate) struct ExpectedMiss {
    pub(crate) cause: Cause,
    /// Number of times in one start.
    pub(crate) times: u32,
}

/// A modelled start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) kind: Kind,
    pub(crate) library_path: Option<Vec<u8>>,
    pub(crate) search: Search,
    pub(crate) misses: Vec<ExpectedMiss>,
    /// Index in `misses` of each look-up.
    pub(crate) index: HashMap<(LinkerCall, Vec<u8>), usize>,
}

/// Reason why a start is not modelled, for users.
type Why = &'static str;

/// All starts of a recording.
pub(crate) struct Starts<'a> {
    system: System<'a>,
    /// Modelled, or the reason why not; with their number.
    known: HashMap<Kind, (Result<Arc<Start>, Why>, u64)>,
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

    /// The model of the start of a process with this root.
    pub(crate) fn of(&mut self, exec: &Exec, root: Option<&Arc<Root>>) -> Result<Arc<Start>, Why> {
        if exec.record.bits & (EXEC_PATH_CUT | EXEC_ENV_CUT | EXEC_WITHHELD) != 0 {
            return Err("the record of the exec is incomplete");
        }
        let environment = exec.environment.as_ref().ok_or("no environment was recorded")?;
        let variable = |name: &[u8]| {
            let found = environment.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        let library_path = variable(b"LD_LIBRARY_PATH");
        let is_relative = |list: &Vec<u8>| {
            let mut entries = list.split(|byte| matches!(byte, b':' | b';' | b'\n'));
            entries.any(|entry| !entry.starts_with(b"/"))
        };
        let kind = Kind {
            exe: exec.exe.clone(),
            cwd: if library_path.as_ref().is_some_and(is_relative) {
                exec.cwd.clone()
            } else {
                b"/".to_vec()
            },
            library_path,
            preload: variable(b"LD_PRELOAD"),
            secure: exec.record.bits & EXEC_SECURE != 0,
            root: root.filter(|root| !self.system.views.is_ours(Some(&**root))).cloned(),
        };
        if self.known.len() >= KINDS_MAX && !self.known.contains_key(&kind) {
            return Err("there are too many different starts");
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

    /// The searches of starts with LD_LIBRARY_PATH that cannot be modelled, because libraries are gone, as
    /// far as they get; with the number of these starts.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = (&Kind, Search, u64)> {
        let gone = self.known.iter().filter(|(_, (start, _))| start.is_err());
        gone.filter_map(|(kind, (_, times))| {
            let list = kind.library_path()?;
            let search = search_whole(kind, Some(list), self.system).ok()?;
            (!search.missing.is_empty()).then_some((kind, search, *times))
        })
    }

    /// Each kind of start, with the number of its starts.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Start, u64)> {
        self.known.values().filter_map(|(start, times)| Some((start.as_deref().ok()?, *times)))
    }
}

/// The search of a start; `None` if it would fail, which it did not: files have gone since then.
pub(crate) fn searched(
    kind: &Kind,
    library_path: Option<&[u8]>,
    system: System<'_>,
) -> Option<Search> {
    searched_later(kind, library_path, &[], system)
}

fn model(kind: Kind, system: System<'_>) -> Result<Start, Why> {
    let search = search_all(&kind, kind.library_path.as_deref(), &[], system)?;
    if search.cut {
        return Err("its search is too long");
    }
    // The start did not fail: files have gone since then, or others have come.
    if !search.missing.is_empty() {
        return Err("libraries are gone");
    }
    let (mut misses, mut index) = (Vec::new(), HashMap::new());
    for probe in search.misses() {
        let at = *index.entry((probe.call, probe.path.clone())).or_insert_with(|| {
            misses.push(ExpectedMiss { cause: probe.cause.clone(), times: 0 });
            misses.len() - 1
        });
        misses[at].times += 1;
    }
    Ok(Start { library_path: kind.library_path.clone(), kind, search, misses, index })
}

/// The search of a start, and of what the program opens later with dlopen(3).
pub(crate) fn searched_later(
    kind: &Kind,
    library_path: Option<&[u8]>,
    later: &[Vec<u8>],
    system: System<'_>,
) -> Option<Search> {
    let search = search_all(kind, library_path, later, system).ok()?;
    (search.missing.is_empty() && !search.cut).then_some(search)
}

/// The same, also of a start that would fail; or why there is none.
fn search_all(
    kind: &Kind,
    library_path: Option<&[u8]>,
    later: &[Vec<u8>],
    system: System<'_>,
) -> Result<Search, Why> {
    let search = |program: &Program<'_>, cache: &Cache, files: &dyn Files| {
        search_later(program, later, system.linker, cache, files)
    };
    search_by(search, kind, library_path, system)
}

/// The search of a start that would fail, beyond the library that it lacks.
fn search_whole(
    kind: &Kind,
    library_path: Option<&[u8]>,
    system: System<'_>,
) -> Result<Search, Why> {
    let search = |program: &Program<'_>, cache: &Cache, files: &dyn Files| {
        search_on(program, system.linker, cache, files)
    };
    search_by(search, kind, library_path, system)
}

fn search_by(
    search: impl Fn(&Program<'_>, &Cache, &dyn Files) -> Result<Search, Unmodelled>,
    kind: &Kind,
    library_path: Option<&[u8]>,
    system: System<'_>,
) -> Result<Search, Why> {
    let program = Program {
        path: &kind.exe,
        cwd: &kind.cwd,
        library_path,
        preload: kind.preload.as_deref(),
        secure: kind.secure,
    };
    let found = match &kind.root {
        None => search(&program, system.cache, system.files),
        Some(root) => {
            let view = system.views.of(root).ok_or("its mounts were not recorded")?;
            search(&program, &view.cache, &*view.files)
        }
    };
    found.map_err(|error| match error {
        Unmodelled::Missing => "the program is gone",
        Unmodelled::Foreign => "the program is no ELF file today",
        Unmodelled::Linker => "a dynamic linker was run as a program",
    })
}
