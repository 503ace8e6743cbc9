//! Reading a trace, including a damaged one.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proctrace_wire::{Stream, WIRE_VERSION};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::block::{Block, BlockInfo, RAW_HEADER_BYTES, RawHeader, TRAILER};
use crate::error::{Damage, DamageKind, ReadError};
use crate::header::{HEADER_BYTES_MAX, Header, Trailer};
use crate::meter::Meter;
use crate::unpack::Unpacker;
use crate::writer::BYTE_ORDER;
use crate::{FORMAT_VERSION, MAGIC};

pub(crate) const PREFIX_BYTES: usize = 24;
/// Size of the buffer. Only headers of blocks are read through the buffer, and most blocks are skipped: a larger one
/// would read much of them all the same.
const BUFFER_BYTES: usize = 1 << 12;

/// Returns the blocks of a trace in file order.
///
/// The header must be intact, or opening fails. After that nothing fails: unreadable parts are
/// skipped and listed in [`Reader::damage`], and reading continues at the next valid block.
#[derive(Debug)]
pub struct Reader<R> {
    path: PathBuf,
    input: R,
    at: u64,
    len: u64,
    blocks_at: u64,
    header: Header,
    trailer: Option<Trailer>,
    sequence: u32,
    damage: Vec<Damage>,
    /// Number of damage entries found by unpacking, see [`Reader::settle`].
    unsound: usize,
    /// Reused for the next block.
    stored: Vec<u8>,
    unpacker: Option<Unpacker>,
    /// Meter read by those who wait for it.
    meter: Option<Meter>,
}

/// A block that was found, with its bytes read but not unpacked.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) header: RawHeader,
    /// None for the trailer and unknown streams.
    info: Option<BlockInfo>,
    /// Offset of the block in the file.
    offset: u64,
    /// Number of damage entries before it, except those found by unpacking.
    damage_before: usize,
}

impl Reader<BufReader<File>> {
    /// Opens the trace at `path`.
    ///
    /// # Errors
    /// When it is not a trace, or one that this version cannot read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let unreadable = |source| ReadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        Self::new(BufReader::with_capacity(BUFFER_BYTES, file), path)
    }
}

impl Reader<BufReader<File>> {
    /// Another reader of the same trace, positioned at its first block, so that several streams can
    /// be read at the same time; it covers the part known to this reader. None if the file was
    /// removed or replaced.
    pub fn again(&self) -> Option<Self> {
        let file = File::open(&self.path).ok()?;
        let (this, other) = (self.input.get_ref().metadata().ok()?, file.metadata().ok()?);
        if (this.dev(), this.ino()) != (other.dev(), other.ino()) {
            return None;
        }
        let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
        input.seek(SeekFrom::Start(self.blocks_at)).ok()?;
        Some(Self {
            path: self.path.clone(),
            input,
            at: self.blocks_at,
            len: self.len,
            blocks_at: self.blocks_at,
            header: self.header.clone(),
            trailer: None,
            sequence: 0,
            damage: Vec::new(),
            unsound: 0,
            stored: Vec::new(),
            unpacker: None,
            meter: self.meter.clone(),
        })
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads a trace from `input`; messages refer to it as `path`.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut input: R, path: impl Into<PathBuf>) -> Result<Self, ReadError> {
        let path = path.into();
        let (header, blocks_at) = read_header(&mut input, &path)?;
        let unreadable = |source| ReadError::Io { path: path.clone(), source };
        let len = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
        input.seek(SeekFrom::Start(blocks_at)).map_err(unreadable)?;
        Ok(Self {
            path,
            input,
            at: blocks_at,
            len,
            blocks_at,
            header,
            trailer: None,
            sequence: 0,
            damage: Vec::new(),
            unsound: 0,
            stored: Vec::new(),
            unpacker: None,
            meter: None,
        })
    }

    /// Counts what is read from now on, also by other readers that are made of this one.
    #[must_use]
    pub fn metered(mut self, meter: &Meter) -> Self {
        self.meter = Some(meter.clone());
        self
    }

    /// The path of the trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Bytes read or skipped so far.
    pub fn position_bytes(&self) -> u64 {
        self.at
    }

    /// The header: where and how the recording was made.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Trailer of the recording; known after the last block, and absent from an incomplete trace.
    pub fn trailer(&self) -> Option<&Trailer> {
        self.trailer.as_ref()
    }

    /// The damage found so far.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The next block of any stream; None at the end.
    pub fn next_block(&mut self) -> Option<Block> {
        self.next_block_where(|_| true)
    }

