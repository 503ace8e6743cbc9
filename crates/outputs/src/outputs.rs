//! For whom files are written, and whose files they may replace.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::directory::Directory;
use crate::error::OutputError;
use crate::named::{self, Place};
use crate::new_file::NewFile;

/// A user, as the owner of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Mode 0600.
    Owner,
    /// Mode 0666 without what the umask says.
    Umask,
    /// This mode, whatever the umask says.
    Mode(u32),
}

/// Whether a name may be that of something else than a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// A user has given the name on the command line: character devices, and FIFOs of this user, are written to.
    Asked,
    /// The name follows from others.
    Refused,
}

/// For whom this process writes files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// The effective user.
    pub(crate) uid: u32,
    /// Who gets the files, if not the effective user.
    pub(crate) owner: Option<Owner>,
    /// Other users whose files and links root accepts.
    trusted: Vec<u32>,
}

impl Outputs {
    /// Files of the effective user.
    pub fn of_this_process() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), owner: None, trusted: Vec::new() }
    }

    /// Files are given to this user, whose files may be replaced. Only root can do that.
    #[must_use]
    pub fn owned_by(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self.trusting(owner.uid) }
    }

    /// Files and links of this user are treated as root's own: the one who called sudo, who could have root write
    /// anything anyway.
    #[must_use]
    pub fn trusting(mut self, uid: u32) -> Self {
        self.trusted.push(uid);
        self
    }

    /// Whether rules for root apply: others can write no more than what is theirs.
    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether a file, link or directory of this user is as good as an own one.
    pub fn trusts(&self, uid: u32) -> bool {
        uid == 0 || uid == self.uid || self.trusted.contains(&uid)
    }

    /// Begins a file: it gets its name with [`NewFile::commit`]. A character device or FIFO is opened, if `specials`
    /// says so, and written to directly.
    ///
    /// # Errors
    /// If it cannot be created, or if something has the name that this user must not replace.
    pub fn create(
        &self,
        path: &Path,
        access: Access,
        specials: Specials,
    ) -> Result<NewFile, OutputError> {
        match named::find(self, path, specials)? {
            Place::Open(file) => Ok(NewFile::direct(file, path)),
            Place::Name(directory, name) => directory.create(&name, access),
        }
    }

    /// Writes a whole file.
    ///
    /// # Errors
    /// As [`Self::create`]; nothing is left of it then.
    pub fn write(
        &self,
        path: &Path,
        access: Access,
        specials: Specials,
        bytes: &[u8],
    ) -> Result<(), OutputError> {
        let mut file = self.create(path, access, specials)?;
        file.write_all(bytes)?;
        file.commit()?;
        Ok(())
    }

    /// Opens a file to add to its end, where others have their part of it, or creates it. Root adds to files of
    /// other users only if `others` says so.
    ///
    /// # Errors
    /// If it is no file, or one that this user must not write to.
    pub fn append(&self, path: &Path, access: Access, others: bool) -> Result<File, OutputError> {
        match named::find_any(self, path, Specials::Asked, others)? {
            Place::Open(file) => Ok(file),
            Place::Name(directory, name) => directory.append(&name, access, others),
        }
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// If it does not exist; for root, if a link of another user leads there.
    pub fn directory(&self, path: &Path) -> Result<Directory, OutputError> {
        Directory::walk(self, path, None)
    }

    /// Opens a directory, and creates it and those above it if they do not exist: for their owner only, or as the
    /// umask says.
    ///
    /// # Errors
    /// As [`Self::directory`].
    pub fn create_directory(&self, path: &Path, access: Access) -> Result<Directory, OutputError> {
        Directory::walk(self, path, Some(access))
    }

    /// A file without a name, in the directory where `path` is to be: there is room for large ones.
    ///
    /// # Errors
    /// If none can be created.
    pub fn unnamed_beside(&self, path: &Path) -> Result<File, OutputError> {
        match named::find(self, path, Specials::Asked)? {
            Place::Name(directory, name) => directory.unnamed(&name),
            Place::Open(_) => self.directory(&std::env::temp_dir())?.unnamed("proctrace".as_ref()),
        }
    }
}
