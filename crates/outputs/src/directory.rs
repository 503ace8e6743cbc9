//! A directory by its descriptor: whoever renames directories meanwhile does not lead elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, fstat, linkat, openat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::OutputError;
use crate::found::{Found, Kind};
use crate::part::part_name;
use crate::policy::{Access, Outputs};
use crate::walk::{PATH, one, start, walk};

/// An open directory, and for whom files are written there.
#[derive(Debug)]
pub struct Directory {
    pub(crate) fd: OwnedFd,
    path: PathBuf,
    outputs: Outputs,
}

impl Directory {
    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Policy for whom files are written there.
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// The same directory once more.
    ///
    /// # Errors
    /// Without descriptors left.
    pub fn try_clone(&self) -> io::Result<Self> {
        let (path, outputs) = (self.path.clone(), self.outputs.clone());
        Ok(Self { fd: self.fd.try_clone()?, path, outputs })
    }

    /// Opens a path. The kernel follows links for ordinary users. Root goes from directory to directory, and follows
    /// only links that are its own or those of users that it trusts, wherever they are.
    pub(crate) fn walk(
        outputs: &Outputs,
        path: &Path,
        creates: Option<Access>,
    ) -> Result<Self, OutputError> {
        let fd = walk(outputs, start(path)?, path, creates)?;
        Ok(Self { fd, path: path.to_owned(), outputs: outputs.clone() })
    }