    /// The next block that `wanted` accepts; the others are skipped without being read.
    pub fn next_block_where(&mut self, wanted: impl Fn(&BlockInfo) -> bool) -> Option<Block> {
        let mut stored = std::mem::take(&mut self.stored);
        let mut unpacker = std::mem::take(&mut self.unpacker).unwrap_or_default();
        let block = loop {
            let Some(found) = self.next_stored(&wanted, &mut stored) else { break None };
            let mut bytes = Vec::new();
            let sound = unpacker.unpack(&found.header, &stored, &mut bytes);
            if let Some(info) = self.settle(&found, sound.then_some(&bytes)) {
                break Some(Block { info, bytes });
            }
        };
        (self.stored, self.unpacker) = (stored, Some(unpacker));
        block
    }

    /// Finds the next block that `wanted` accepts, and reads its bytes without unpacking them.
    pub(crate) fn next_stored(
        &mut self,
        wanted: &impl Fn(&BlockInfo) -> bool,
        stored: &mut Vec<u8>,
    ) -> Option<Stored> {
        loop {
            let header = self.next_header()?;
            let body = self.at;
            let offset = body - RAW_HEADER_BYTES as u64;
            self.note_sequence(offset, header.sequence);
            let info = Stream::from_number(header.stream).map(|stream| BlockInfo {
                stream,
                records: header.records,
                raw_bytes: header.raw_bytes,
                stored_bytes: header.stored_bytes,
                first_ns: header.first_ns,
                last_ns: header.last_ns,
            });
            if body + u64::from(header.stored_bytes) > self.len {
                self.note(offset, DamageKind::Truncated, Some(header.records));
                // A block cut off while being written is the last; but bytes lost from the middle
                // look the same, so the rest of the file is searched.
                self.resume_at(body);
                continue;
            }
            if info.is_some_and(|info| !wanted(&info)) {
                self.resume_at(body + u64::from(header.stored_bytes));
                continue;
            }
            stored.resize(header.stored_bytes as usize, 0);
            if self.input.read_exact(stored).is_err() {
                self.note(offset, DamageKind::Unreadable, Some(header.records));
                self.at = self.len;
                return None;
            }
            self.at += stored.len() as u64;
            if let Some(meter) = &self.meter {
                meter.add(stored.len() as u64);
            }
            let damage_before = self.damage.len() - self.unsound;
            return Some(Stored { header, info, offset, damage_before });
        }
    }

    /// Evaluates a block after unpacking: returns its info if it contains records, else stores the
    /// trailer or the damage. Blocks must be passed in the order in which they were found.
    pub(crate) fn settle(&mut self, found: &Stored, raw: Option<&Vec<u8>>) -> Option<BlockInfo> {
        let Stored { header, info, .. } = found;
        let Some(raw) = raw else {
            self.note_unsound(found, DamageKind::Corrupt, Some(header.records));
            return None;
        };
        match info {
            Some(info) => return Some(*info),
            None if header.stream == TRAILER => match serde_json::from_slice(raw) {
                Ok(trailer) => self.trailer = Some(trailer),
                Err(_) => self.note_unsound(found, DamageKind::Corrupt, None),
            },
            None => self.note_unsound(found, DamageKind::UnknownStream, Some(header.records)),
        }
        None
    }

    /// Adds damage found by unpacking a block. Later blocks may have been found before that; the
    /// damage still stays in file order.
    fn note_unsound(&mut self, found: &Stored, what: DamageKind, records: Option<u32>) {
        let at = (found.damage_before + self.unsound).min(self.damage.len());
        self.damage.insert(at, Damage { offset: found.offset, what, records });
        self.unsound += 1;
    }

    /// Returns to the first block and resets what was found.
    pub fn rewind(&mut self) {
        self.damage.clear();
        self.unsound = 0;
        self.trailer = None;
        self.sequence = 0;
        self.resume_at(self.blocks_at);
    }

    /// The next valid block header, searching for it if necessary.
    fn next_header(&mut self) -> Option<RawHeader> {
        let begin = self.at;
        let mut header = RawHeader::new_zeroed();
        while self.len.saturating_sub(self.at) >= RAW_HEADER_BYTES as u64 {
            if self.input.read_exact(header.as_mut_bytes()).is_err() {
                self.note(self.at, DamageKind::Unreadable, None);
                self.at = self.len;
                return None;
            }
            if header.is_sound() {
                self.note_garbage(begin, self.at);
                self.at += RAW_HEADER_BYTES as u64;
                return Some(header);
            }
            self.search();
        }
        let left = self.len.saturating_sub(begin);
        if left > 0 && !self.is_rest_of_truncated_block(begin) {
            // A remainder shorter than a header is a truncated header.
            if left < RAW_HEADER_BYTES as u64 {
                self.note(begin, DamageKind::Truncated, None);
            } else {
                self.note_garbage(begin, self.len);
            }
        }
        self.at = self.len;
        None
    }

