//! Errors of writing a file.

use std::io;
use std::path::PathBuf;

/// Errors of writing a file. The name of the file is not part of the text: callers know it.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The system says no.
    #[error("{0}")]
    Io(io::Error),
    /// A file of another user has the name.
    #[error("a {what} of user {uid} has this name; remove it, or name another file")]
    Foreign {
        /// "file", "FIFO" and so on.
        what: &'static str,
        /// The user.
        uid: u32,
    },
    /// A link has the name, and is not followed.
    #[error(
        "it is a symbolic link of user {uid}, which is not followed; name the file it leads to"
    )]
    Link {
        /// Its owner.
        uid: u32,
    },
    /// A directory of the path is a link of somebody else.
    #[error("{path} is a symbolic link of user {uid}, which root does not follow")]
    Component {
        /// The part of the path that is a link.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// A FIFO has the name, and no reader.
    #[error("a FIFO has this name, and nobody reads it")]
    Unread,
    /// Something that is no file has the name.
    #[error("a {0} has this name")]
    NoFile(&'static str),
    /// A file that is to be extended has other names.
    #[error("the file has other names (hard links), which root does not write to")]
    Linked,
    /// Somebody has put something else in the place of the new file.
    #[error("another process has replaced the new file before it was complete")]
    Replaced,
    /// An earlier file cannot be kept.
    #[error("the existing file cannot be kept: {path} is a {what}")]
    Unkept {
        /// Path at which it would be kept.
        path: PathBuf,
        /// Kind of what is there.
        what: String,
    },
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustix::io::Errno> for OutputError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<OutputError> for io::Error {
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Io(error) => error,
            error => Self::new(io::ErrorKind::PermissionDenied, error),
        }
    }
}
