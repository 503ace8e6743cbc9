//! One block of a trace: the layout of its header, and the block as readers return it.

use proctrace_wire::Stream;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum bytes of records in a block; readers refuse more before they allocate.
pub const RAW_BYTES_MAX: usize = 4 << 20;

/// Incompressible data grows slightly when compressed.
pub(crate) const STORED_BYTES_MAX: usize = RAW_BYTES_MAX + (RAW_BYTES_MAX >> 6) + 1024;

pub(crate) const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"PTBK");

/// The stream number of the trailer.
pub(crate) const TRAILER: u8 = 255;

pub(crate) const CODEC_RAW: u8 = 0;
pub(crate) const CODEC_ZSTD: u8 = 1;
/// zstd-compressed [`crate::columns`], which have no more bytes than the records.
pub(crate) const CODEC_COLUMNS: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct RawHeader {
    pub(crate) magic: u32,
    /// A [`Stream`], or [`TRAILER`].
    pub(crate) stream: u8,
    pub(crate) codec: u8,
    pub(crate) pad: u16,
    /// Numbers the blocks of a file from 0, so that a gap is detected.
    pub(crate) sequence: u32,
    pub(crate) records: u32,
    pub(crate) raw_bytes: u32,
    pub(crate) stored_bytes: u32,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// CRC-32C of the stored bytes.
    pub(crate) stored_crc: u32,
    /// CRC-32C of all fields above.
    pub(crate) header_crc: u32,
}

pub(crate) const RAW_HEADER_BYTES: usize = size_of::<RawHeader>();

impl RawHeader {
    pub(crate) fn seal(&mut self) {
        self.header_crc = self.crc();
    }

    /// True if this is a valid block header, with plausible sizes.
    pub(crate) fn is_sound(&self) -> bool {
        self.magic == BLOCK_MAGIC
            && self.header_crc == self.crc()
            && self.raw_bytes as usize <= RAW_BYTES_MAX
            && self.stored_bytes as usize <= STORED_BYTES_MAX
    }

    fn crc(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32c::crc32c(&bytes[..bytes.len() - size_of::<u32>()])
    }
}

/// The contents of a block's header: enough to decide whether to read the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockInfo {
    /// The stream of its records.
    pub stream: Stream,
    /// Number of records.
    pub records: u32,
    /// Size of the records.
    pub raw_bytes: u32,
    /// Their size in the file.
    pub stored_bytes: u32,
    /// Earliest time of a record.
    pub first_ns: u64,
    /// Latest time of a record.
    pub last_ns: u64,
}

/// A block with its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The contents of its header.
    pub info: BlockInfo,
    /// The concatenated records.
    pub bytes: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever zstd may make of a block is accepted, and not much more.
    #[test]
    fn blocks_that_grow_when_compressed_are_accepted() {
        let largest = zstd::zstd_safe::compress_bound(RAW_BYTES_MAX);
        assert!((largest..largest + largest / 32).contains(&STORED_BYTES_MAX));
    }
}
