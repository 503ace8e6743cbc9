//! The object that has a name: its kind, owner and identity.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{FileType, fstat};

use crate::error::OutputError;

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// Such as /dev/null or a terminal.
    CharacterDevice,
    /// Such as a disk.
    BlockDevice,
    /// A socket, or what this version does not know.
    Other,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "symbolic link",
            Self::Fifo => "FIFO",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Other => "socket",
        }
    }
}

/// The object found under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its kind; links are not followed.
    pub kind: Kind,
    /// Its owner.
    pub uid: u32,
    /// Its size; only of files it means something.
    pub len_bytes: u64,
    /// Number of its names.
    pub links: u64,
    /// Time of its last modification: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Its number in the file system.
    pub inode: u64,
    device: u64,
}

impl Found {
    pub(crate) fn of(file: impl AsFd) -> Result<Self, OutputError> {
        Ok(Self::from(&fstat(file)?))
    }

    /// The object that is open.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn of_file(file: &File) -> Result<Self, OutputError> {
        Self::of(file)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.inode, self.device) == (other.inode, other.device)
    }

    pub(crate) fn from(stat: &rustix::fs::Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Fifo,
            FileType::CharacterDevice => Kind::CharacterDevice,
            FileType::BlockDevice => Kind::BlockDevice,
            _ => Kind::Other,
        };
        // The types of these fields differ between architectures.
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            clippy::allow_attributes,
            reason = "needed on some"
        )]
        Self {
            kind,
            uid: stat.st_uid,
            len_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            links: u64::from(stat.st_nlink),
            modified: (stat.st_mtime as i64, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            inode: stat.st_ino,
            device: stat.st_dev,
        }
    }
}
