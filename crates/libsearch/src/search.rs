//! Questions that a search is asked, and its answers.

use std::sync::Arc;

use thiserror::Error;

use crate::elf::Elf;
use crate::files::Identity;

/// Maximum number of look-ups of a search, which ends then: 300 directories for 1,000 libraries.
pub const PROBES_MAX: usize = 300_000;

/// A program to start.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its file, as given to execve(2).
    pub path: &'a [u8],
    /// The working directory: absolute, as the process sees it.
    pub cwd: &'a [u8],
    /// LD_LIBRARY_PATH, if set.
    pub library_path: Option<&'a [u8]>,
    /// LD_PRELOAD, if set.
    pub preload: Option<&'a [u8]>,
    /// True if the start is secure (AT_SECURE), as those of set-user-ID programs are: LD_LIBRARY_PATH is ignored, and
    /// so is most of LD_PRELOAD.
    pub secure: bool,
}

/// Call by which the linker looks at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkerCall {
    /// openat(2): is this the library?
    Open,
    /// stat(2): does this directory exist?
    Stat,
}

/// Reason why the linker looks at a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An entry of LD_LIBRARY_PATH, by its index.
    LibraryPath(usize),
    /// An entry of the RPATH of this object.
    Rpath(Arc<[u8]>, usize),
    /// An entry of the RUNPATH of this object.
    Runpath(Arc<[u8]>, usize),
    /// The path that the cache has for the library.
    Cache,
    /// A default directory, by its index.
    Default(usize),
    /// The library was asked for by a path.
    Path,
    /// musl's file of default directories, which is opened when they are first searched.
    PathFile,
}

/// One look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The call.
    pub call: LinkerCall,
    /// The path as the linker passes it: relative paths stay relative.
    pub path: Vec<u8>,
    /// True if something is there.
    pub found: bool,
    /// The library that is searched, as it was asked for: an index of [`Search::libraries`].
    pub library: usize,
    /// The reason.
    pub cause: Cause,
}

/// All look-ups for libraries at the start of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// The dynamic linker; `None` for static executables, whose start looks nothing up.
    pub interpreter: Option<Vec<u8>>,
    /// In order.
    pub probes: Vec<Probe>,
    /// The names that were searched for, in order.
    pub libraries: Vec<Vec<u8>>,
    /// Those that were not found, or are no libraries: the start fails (an LD_PRELOAD is left out).
    pub missing: Vec<Vec<u8>>,
    /// The files that were loaded, the program first; the linker itself is among them.
    pub loaded: Vec<Vec<u8>>,
    /// True if the search ended early, after [`PROBES_MAX`] look-ups, or as it took too much memory.
    pub cut: bool,
}

impl Search {
    /// The look-ups that found nothing.
    pub fn misses(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| !probe.found)
    }
}

/// Reason why a start cannot be modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unmodelled {
    /// The program or its dynamic linker does not exist or cannot be read.
    #[error("the program or its dynamic linker is missing")]
    Missing,
    /// It is no ELF file, or a damaged one. That of a `#!` script is searched for its interpreter.
    #[error("not an ELF file")]
    Foreign,
    /// It is a library or the dynamic linker itself, as in `ld.so --library-path /opt PROGRAM`: what it
    /// loads depends on its arguments.
    #[error("a dynamic linker that is run as a program")]
    Linker,
}

/// Condition for a search to go on although the start has ended.
#[derive(Clone, Copy)]
pub(crate) enum After<'a> {
    Nothing,
    /// After a missing library.
    Missing,
    /// With what the program opens with dlopen(3).
    Start(&'a [Vec<u8>]),
}

impl<'a> After<'a> {
    /// Libraries that the program opens with dlopen(3).
    pub(crate) fn opened(self) -> &'a [Vec<u8>] {
        match self {
            Self::Start(later) => later,
            Self::Nothing | Self::Missing => &[],
        }
    }
}

/// Objects that the kernel has loaded before the dynamic linker begins.
pub(crate) struct Started<'a> {
    pub(crate) program: &'a Program<'a>,
    pub(crate) elf: Arc<Elf>,
    pub(crate) interpreter: &'a [u8],
    pub(crate) linker: (Identity, Arc<Elf>),
    pub(crate) after: After<'a>,
}
