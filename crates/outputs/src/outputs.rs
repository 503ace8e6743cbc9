//! Files by their paths.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::directory::Directory;
use crate::error::OutputError;
use crate::named::{self, Destination};
use crate::new_file::NewFile;
use crate::policy::{Access, Outputs, Specials};

impl Outputs {
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
            Destination::Open(file) => Ok(NewFile::direct(file, path)),
            Destination::Name(directory, name) => directory.create(&name, access),
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
            Destination::Open(file) => Ok(file),
            Destination::Name(directory, name) => directory.append(&name, access, others),
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
            Destination::Name(directory, name) => directory.unnamed(&name),
            Destination::Open(_) => {
                self.directory(&std::env::temp_dir())?.unnamed("proctrace".as_ref())
            }
        }
    }
}
