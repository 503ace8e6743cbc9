//! Following a trace that is still being written, block after block.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proctrace_wire::Stream;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::block::{BLOCK_MAGIC, BlockInfo, RAW_HEADER_BYTES, RawHeader, TRAILER};
use crate::error::ReadError;
use crate::header::{Header, Trailer};
use crate::reader::{PREFIX_BYTES, read_header, read_up_to};
use crate::unpack::Unpacker;

/// Bytes that are searched for the next block at a time.
const WINDOW_BYTES: usize = 1 << 16;

/// Errors after which a trace cannot be followed any further.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// Reading failed.
    #[error("cannot read {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file has become shorter than what was read, or begins differently.
    #[error("{} was overwritten while it was being read", path.display())]
    Overwritten {
        /// Path of the file.
        path: PathBuf,
    },
}

/// The parts of a trace that a [`Follower`] had to skip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Bytes of damaged blocks, or that belong to no block.
    pub bytes: u64,
    /// Blocks that are damaged or missing.
    pub blocks: u64,
    /// Records in damaged blocks whose header could be read.
    pub records: u64,
}

/// Reads a trace while it grows.
///
/// [`Follower::refresh`] looks how far the file reaches now, [`Follower::next_block`] returns the
/// blocks up to there. A block that is not there completely yet is returned when it is: unlike
/// [`crate::Reader`], a follower considers it as damage only if other blocks follow, or when
/// [`Follower::skip_incomplete`] says that nobody writes the rest.
///
/// Memory is bounded by the maximum size of a block.
#[derive(Debug)]
pub struct Follower<R> {
    path: PathBuf,
    input: R,
    /// The first bytes of the file, with the checksum of the header: they identify the recording.
    prefix: [u8; PREFIX_BYTES],
    header: Header,
    trailer: Option<Trailer>,
    /// Offset of the next block.
    at: u64,
    /// No block begins between `at` and here.
    searched: u64,
    len: u64,
    sequence: u32,
    skipped: Skipped,
    stored: Vec<u8>,
    raw: Vec<u8>,
    unpacker: Unpacker,
}

/// Content found at a place of the file.
enum Found {
    /// A block, unpacked to `raw` if it has records.
    Block(RawHeader, Option<BlockInfo>),
    /// A block that was not asked for.
    Unwanted(RawHeader),
    /// A block with wrong contents, and other data behind it.
    Corrupt(RawHeader),
    /// Nothing that is complete.
    Incomplete,
}

impl Follower<File> {
    /// Opens the trace at `path`.
    ///
    /// # Errors
    /// When it is not a trace, one that this version cannot read, or not a regular file. The header
    /// is there as soon as the recorder has created the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let unreadable = |source| ReadError::Io { path: path.to_owned(), source };
        // Before it is opened: to open a pipe waits for its writer.
        let metadata = path.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            return Err(unreadable(io::Error::other("only a regular file can be followed")));
        }
        Self::new(File::open(path).map_err(unreadable)?, path)
    }

    /// True if the path leads to another file by now, or to none. The file that was opened is
    /// followed nevertheless.
    pub fn is_replaced(&self) -> bool {
        let (Ok(this), Ok(other)) = (self.input.metadata(), self.path.metadata()) else {
            return true;
        };
        (this.dev(), this.ino()) != (other.dev(), other.ino())
    }
}

impl<R: Read + Seek> Follower<R> {
    /// Follows the trace in `input`; messages refer to it as `path`.
    ///
    /// # Errors
    /// As [`Follower::open`].
    pub fn new(mut input: R, path: impl Into<PathBuf>) -> Result<Self, ReadError> {
        let path = path.into();
        let mut prefix = [0; PREFIX_BYTES];
        let unreadable = |source| ReadError::Io { path: path.clone(), source };
        read_at(&mut input, 0, &mut prefix).map_err(unreadable)?;
        input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let (header, at) = read_header(&mut input, &path)?;
        Ok(Self {
            path,
            input,
            prefix,
            header,
            trailer: None,
            at,
            searched: at,
            len: at,
            sequence: 0,
            skipped: Skipped::default(),
            stored: Vec::new(),
            raw: Vec::new(),
            unpacker: Unpacker::default(),
        })
    }

    /// The path of the trace when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// The header: where and how the recording is made.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Trailer of the recording, once it has ended.
    pub fn trailer(&self) -> Option<&Trailer> {
        self.trailer.as_ref()
    }

    /// Amounts skipped so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Bytes read or skipped so far.
    pub fn position_bytes(&self) -> u64 {
        self.at
    }

    /// Size of the file at the last [`Follower::refresh`].
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Looks how long the file is by now.
    ///
    /// # Errors
    /// When the file was overwritten or cannot be read.
    pub fn refresh(&mut self) -> Result<(), FollowError> {
        let mut prefix = [0; PREFIX_BYTES];
        let looked = read_at(&mut self.input, 0, &mut prefix)
            .and_then(|_| self.input.seek(SeekFrom::End(0)))
            .map_err(|source| FollowError::Io { path: self.path.clone(), source })?;
        if looked < self.at || prefix != self.prefix {
            return Err(FollowError::Overwritten { path: self.path.clone() });
        }
        self.len = looked;
        Ok(())
    }