    /// True if the bytes from `at` on belong to a block already noted as truncated.
    fn is_rest_of_truncated_block(&self, at: u64) -> bool {
        self.damage.last().is_some_and(|damage| {
            damage.what == DamageKind::Truncated && damage.offset + RAW_HEADER_BYTES as u64 == at
        })
    }

    /// Moves to the next offset after `at` with a valid block header. Invalid occurrences of the
    /// block magic are skipped within this loop: a file may consist of them.
    fn search(&mut self) {
        let magic = crate::block::BLOCK_MAGIC.to_le_bytes();
        let mut window = vec![0u8; 1 << 16];
        let mut from = self.at + 1;
        loop {
            self.resume_at(from);
            let Ok(read) = read_up_to(&mut self.input, &mut window) else {
                self.at = self.len;
                return;
            };
            if read < magic.len() {
                self.resume_at(self.len);
                return;
            }
            let rest = &window[..read];
            let found = rest.windows(magic.len()).enumerate().position(|(at, bytes)| {
                // A header that extends beyond the window is checked after seeking to it.
                bytes == magic
                    && RawHeader::read_from_prefix(&rest[at..])
                        .map_or(true, |(header, _)| header.is_sound())
            });
            if let Some(found) = found {
                self.resume_at(from + found as u64);
                return;
            }
            from += (read - (magic.len() - 1)) as u64;
        }
    }

    fn resume_at(&mut self, at: u64) {
        self.at = at;
        if self.input.seek(SeekFrom::Start(at)).is_err() {
            self.note(at, DamageKind::Unreadable, None);
            self.at = self.len;
        }
    }

    fn note_sequence(&mut self, block: u64, sequence: u32) {
        if sequence > self.sequence {
            let blocks = sequence - self.sequence;
            // Garbage has already been noted; this adds the number of blocks it contained.
            self.note(block, DamageKind::Missing { blocks }, None);
        }
        self.sequence = sequence.wrapping_add(1);
    }

    fn note_garbage(&mut self, from: u64, to: u64) {
        if to > from {
            self.note(from, DamageKind::Garbage { bytes: to - from }, None);
        }
    }

    fn note(&mut self, offset: u64, what: DamageKind, records: Option<u32>) {
        self.damage.push(Damage { offset, what, records });
    }
}

pub(crate) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

pub(crate) fn read_header(input: &mut impl Read, path: &Path) -> Result<(Header, u64), ReadError> {
    let path = || path.to_owned();
    let unreadable = |source| ReadError::Io { path: path(), source };
    let mut prefix = [0u8; PREFIX_BYTES];
    let read = read_up_to(input, &mut prefix).map_err(unreadable)?;
    if read < MAGIC.len() || prefix[..MAGIC.len()] != MAGIC {
        return Err(ReadError::Foreign { path: path(), found: looks_like(&prefix[..read]) });
    }
    let no_header = |why: &str| ReadError::Header { path: path(), why: why.into() };
    if read < PREFIX_BYTES {
        return Err(no_header("it is truncated"));
    }
    let word = |at: usize| u32::read_from_bytes(&prefix[at..at + 4]).unwrap_or_default();
    let (version, byte_order, bytes, crc) = (word(8), word(12), word(16), word(20));
    if byte_order == BYTE_ORDER.swap_bytes() {
        return Err(ReadError::ByteOrder { path: path() });
    }
    if version > FORMAT_VERSION {
        return Err(ReadError::Newer { path: path(), version });
    }
    if version == 0 || byte_order != BYTE_ORDER || bytes as usize > HEADER_BYTES_MAX {
        return Err(no_header("it is damaged"));
    }
    // Grows with the bytes read, so a short file that claims a long header allocates little.
    let mut json = Vec::new();
    input.take(u64::from(bytes)).read_to_end(&mut json).map_err(unreadable)?;
    if json.len() < bytes as usize {
        return Err(no_header("it is truncated"));
    }
    if crc32c::crc32c(&json) != crc {
        return Err(no_header("its checksum is wrong"));
    }
    let header: Header =
        serde_json::from_slice(&json).map_err(|error| no_header(&error.to_string()))?;
    if header.wire_version > WIRE_VERSION {
        return Err(ReadError::NewerRecords { path: path(), version: header.wire_version });
    }
    Ok((header, (PREFIX_BYTES + json.len()) as u64))
}

fn looks_like(prefix: &[u8]) -> &'static str {
    match prefix {
        [] => "it is empty",
        [0x7f, b'E', b'L', b'F', ..] => "it is an ELF file",
        [b'P', b'E', b'R', b'F', ..] => "it is perf data",
        [0x1f, 0x8b, ..] => "it is compressed with gzip: decompress it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed with zstd: decompress it first",
        [b'{', ..] => "it looks like JSON",
        [0x89, b'P', b'T', b'R', b'C', ..] => "its line endings were converted during a transfer",
        _ => "it does not begin with the bytes of a trace",
    }
}
