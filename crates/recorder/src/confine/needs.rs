//! Needs of each of the commands here: what it reads, writes and starts, by its arguments.

use std::path::{Path, PathBuf};

use crate::args::{CheckArgs, DumpArgs, TopArgs};

/// Needs of a command beyond those that all have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files and directories.
    pub reads: Vec<PathBuf>,
    /// True if what it reads cannot be told from the arguments.
    pub reads_all: bool,
    /// Files that are written.
    pub files: Vec<PathBuf>,
    /// Directories that are created or filled.
    pub trees: Vec<PathBuf>,
    /// Programs that are run.
    pub executes: Vec<PathBuf>,
    /// Terminals on which it shows something.
    pub terminals: Vec<PathBuf>,
}

impl Needs {
    /// Needs of a command that reads one file.
    pub fn reading(path: &Path) -> Self {
        Self { reads: vec![path.to_owned()], ..Self::default() }
    }

    /// Needs of a command that fills a directory.
    pub fn filling(directory: &Path) -> Self {
        Self { trees: vec![directory.to_owned()], ..Self::default() }
    }

    /// Needs of `dump`.
    pub fn of_dump(args: &DumpArgs) -> Self {
        Self::reading(&args.trace)
    }

    /// Needs of `check`.
    pub fn of_check(args: &CheckArgs) -> Self {
        Self::reading(&args.trace)
    }

    /// Needs of `top`.
    pub fn of_top(args: &TopArgs) -> Self {
        // Without a name, all in the current directory are looked at.
        let mut needs = Self::reading(args.trace.as_deref().unwrap_or(Path::new(".")));
        needs.terminals.extend(["/dev/tty", "/dev/pts", "/dev/console"].map(PathBuf::from));
        needs
    }
}