    /// The next block that `wanted` accepts and that is there completely; None if there is none
    /// yet.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_block(
        &mut self,
        wanted: impl Fn(&BlockInfo) -> bool,
    ) -> Result<Option<(BlockInfo, &[u8])>, FollowError> {
        loop {
            let found = self.find(&wanted);
            match found.map_err(|source| FollowError::Io { path: self.path.clone(), source })? {
                Found::Incomplete => return Ok(None),
                Found::Unwanted(header) => self.pass(&header),
                Found::Corrupt(header) => self.skip(&header),
                Found::Block(header, Some(info)) => {
                    self.pass(&header);
                    return Ok(Some((info, &self.raw)));
                }
                Found::Block(header, None) if header.stream == TRAILER => {
                    match serde_json::from_slice(&self.raw) {
                        Ok(trailer) => {
                            self.pass(&header);
                            self.trailer = Some(trailer);
                        }
                        Err(_) => self.skip(&header),
                    }
                }
                // A stream that this version does not know.
                Found::Block(header, None) => self.skip(&header),
            }
        }
    }

    /// Skips a block that is incomplete, because nobody writes the rest of it, after [`Follower::next_block`] found
    /// nothing more. False if there is none; otherwise other blocks may follow.
    pub fn skip_incomplete(&mut self) -> bool {
        if self.trailer.is_some() || self.at >= self.len {
            return false;
        }
        let bytes = match self.header_at(self.at) {
            // A block may begin in what was taken for the contents of this one.
            Ok(Some(header)) => {
                self.sequence = header.sequence.wrapping_add(1);
                let records = u64::from(header.records);
                self.skipped.records = self.skipped.records.saturating_add(records);
                RAW_HEADER_BYTES as u64
            }
            // There is no other header behind it, or it would have been found.
            _ => self.len - self.at,
        };
        self.skipped.blocks = self.skipped.blocks.saturating_add(1);
        self.skipped.bytes = self.skipped.bytes.saturating_add(bytes);
        self.at += bytes;
        self.searched = self.searched.max(self.at);
        true
    }

    fn find(&mut self, wanted: &impl Fn(&BlockInfo) -> bool) -> io::Result<Found> {
        if self.trailer.is_some() {
            return Ok(Found::Incomplete);
        }
        let Some(header) = self.next_header()? else { return Ok(Found::Incomplete) };
        let body = self.at + RAW_HEADER_BYTES as u64;
        let end = body + u64::from(header.stored_bytes);
        if end > self.len {
            return Ok(Found::Incomplete);
        }
        let info = info(&header);
        if info.is_some_and(|info| !wanted(&info)) {
            return Ok(Found::Unwanted(header));
        }
        self.stored.resize(header.stored_bytes as usize, 0);
        let read = read_at(&mut self.input, body, &mut self.stored)?;
        let is_whole =
            read == self.stored.len() && self.unpacker.unpack(&header, &self.stored, &mut self.raw);
        Ok(match is_whole {
            true => Found::Block(header, info),
            // Over a network, a file may have its length before its contents.
            false if end == self.len => Found::Incomplete,
            false => Found::Corrupt(header),
        })
    }

    /// The valid block header at `at`, which moves to the next one if there is none.
    fn next_header(&mut self) -> io::Result<Option<RawHeader>> {
        if let Some(header) = self.header_at(self.at)? {
            return Ok(Some(header));
        }
        let Some(found) = self.search()? else { return Ok(None) };
        self.skipped.bytes = self.skipped.bytes.saturating_add(found - self.at);
        self.at = found;
        self.header_at(found)
    }

    fn header_at(&mut self, at: u64) -> io::Result<Option<RawHeader>> {
        if self.len.saturating_sub(at) < RAW_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut header = RawHeader::new_zeroed();
        let read = read_at(&mut self.input, at, header.as_mut_bytes())?;
        Ok((read == RAW_HEADER_BYTES && header.is_sound()).then_some(header))
    }

    /// The next place after `at` with a valid header. What was searched before is not searched
    /// again, so that waiting for more is cheap.
    fn search(&mut self) -> io::Result<Option<u64>> {
        let magic = BLOCK_MAGIC.to_le_bytes();
        let mut window = vec![0; WINDOW_BYTES];
        let mut from = self.searched.max(self.at + 1);
        while self.len.saturating_sub(from) >= RAW_HEADER_BYTES as u64 {
            let read = read_at(&mut self.input, from, &mut window)?;
            let Some(last) = read.checked_sub(RAW_HEADER_BYTES) else { break };
            let found = (0..=last).find(|at| {
                window[*at..].starts_with(&magic)
                    && RawHeader::read_from_prefix(&window[*at..])
                        .is_ok_and(|(header, _)| header.is_sound())
            });
            if let Some(found) = found {
                return Ok(Some(from + found as u64));
            }
            from += last as u64 + 1;
            self.searched = from;
        }
        Ok(None)
    }

    fn pass(&mut self, header: &RawHeader) {
        // A number that is lower than expected is that of a copied or replayed block.
        let missing = header.sequence.saturating_sub(self.sequence);
        self.skipped.blocks = self.skipped.blocks.saturating_add(u64::from(missing));
        self.sequence = header.sequence.wrapping_add(1);
        self.at += RAW_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
        self.searched = self.at;
    }

    fn skip(&mut self, header: &RawHeader) {
        let bytes = RAW_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
        self.skipped.bytes = self.skipped.bytes.saturating_add(bytes);
        self.skipped.records = self.skipped.records.saturating_add(u64::from(header.records));
        self.skipped.blocks = self.skipped.blocks.saturating_add(1);
        self.pass(header);
    }
}

fn info(header: &RawHeader) -> Option<BlockInfo> {
    Some(BlockInfo {
        stream: Stream::from_number(header.stream)?,
        records: header.records,
        raw_bytes: header.raw_bytes,
        stored_bytes: header.stored_bytes,
        first_ns: header.first_ns,
        last_ns: header.last_ns,
    })
}

/// Reads up to the end of the buffer or of the file; returns how many bytes.
fn read_at(input: &mut (impl Read + Seek), at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    input.seek(SeekFrom::Start(at))?;
    read_up_to(input, buffer)
}
