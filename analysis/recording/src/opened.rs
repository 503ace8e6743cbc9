//! Files that were opened: by whom, how often, and for what.

/// `O_ACCMODE` and its values in open(2), and others; the same on x86-64 and arm64.
const ACCESS_MODE: u32 = 3;
const WRITE_ONLY: u32 = 1;
const READ_WRITE: u32 = 2;
const CREATE: u32 = 0o100;
const EXCLUSIVE: u32 = 0o200;
const TRUNCATE: u32 = 0o1000;

/// True if nothing of an earlier file is left by an open with these flags.
pub(crate) fn makes_anew(flags: u32) -> bool {
    flags & TRUNCATE != 0 || flags & CREATE != 0 && flags & EXCLUSIVE != 0
}

/// True if such an open makes a file that is not there.
pub(crate) fn may_make(flags: u32) -> bool {
    flags & CREATE != 0
}

/// `O_DIRECTORY` in open(2), by machine.
fn directory_flag(machine: &str) -> u32 {
    if machine.starts_with("aarch64") { 0o40_000 } else { 0o200_000 }
}

/// Access modes of the opens of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    pub read: bool,
    pub write: bool,
    /// True if it was opened as a directory.
    pub directory: bool,
}

impl Modes {
    /// Access mode from the flags of an open on this machine.
    pub(crate) fn of_flags(flags: u32, machine: &str) -> Self {
        let mode = flags & ACCESS_MODE;
        Self {
            read: mode != WRITE_ONLY,
            write: matches!(mode, WRITE_ONLY | READ_WRITE),
            directory: flags & directory_flag(machine) != 0,
        }
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            read: self.read || other.read,
            write: self.write || other.write,
            directory: self.directory || other.directory,
        }
    }
}

/// A process's opens of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileUse {
    /// Its position in [`OpenedFiles::paths`].
    pub file: u32,
    /// Its position in the processes of the recording.
    pub process: u32,
    pub opens: u32,
    pub modes: Modes,
    /// Time of the first of these opens; `last_ns` is that of the last.
    pub first_ns: u64,
    pub last_ns: u64,
}

/// A process that wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// Its position in the processes of the recording.
    pub process: u32,
    /// When it first did so.
    pub time_ns: u64,
}

/// A file that got another name, because it was renamed or a directory above it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMove {
    /// Position of its name before in [`OpenedFiles::paths`].
    pub from: u32,
    /// The same of its name since.
    pub to: u32,
    /// Position of the process that renamed it.
    pub process: u32,
    pub time_ns: u64,
    /// Who wrote what has the new name: under the name before, or one before that. Only the first of many.
    pub writers: Vec<Writer>,
}

/// A file that has another size since: it was written, renamed or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSize {
    /// Position of its name in [`OpenedFiles::paths`].
    pub file: u32,
    /// Position of the process that wrote it last, not of one that only renames or removes it.
    pub process: u32,
    pub time_ns: u64,
    /// What is under this name now; 0 if nothing is.
    pub bytes: u64,
}

/// All opened files.
#[derive(Debug, Default)]
pub struct OpenedFiles {
    pub paths: Vec<Vec<u8>>,
    /// Uses by file, then by process.
    pub uses: Vec<FileUse>,
    /// Opens, including those of files that are not told apart.
    pub opens: u64,
    /// Renames, in the order in which they happened: those whose paths are known, up to a number.
    pub moves: Vec<FileMove>,
    /// Names that were free at the end because the file got another one: positions in `paths`, in ascending order.
    pub left: Vec<u32>,
    /// When what a process wrote under a name got another name, unless it wrote that one again: by position in `paths`, then
    /// by process.
    pub(crate) gone: Vec<(u32, u32, u64)>,
    /// Renames that are not among `moves`, or not all that is below the directory.
    pub moves_unknown: u64,
    /// Sizes of files that were written, in the order in which they changed; up to a number. Known when a descriptor was closed.
    pub sizes: Vec<FileSize>,
    /// Sizes that are not known, and renames and removals below the directory of the job that may be of files that have one
    /// under another name.
    pub sizes_unknown: u64,
    /// Opens of files whose path is not known, or beyond the number of files that are told apart.
    pub others: u64,
}

impl OpenedFiles {
    /// When what this process wrote under the name of a file, a position in `paths`, got another name; `None` if it is there,
    /// as if it wrote it again.
    pub fn moved_away_ns(&self, file: u32, process: u32) -> Option<u64> {
        let at = self.gone.binary_search_by_key(&(file, process), |gone| (gone.0, gone.1)).ok()?;
        Some(self.gone[at].2)
    }

    /// The uses of each file, with its path.
    pub fn by_file(&self) -> impl Iterator<Item = (&[u8], &[FileUse])> {
        self.uses.chunk_by(|a, b| a.file == b.file).filter_map(|uses| {
            Some((self.paths.get(uses.first()?.file as usize)?.as_slice(), uses))
        })
    }
}
