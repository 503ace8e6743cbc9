//! The trace file (`*.ptrace`): one file, append-only, readable after any accident.
//!
//! ```text
//! prefix   magic, format version, byte order, length and checksum of the header
//! header   JSON: which host, kernel, command, clock, options, hooks
//! block*   one stream's records: counts and times in clear, the records field by field and
//!          compressed, checksums
//! trailer  a block that says how it ended: totals, losses, the payload's exit; there or not
//! ```
//!
//! Nothing is ever patched, so a recording can go through a pipe, and killing the recorder at any
//! byte costs at most the block it was writing. A trace is complete exactly if its trailer is
//! there. [`Reader`] gives every intact block of whatever bytes it is handed, and says in
//! [`Damage`] what it passed over and how many records were in it; it never panics, and it
//! never allocates more than a few times what a block can hold.
//!
//! This crate knows records only as counted bytes with a time, made of fields that are so wide;
//! what they mean is `proctrace-wire`'s business.

mod block;
mod columns;
mod error;
mod gather;
mod header;
mod knowledge;
mod parallel;
mod reader;
mod scatter;
mod spool;
mod unpack;
mod writer;

pub use block::{Block, BlockInfo, RAW_BYTES_MAX};
pub use error::{Damage, DamageKind, ReadError, WriteError};
pub use header::{
    CgroupUsage, Ended, Header, Hook, LossCount, Outcome, PayloadUsage, Program, RecorderUsage,
    Trailer,
};
pub use knowledge::{Knowledge, Quantity};
pub use reader::Reader;
pub use spool::Spool;
pub use writer::Writer;

/// Version of the file format.
///
/// * 1: first format.
/// * 2: blocks hold their records field by field where that is smaller.
pub const FORMAT_VERSION: u32 = 2;

/// The first eight bytes of every trace. The odd ones betray a transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x89PTRC\r\n\x1a";
