//! Errors and damage of trace files, with messages that suggest a remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::FORMAT_VERSION;

/// Errors of reading a trace that leave nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Opening or reading failed.
    #[error("cannot read {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Not a trace.
    #[error("{} is not a proctrace trace ({found})", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// The detected type of the file.
        found: &'static str,
    },
    /// Written by a newer version.
    #[error(
        "{} has trace format {version}; this proctrace reads up to {FORMAT_VERSION}: use a newer version",
        path.display()
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The record layout is newer than this version.
    #[error(
        "{} contains records of layout {version}; this proctrace reads up to {}: use a newer version",
        path.display(),
        proctrace_wire::WIRE_VERSION
    )]
    NewerRecords {
        /// Path of the file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Written on a machine with the other byte order.
    #[error("{} was written on a machine with the other byte order, which is not supported", path.display())]
    ByteOrder {
        /// Path of the file.
        path: PathBuf,
    },
    /// Cut off or damaged before the first block.
    #[error("{} has no readable header ({why}): nothing can be recovered from it", path.display())]
    Header {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error.
        why: String,
    },
}

/// Errors of writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Writing failed: a full disk, a closed pipe.
    #[error("cannot write the trace")]
    Io(#[from] io::Error),
    /// The header cannot be serialized.
    #[error("cannot write the trace's header")]
    Header(#[from] serde_json::Error),
    /// The header exceeds the size limit.
    #[error("the command line is too long for the trace's header ({bytes} bytes)")]
    HeaderTooLong {
        /// Its size.
        bytes: usize,
    },
    /// The writing thread has ended.
    #[error("the thread that writes the trace has ended prematurely")]
    ThreadGone,
}

/// A part of a trace that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// Offset at which it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Kind of the damage.
    pub what: DamageKind,
    /// Number of records in it, where that could be read.
    pub records: Option<u32>,
}

/// The kinds of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageKind {
    /// The file ends within a block.
    Truncated,
    /// Bytes that are not a block; reading continued at the next one.
    Garbage {
        /// Number of bytes.
        bytes: u64,
    },
    /// A block whose contents do not match their checksum, or do not decompress.
    Corrupt,
    /// Blocks are missing here: the numbering jumps.
    Missing {
        /// Number of blocks.
        blocks: u32,
    },
    /// A block of a stream that this version does not know.
    UnknownStream,
    /// Reading failed.
    Unreadable,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            DamageKind::Truncated => write!(f, "the file ends within a block")?,
            DamageKind::Garbage { bytes } => write!(f, "{bytes} bytes do not form a block")?,
            DamageKind::Corrupt => write!(f, "a block is corrupt")?,
            DamageKind::Missing { blocks } => write!(f, "{blocks} blocks are missing")?,
            DamageKind::UnknownStream => write!(f, "a block is from a later version")?,
            DamageKind::Unreadable => write!(f, "reading failed")?,
        }
        write!(f, " at byte {}", self.offset)?;
        match self.records {
            Some(records) => write!(f, " ({records} records lost)"),
            None => Ok(()),
        }
    }
}
