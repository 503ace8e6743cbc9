//! Writing a trace: the header, then the blocks, then the trailer.

use std::io::Write;

use proctrace_wire::Stream;
use zerocopy::IntoBytes;

use crate::block::{BLOCK_MAGIC, CODEC_COLUMNS, CODEC_RAW, CODEC_ZSTD, RawHeader, TRAILER};
use crate::error::WriteError;
use crate::header::{HEADER_BYTES_MAX, Header, Trailer};
use crate::scatter::Scatter;
use crate::{FORMAT_VERSION, MAGIC, RAW_BYTES_MAX};

/// zstd's fastest regular level: at the rate of a burst of look-ups (100 MB/s) a higher one would
/// cost the payload a CPU.
const ZSTD_LEVEL: i32 = 1;

/// Identifies the byte order of the file.
pub(crate) const BYTE_ORDER: u32 = 0x0102_0304;

/// Writes a trace to any output. Each block is one `write`, so blocks handed over before the
/// recorder is killed are complete.
pub struct Writer<W> {
    out: W,
    sequence: u32,
    written_bytes: u64,
    scatter: Scatter,
    columns: Vec<u8>,
    buffer: Vec<u8>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn new(mut out: W, header: &Header) -> Result<Self, WriteError> {
        let json = serde_json::to_vec(header)?;
        if json.len() > HEADER_BYTES_MAX {
            return Err(WriteError::HeaderTooLong { bytes: json.len() });
        }
        let mut prefix = Vec::with_capacity(24 + json.len());
        prefix.extend_from_slice(&MAGIC);
        prefix.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        prefix.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        prefix.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes());
        prefix.extend_from_slice(&crc32c::crc32c(&json).to_le_bytes());
        prefix.extend_from_slice(&json);
        out.write_all(&prefix)?;
        Ok(Self {
            out,
            sequence: 0,
            written_bytes: prefix.len() as u64,
            scatter: Scatter::default(),
            columns: Vec::new(),
            buffer: Vec::new(),
            compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
        })
    }

    /// Appends a block of `records` records.
    ///
    /// # Errors
    /// When it cannot be written; the file may then end with part of it.
    ///
    /// # Panics
    /// When `bytes` is larger than [`RAW_BYTES_MAX`]; the caller has to ensure that it is not.
    pub fn append(
        &mut self,
        stream: Stream,
        records: u32,
        first_ns: u64,
        last_ns: u64,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        assert!(bytes.len() <= RAW_BYTES_MAX, "a block of {} bytes", bytes.len());
        self.put(stream as u8, records, first_ns, last_ns, bytes)
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// When the trailer cannot be written.
    pub fn finish(mut self, trailer: &Trailer) -> Result<(W, u64), WriteError> {
        let json = serde_json::to_vec(trailer)?;
        self.put(TRAILER, 0, trailer.ended_ns, trailer.ended_ns, &json)?;
        self.out.flush()?;
        Ok((self.out, self.written_bytes))
    }

    /// Returns the output without writing a trailer: an incomplete trace.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    fn put(
        &mut self,
        stream: u8,
        records: u32,
        first_ns: u64,
        last_ns: u64,
        raw: &[u8],
    ) -> Result<(), WriteError> {
        let scattered = self.scatter.scatter(raw, &mut self.columns).is_some();
        let (codec, plain) = if scattered && self.columns.len() <= raw.len() {
            (CODEC_COLUMNS, &self.columns[..])
        } else {
            (CODEC_ZSTD, raw)
        };
        let head = size_of::<RawHeader>();
        // The buffer only grows: earlier contents are overwritten.
        let room = head + zstd::zstd_safe::compress_bound(plain.len()).max(raw.len());
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let compressed = self.compressor.compress_to_buffer(plain, &mut self.buffer[head..room]);
        let (codec, stored) = match compressed {
            Ok(bytes) if bytes < raw.len() => (codec, bytes),
            // Incompressible data is stored uncompressed.
            _ => {
                self.buffer[head..head + raw.len()].copy_from_slice(raw);
                (CODEC_RAW, raw.len())
            }
        };
        let block = &mut self.buffer[..head + stored];
        let mut header = RawHeader {
            magic: BLOCK_MAGIC,
            stream,
            codec,
            pad: 0,
            sequence: self.sequence,
            records,
            raw_bytes: u32::try_from(raw.len()).unwrap_or(u32::MAX),
            stored_bytes: u32::try_from(stored).unwrap_or(u32::MAX),
            first_ns,
            last_ns,
            stored_crc: crc32c::crc32c(&block[head..]),
            header_crc: 0,
        };
        header.seal();
        block[..head].copy_from_slice(header.as_bytes());
        self.out.write_all(block)?;
        self.sequence += 1;
        self.written_bytes += block.len() as u64;
        Ok(())
    }
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("written_bytes", &self.written_bytes).finish_non_exhaustive()
    }
}