    /// Opens a directory in which nothing is written: links are followed, as by any reader.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn to_read(path: &Path) -> Result<Self, OutputError> {
        let fd = openat(CWD, path, PATH | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { fd, path: path.to_owned(), outputs: Outputs::of_this_process() })
    }

    /// A directory below this one, which is created if it does not exist.
    ///
    /// # Errors
    /// If there is none; if it is a link of somebody else, for root.
    pub fn create_below(&self, path: &Path, access: Access) -> Result<Self, OutputError> {
        let fd = walk(&self.outputs, self.fd.try_clone()?, path, Some(access))?;
        Ok(Self { fd, path: self.path.join(path), outputs: self.outputs.clone() })
    }

    /// Its permissions.
    ///
    /// # Errors
    /// If they cannot be told.
    pub fn mode(&self) -> Result<u32, OutputError> {
        Ok(fstat(&self.fd)?.st_mode & 0o7777)
    }

    /// File, link or directory that has a name; None if nothing has.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn look(&self, name: impl AsRef<OsStr>) -> Result<Option<Found>, OutputError> {
        match statat(&self.fd, one(name.as_ref())?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Found::from(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file under its name, which nothing must have.
    ///
    /// # Errors
    /// If something has it.
    pub fn create_new(&self, name: impl AsRef<OsStr>, access: Access) -> Result<File, OutputError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = match access {
            Access::Owner => Mode::from_raw_mode(0o600),
            Access::Umask => Mode::from_raw_mode(0o666),
            Access::Mode(mode) => Mode::from_raw_mode(mode),
        };
        let file = openat(&self.fd, one(name.as_ref())?, flags | OFlags::CLOEXEC, mode)?;
        let file = File::from(file);
        let given = || -> Result<(), OutputError> {
            if access != Access::Umask {
                // Whatever the umask says.
                rustix::fs::fchmod(&file, mode)?;
            }
            if let Some(owner) = self.outputs.owner {
                std::os::unix::fs::fchown(&file, Some(owner.uid), Some(owner.gid))?;
            }
            Ok(())
        };
        given().inspect_err(|_| self.try_to_remove(name.as_ref()))?;
        Ok(file)
    }

    /// Opens or creates a file that stays, such as one that is locked: never a link, a pipe or a device.
    ///
    /// # Errors
    /// If something else has the name.
    pub fn open_or_create(
        &self,
        name: impl AsRef<OsStr>,
        access: Access,
    ) -> Result<File, OutputError> {
        let name = name.as_ref();
        loop {
            match self.create_new(name, access) {
                Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
            match self.open_file(name, OFlags::RDWR) {
                // It was removed in between.
                Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
    }

    /// Opens a file to add to its end, or creates it. Root adds to files of other users only if `others` says so.
    pub(crate) fn append(
        &self,
        name: &OsStr,
        access: Access,
        others: bool,
    ) -> Result<File, OutputError> {
        let file = match self.open_file(name, OFlags::WRONLY) {
            Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                self.create_new(name, access)?
            }
            opened => {
                let opened = opened?;
                let found = Found::of(&opened)?;
                if self.outputs.is_root() && found.links > 1 {
                    return Err(OutputError::Linked);
                }
                if self.outputs.is_root() && !others && !self.outputs.trusts(found.uid) {
                    return Err(OutputError::Foreign { what: "file", uid: found.uid });
                }
                opened
            }
        };
        append_only(&file)?;
        Ok(file)
    }

    /// Opens a file for reading: never a link, a pipe or a device.
    ///
    /// # Errors
    /// If it is something else.
    pub fn open_to_read(&self, name: impl AsRef<OsStr>) -> Result<File, OutputError> {
        self.open_file(name.as_ref(), OFlags::RDONLY)
    }

    /// The text of a file of at most `bytes_max`; None if there is none.
    ///
    /// # Errors
    /// If it is no file, longer, or no text.
    pub fn read_text(
        &self,
        name: impl AsRef<OsStr>,
        bytes_max: u64,
    ) -> Result<Option<String>, OutputError> {
        let file = match self.open_to_read(name) {
            Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        let mut text = String::new();
        file.take(bytes_max.saturating_add(1)).read_to_string(&mut text)?;
        if text.len() as u64 > bytes_max {
            return Err(Errno::FBIG.into());
        }
        Ok(Some(text))
    }

    /// Opens a file without waiting for anybody at the other end of a pipe.
    fn open_file(&self, name: &OsStr, how: OFlags) -> Result<File, OutputError> {
        let file = match self.open(name, how | OFlags::NOFOLLOW | OFlags::NONBLOCK) {
            Err(Errno::LOOP | Errno::NXIO) => {
                let found = self.look(name)?;
                return Err(OutputError::NoFile(found.map_or("link", |found| found.kind.name())));
            }
            opened => opened?,
        };
        match Found::of(&file)?.kind {
            Kind::File => Ok(file),
            other => Err(OutputError::NoFile(other.name())),
        }
    }

    pub(crate) fn open(&self, name: &OsStr, flags: OFlags) -> Result<File, Errno> {
        let name = one(name).map_err(|_| Errno::INVAL)?;
        openat(&self.fd, name, flags | OFlags::CLOEXEC, Mode::empty()).map(File::from)
    }

    /// A file without a name.
    pub(crate) fn unnamed(&self, like: &OsStr) -> Result<File, OutputError> {
        let (file, part) = self.part(like, Access::Owner)?;
        unlinkat(&self.fd, &part, AtFlags::empty())?;
        Ok(file)
    }

    /// Makes or replaces a symbolic link.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn symlink(&self, target: &Path, name: impl AsRef<OsStr>) -> Result<(), OutputError> {
        let name = one(name.as_ref())?;
        let part = loop {
            let part = part_name(name);
            match symlinkat(target, &self.fd, &part) {
                Err(Errno::EXIST) => {}
                made => {
                    made?;
                    break part;
                }
            }
        };
        let renamed = self.rename(&part, name);
        renamed.inspect_err(|_| self.try_to_remove(&part))
    }

    /// Renames within the directory; what has the new name is replaced.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn rename(
        &self,
        from: impl AsRef<OsStr>,
        to: impl AsRef<OsStr>,
    ) -> Result<(), OutputError> {
        Ok(renameat(&self.fd, one(from.as_ref())?, &self.fd, one(to.as_ref())?)?)
    }

    /// Gives a file a second name, which nothing must have.
    ///
    /// # Errors
    /// If something has it.
    pub fn hard_link(
        &self,
        from: impl AsRef<OsStr>,
        to: impl AsRef<OsStr>,
    ) -> Result<(), OutputError> {
        let (from, to) = (one(from.as_ref())?, one(to.as_ref())?);
        Ok(linkat(&self.fd, from, &self.fd, to, AtFlags::empty())?)
    }

    /// Removes a name, that of a link itself.
    ///
    /// # Errors
    /// If there is nothing to remove, or a directory.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), OutputError> {
        Ok(unlinkat(&self.fd, one(name.as_ref())?, AtFlags::empty())?)
    }

    /// Removes a file after a failure, which is reported.
    pub(crate) fn try_to_remove(&self, name: &OsStr) {
        let _ = unlinkat(&self.fd, name, AtFlags::empty());
    }

    /// All names.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>, OutputError> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(self.readable()?)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Puts the names on disk.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&self) -> Result<(), OutputError> {
        File::from(self.readable()?).sync_all()?;
        Ok(())
    }

    /// A descriptor by which names can be listed: the other serves for looking up only.
    fn readable(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.fd, ".", flags, Mode::empty())
    }

    /// User who owns the directory.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn owner(&self) -> Result<u32, OutputError> {
        Ok(Found::of(&self.fd)?.uid)
    }

    /// The earlier file of this name, if it may be replaced by a new one.
    pub(crate) fn replaceable(&self, name: &OsStr) -> Result<Option<Found>, OutputError> {
        let Some(found) = self.look(name)? else { return Ok(None) };
        let is_foreign = match self.outputs.is_root() {
            true => !self.outputs.trusts(found.uid),
            false => self.is_protected(&found)?,
        };
        match found.kind {
            Kind::File | Kind::Link if is_foreign && !self.outputs.is_root() => {
                Err(OutputError::Foreign { what: found.kind.name(), uid: found.uid })
            }
            Kind::File if is_foreign => Err(OutputError::Foreign { what: "file", uid: found.uid }),
            Kind::File => Ok(Some(found)),
            // It is not followed but replaced, for ordinary users.
            Kind::Link if !self.outputs.is_root() => Ok(None),
            Kind::Link => Err(OutputError::Link { uid: found.uid }),
            other => Err(OutputError::NoFile(other.name())),
        }
    }

    /// True if an ordinary user cannot replace something because the directory is like /tmp (S_ISVTX). It is known
    /// before a file is written that could not get its name.
    fn is_protected(&self, found: &Found) -> Result<bool, OutputError> {
        let directory = fstat(&self.fd)?;
        let is_sticky = directory.st_mode & 0o1000 != 0;
        Ok(is_sticky && ![found.uid, directory.st_uid].contains(&self.outputs.uid))
    }

    /// A new file beside a name.
    pub(crate) fn part(
        &self,
        name: &OsStr,
        access: Access,
    ) -> Result<(File, OsString), OutputError> {
        one(name)?;
        loop {
            let part = part_name(name);
            match self.create_new(&part, access) {
                Err(OutputError::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return Ok((created?, part)),
            }
        }
    }

    /// True if a name is still that of this file.
    pub(crate) fn is_name_of(&self, name: &OsStr, file: &File) -> Result<bool, OutputError> {
        let of_file = Found::of(file)?;
        Ok(self.look(name)?.is_some_and(|found| found.is(&of_file)))
    }
}

pub(crate) fn append_only(file: &File) -> Result<(), OutputError> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::APPEND)?)
}
