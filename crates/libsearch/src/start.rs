//! The search itself: from a program to the paths that its start looks up.

use crate::cache::Cache;
use crate::capabilities::Linker;
use crate::files::{Files, Found};
use crate::lookups::Lookups;
use crate::search::{After, Program, Search, Started, Unmodelled};
use crate::{glibc, musl};

/// The look-ups at the start of a program.
///
/// A program whose interpreter is called `ld-musl-*` is searched as musl does it, without `linker` and
/// `cache`; any other as glibc does it. That of a static executable is known as well: it has neither an
/// interpreter nor look-ups.
///
/// # Errors
/// If the program is not there, no ELF file, or a dynamic linker itself.
pub fn search(
    program: &Program<'_>,
    linker: &Linker,
    cache: &Cache,
    files: &dyn Files,
) -> Result<Search, Unmodelled> {
    search_with(program, After::Nothing, linker, cache, files)
}

/// The look-ups at the start of a program that would not end it at the first missing library: what else
/// it would load once that library is there.
///
/// # Errors
/// As [`search`].
pub fn search_on(
    program: &Program<'_>,
    linker: &Linker,
    cache: &Cache,
    files: &dyn Files,
) -> Result<Search, Unmodelled> {
    search_with(program, After::Missing, linker, cache, files)
}

/// The look-ups at the start of a program, and after them those for libraries that the program opens with
/// dlopen(3), which do not have to be found.
///
/// # Errors
/// As [`search`].
pub fn search_later(
    program: &Program<'_>,
    later: &[Vec<u8>],
    linker: &Linker,
    cache: &Cache,
    files: &dyn Files,
) -> Result<Search, Unmodelled> {
    search_with(program, After::Start(later), linker, cache, files)
}

fn search_with(
    program: &Program<'_>,
    after: After<'_>,
    linker: &Linker,
    cache: &Cache,
    files: &dyn Files,
) -> Result<Search, Unmodelled> {
    let lookups = Lookups::new(files, program.cwd);
    let elf = match lookups.at(program.path) {
        Found::Object(_, elf) => elf,
        Found::Other => return Err(Unmodelled::Foreign),
        _ => return Err(Unmodelled::Missing),
    };
    let Some(interpreter) = elf.interpreter.clone() else {
        // A dynamic linker has no interpreter either, but is no executable.
        let loaded = vec![program.path.to_vec()];
        let search = Search { loaded, ..Search::default() };
        return elf.is_executable.then_some(search).ok_or(Unmodelled::Linker);
    };
    let Found::Object(identity, linker_elf) = lookups.at(&interpreter) else {
        return Err(Unmodelled::Missing);
    };
    let started =
        Started { program, elf, interpreter: &interpreter, linker: (identity, linker_elf), after };
    let mut search = if musl::is_musl(&interpreter) {
        musl::search(started, lookups)
    } else {
        glibc::search(started, linker, cache, lookups)
    };
    search.interpreter = Some(interpreter);
    Ok(search)
}
