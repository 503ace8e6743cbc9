//! Verifies and unpacks the contents of blocks, reusing memory.

use crate::block::{CODEC_COLUMNS, CODEC_RAW, CODEC_ZSTD, RawHeader};
use crate::gather::Gather;

/// Unpacks one block after another, keeping its buffers: fresh memory for every block has to be
/// cleared by the kernel, which took as long as everything else.
#[derive(Default)]
pub(crate) struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
    columns: Vec<u8>,
    gather: Gather,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

impl Unpacker {
    /// Decodes a block into `raw`. False if the stored bytes do not match the header; the contents
    /// of `raw` are then meaningless.
    pub(crate) fn unpack(&mut self, header: &RawHeader, stored: &[u8], raw: &mut Vec<u8>) -> bool {
        raw.clear();
        if crc32c::crc32c(stored) != header.stored_crc {
            return false;
        }
        // Headers with more than RAW_BYTES_MAX are invalid.
        let raw_bytes = header.raw_bytes as usize;
        match header.codec {
            CODEC_RAW => raw.extend_from_slice(stored),
            CODEC_ZSTD => {
                raw.resize(raw_bytes, 0);
                let Ok(bytes) = self.zstd.decompress_to_buffer(stored, raw.as_mut_slice()) else {
                    return false;
                };
                raw.truncate(bytes);
            }
            CODEC_COLUMNS => {
                if self.columns.len() < raw_bytes {
                    self.columns.resize(raw_bytes, 0);
                }
                // The columns never have more bytes than the records.
                let room = &mut self.columns[..raw_bytes];
                let Ok(bytes) = self.zstd.decompress_to_buffer(stored, room) else { return false };
                if self.gather.gather(&self.columns[..bytes], raw_bytes, raw).is_none() {
                    return false;
                }
            }
            _ => return false,
        }
        raw.len() == raw_bytes
    }
}
