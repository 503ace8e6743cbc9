//! Failed look-ups by cause and what would avoid them, on this machine: its dynamic linker, its cache, its mounts.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proctrace_analysis::{AnalysisError, Fixes, Machine, Recording, libs};
use proctrace_findings::Libs;
use proctrace_libsearch::{Cache, Elf, ElfError, Files, Linker, Root};
use proctrace_replay::MountTable;
use thiserror::Error;

/// Errors of modelling searches on this machine.
#[derive(Debug, Error)]
pub enum MachineError {
    /// This program is not there any more.
    #[error("cannot read our own executable")]
    Gone(#[source] io::Error),
    /// This program is not what it should be.
    #[error("cannot read our own executable")]
    Odd(#[source] ElfError),
    /// This program has no dynamic linker.
    #[error("proctrace is linked statically: which linker to ask?")]
    Static,
    /// The dynamic linker does not run.
    #[error("cannot run {}", path.display())]
    Linker {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The dynamic linker does not describe itself.
    #[error("{} --help does not name its directories: glibc 2.33 or later is needed", .0.display())]
    Silent(PathBuf),
    /// The trace cannot be read again.
    #[error("cannot read {}", path.display())]
    Trace {
        /// The trace.
        path: PathBuf,
        /// The cause.
        source: AnalysisError,
    },
}

/// The causes and remedies of a recording on this machine.
///
/// # Errors
/// If its dynamic linker does not describe itself, or the trace cannot be read again.
pub fn found_here(recording: Recording, trace: &Path) -> Result<(Libs, Fixes), MachineError> {
    let linker = linker()?;
    // A system without a cache, or with one of another C library, is searched without it.
    let cache = std::fs::read("/etc/ld.so.cache").ok();
    let cache = cache.and_then(|bytes| Cache::parse(&bytes).ok()).unwrap_or_default();
    let files = Root::new("/");
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = MountTable::parse(0, &mounts);
    let view = |mounts| -> Arc<dyn Files> { Arc::new(Root::of_mounts(mounts)) };
    let machine =
        Machine { linker: &linker, cache: &cache, files: &files, mounts: &mounts, view: &view };
    let failed = |source| MachineError::Trace { path: trace.to_owned(), source };
    libs(recording, trace, machine).map_err(failed)
}

/// The dynamic linker that this program was linked for.
///
/// # Errors
/// If it has none, or its own file cannot be read.
pub fn path_of_linker() -> Result<PathBuf, MachineError> {
    let own = File::open("/proc/self/exe").map_err(MachineError::Gone)?;
    let elf = Elf::read(own).map_err(MachineError::Odd)?;
    let path = elf.interpreter.ok_or(MachineError::Static)?;
    Ok(OsString::from_vec(path).into())
}

/// This machine's dynamic linker, which describes itself.
fn linker() -> Result<Linker, MachineError> {
    let path = path_of_linker()?;
    let failed = |source| MachineError::Linker { path: path.clone(), source };
    let output = Command::new(&path).arg("--help").output().map_err(failed)?;
    let linker = Linker::of_help(&String::from_utf8_lossy(&output.stdout));
    match linker.default_directories.is_empty() {
        true => Err(MachineError::Silent(path)),
        false => Ok(linker),
    }
}
