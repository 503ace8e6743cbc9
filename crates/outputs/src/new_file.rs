//! A file that does not have its name yet.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::directory::{Directory, append_only};
use crate::error::OutputError;
use crate::found::Kind;
use crate::policy::Access;

/// A file that is written. Dropping it removes it, unless it got its name.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// None for what is no file.
    place: Option<Target>,
    /// Path as it was named by the user.
    path: PathBuf,
}

#[derive(Debug)]
struct Target {
    directory: Directory,
    name: OsString,
    /// Its name until then.
    part: OsString,
    /// True if a file of this name, with contents, was there.
    has_earlier: bool,
    /// The name under which that is kept.
    keeps: Option<OsString>,
}

impl NewFile {
    pub(crate) fn direct(file: File, path: &Path) -> Self {
        Self { file, place: None, path: path.to_owned() }
    }

    pub(crate) fn beside(
        file: File,
        directory: Directory,
        name: &OsStr,
        part: OsString,
        has_earlier: bool,
    ) -> Self {
        let path = directory.path().join(name);
        let name = name.to_owned();
        Self { file, place: Some(Target { directory, name, part, has_earlier, keeps: None }), path }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Another descriptor of the open file.
    ///
    /// # Errors
    /// Without descriptors left.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Current path of the file.
    pub fn path(&self) -> PathBuf {
        match &self.place {
            Some(place) => place.directory.path().join(&place.part),
            None => self.path.clone(),
        }
    }

    /// Path at which the file will be.
    pub fn final_path(&self) -> &Path {
        &self.path
    }

    /// True if it is a file, and no device or pipe.
    pub fn is_file(&self) -> bool {
        self.place.is_some()
    }

    /// Keeps an earlier file of this name, unless it is empty, with another ending. What has that name is
    /// replaced.
    ///
    /// # Errors
    /// If that is a directory; for root, if it is not its own.
    pub fn keep_earlier(&mut self, ending: &str) -> Result<(), OutputError> {
        let Some(place) = self.place.as_mut().filter(|place| place.has_earlier) else {
            return Ok(());
        };
        let mut kept = place.name.clone();
        kept.push(ending);
        let path = || place.directory.path().join(&kept);
        match place.directory.look(&kept)? {
            Some(found) if found.kind == Kind::Directory => {
                return Err(OutputError::Unkept { path: path(), what: "directory".to_owned() });
            }
            Some(found) => place.directory.replaceable(&kept).map(drop).map_err(|error| {
                let uid = found.uid;
                match error {
                    OutputError::Io(error) => OutputError::Io(error),
                    _ => OutputError::Unkept {
                        path: path(),
                        what: format!("{} of user {uid}", found.kind.name()),
                    },
                }
            })?,
            None => {}
        }
        place.keeps = Some(kept);
        Ok(())
    }

    /// All writes go to the end, as those of several processes must.
    ///
    /// # Errors
    /// If the file system does not have that.
    pub fn append_only(&self) -> Result<(), OutputError> {
        append_only(&self.file)
    }

    /// Puts the file on disk and gives it its name; see [`Self::publish`].
    ///
    /// # Errors
    /// If either fails.
    pub fn commit(mut self) -> Result<Option<PathBuf>, OutputError> {
        if self.is_file() {
            self.file.sync_all()?;
        }
        self.publish()
    }

    /// Gives the file its name, while it may still be written to; returns where an earlier one is kept.
    ///
    /// # Errors
    /// If it cannot be renamed: it still has its other name then.
    pub fn publish(&mut self) -> Result<Option<PathBuf>, OutputError> {
        let Some(place) = &self.place else { return Ok(None) };
        let directory = &place.directory;
        // A name in a directory where others may rename could be that of another file by now.
        if !directory.is_name_of(&place.part, &self.file)? {
            return Err(OutputError::Replaced);
        }
        directory.replaceable(&place.name)?;
        let mut kept = None;
        if let Some(keeps) = &place.keeps {
            directory.replaceable(keeps)?;
            match directory.rename(&place.name, keeps) {
                Ok(()) => kept = Some(directory.path().join(keeps)),
                // It was removed meanwhile.
                Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        directory.rename(&place.part, &place.name)?;
        self.place = None;
        Ok(kept)
    }

    /// Leaves the file where it is, under its other name.
    pub fn leave(mut self) -> PathBuf {
        let path = self.path();
        self.place = None;
        path
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(Target { directory, part, .. }) = &self.place {
            directory.try_to_remove(part);
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Directory {
    /// Begins a file.
    ///
    /// # Errors
    /// If something has the name that must not be replaced.
    pub fn create(&self, name: impl AsRef<OsStr>, access: Access) -> Result<NewFile, OutputError> {
        let name = name.as_ref();
        let earlier = self.replaceable(name)?;
        let (file, part) = self.part(name, access)?;
        let is_kept = earlier.is_some_and(|earlier| earlier.len_bytes > 0);
        Ok(NewFile::beside(file, self.try_clone()?, name, part, is_kept))
    }

    /// Writes a whole file.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn write(
        &self,
        name: impl AsRef<OsStr>,
        access: Access,
        bytes: &[u8],
    ) -> Result<(), OutputError> {
        let mut file = self.create(name, access)?;
        file.write_all(bytes)?;
        file.commit()?;
        Ok(())
    }
}
