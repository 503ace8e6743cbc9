//! The trace file (`*.ptrace`): one append-only file, readable after any crash or damage.
//!
//! ```text
//! prefix   magic, format version, byte order, length and checksum of the header
//! header   JSON: host, kernel, command, clock, options, hooks
//! block*   one stream's records: counts and times uncompressed, the records field by field and
//! compressed, checksums
//! trailer  optional block about the end: totals, losses, the payload's exit
//! ```
//!
//! Bytes once written never change, so a recording can go through a pipe, and killing the recorder
//! at any byte loses at most the block being written. A trace is complete exactly if it has its
//! trailer. [`Reader`] returns every intact block of arbitrary input, and lists in [`Damage`] what
//! it skipped and how many records that contained; it never panics, and never allocates more than a
//! few times the maximum size of a block. [`Follower`] reads a trace that is still being written.
//!
//! This crate treats records as counted bytes with a time, split into fields of known width; their
//! meaning is defined in `proctrace-wire`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod block;
mod columns;
mod error;
mod follow;
mod gather;
mod header;
mod knowledge;
mod meter;
mod parallel;
mod reader;
mod scatter;
mod spool;
mod unpack;
mod writer;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use block::{Block, BlockInfo, RAW_BYTES_MAX};
pub use error::{Damage, DamageKind, ReadError, WriteError};
pub use follow::{FollowError, Follower, Skipped};
pub use header::{
    CgroupUsage, ENV_NAMES, Ended, Header, HeldUp, Hook, JOB_VARIABLES, LossCount, MachineUse,
    OfNode, PayloadUsage, Processor, Program, RecorderUsage, SCOPE_TREE, Trailer,
};
pub use knowledge::Knowledge;
pub use meter::Meter;
pub use proctrace_wire::Outcome;
pub use reader::Reader;
pub use spool::Spool;
pub use writer::Writer;

/// Version of the file format.
///
/// * 1: first format.
/// * 2: blocks store their records field by field if that is smaller.
pub const FORMAT_VERSION: u32 = 2;

/// The first eight bytes of every trace; the unusual ones reveal a transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x89PTRC\r\n\x1a";

/// Returns whether a file begins like a trace. What is no file is not opened: that of a pipe would wait for a writer.
pub fn is_trace(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == MAGIC
}
