//! Damage that a trace survives: truncation at every byte, flipped bits, lost and foreign data.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use proctrace_trace::{
    Block, BlockInfo, Damage, DamageKind, ReadError, Reader, Spool, Trailer, WriteError, Writer,
};
use proctrace_wire::Stream;
use proptest::prelude::*;

use crate::common::{assert_genuine, block_ends, contents, header, look_up, read, trace, trailer};

#[test]
fn an_intact_trace_comes_back_whole() {
    let (blocks, reader) = read(&trace()).unwrap();
    assert_eq!(blocks.len(), 3);
    assert_genuine(&blocks);
    assert_eq!(reader.header(), &header());
    assert_eq!(reader.trailer(), Some(&trailer()));
    assert_eq!(reader.damage(), []);
}

#[test]
fn streams_can_be_read_alone_and_twice() {
    let mut reader = Reader::new(Cursor::new(trace()), "test.ptrace").unwrap();
    for _ in 0..2 {
        let mut records = Vec::new();
        while let Some(block) = reader.next_block_where(|info| info.stream == Stream::Lifecycle) {
            records.push(block.info.records);
        }
        assert_eq!(records, [1, 3]);
        assert_eq!(reader.trailer(), Some(&trailer()));
        assert_eq!(reader.damage(), []);
        reader.rewind();
    }
}

#[test]
fn a_cut_at_any_byte_costs_at_most_the_block_it_hits() {
    let whole = trace();
    let ends = block_ends(&whole);
    for cut in 0..whole.len() {
        match read(&whole[..cut]) {
            Err(error) => assert!(cut < ends[0], "cut at {cut}: {error}"),
            Ok((blocks, reader)) => {
                assert_genuine(&blocks);
                let whole_blocks = ends.iter().filter(|end| **end <= cut).count() - 1;
                assert_eq!(blocks.len(), whole_blocks.min(3), "cut at {cut}");
                assert_eq!(reader.trailer(), None, "cut at {cut}");
                let at_an_end = ends.contains(&cut);
                let damage = reader.damage();
                assert_eq!(damage.is_empty(), at_an_end, "cut at {cut}: {damage:?}");
                assert!(damage.iter().all(|d| d.what == DamageKind::Truncated), "{damage:?}");
                assert!(damage.len() <= 1, "cut at {cut}: {damage:?}");
            }
        }
    }
}

#[test]
fn any_flipped_byte_is_noticed_and_spares_the_other_blocks() {
    let whole = trace();
    let first_block = block_ends(&whole)[0];
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        match read(&bytes) {
            Err(_) => assert!(at < first_block, "byte {at}"),
            Ok((blocks, reader)) => {
                assert!(at >= first_block, "byte {at} of the header went unnoticed");
                assert_genuine(&blocks);
                let kept = blocks.len() + usize::from(reader.trailer().is_some());
                assert_eq!(kept, 3, "byte {at}: {:?}", reader.damage());
                // Losing all bytes of the trailer leaves no trace of it.
                assert!(!reader.damage().is_empty(), "byte {at}");
            }
        }
    }
}

#[test]
fn a_stretch_lost_from_the_middle_is_counted() {
    let whole = trace();
    let ends = block_ends(&whole);
    let mut bytes = whole[..ends[0]].to_vec();
    bytes.extend_from_slice(b"PTBK is not enough to be a block, nor is this much text");
    bytes.extend_from_slice(&whole[ends[1]..]);
    let (blocks, reader) = read(&bytes).unwrap();
    assert_genuine(&blocks);
    assert_eq!(blocks.len(), 2);
    let what: Vec<_> = reader.damage().iter().map(|damage| damage.what).collect();
    assert_eq!(what, [DamageKind::Garbage { bytes: 55 }, DamageKind::Missing { blocks: 1 }]);
    assert!(reader.trailer().is_some());
}

/// Bytes of the header of a block, which its magic begins.
const BLOCK_HEADER_BYTES: usize = 48;

/// Bytes lost from the middle may take all of a block but its header with them; a header that is cut off behind the
/// blocks after it is another truncation.
#[test]
fn a_cut_header_behind_a_cut_block_is_noted_as_well() {
    let whole = trace();
    let ends = block_ends(&whole);
    let (longest, after) = (ends[2], ends[3]);
    let mut bytes = whole[..longest + BLOCK_HEADER_BYTES].to_vec();
    bytes.extend_from_slice(&whole[after..]);
    bytes.extend_from_slice(&whole[ends[0]..ends[0] + 20]);
    assert!(bytes.len() < after, "the block must seem to go beyond the end");
    let (blocks, reader) = read(&bytes).unwrap();
    assert_genuine(&blocks);
    assert_eq!((blocks.len(), reader.trailer().is_some()), (2, true));
    let damage: Vec<_> = reader.damage().iter().map(|one| (one.offset, one.what)).collect();
    let cut = [longest, bytes.len() - 20].map(|at| (at as u64, DamageKind::Truncated));
    assert_eq!(damage, cut);
}

/// The bytes that a block takes in the file: fewer than its records have, if they can be compressed; the same
/// number if not, however large the blocks before it were.
#[test]
fn blocks_take_no_more_than_their_records() {
    let noise = contents().remove(2).1;
    let (text, records) = (vec![b'a'; 4096], (0..300).flat_map(look_up).collect::<Vec<_>>());
    let written = [&noise[..1], &noise, &text, &noise[..7], &records, &noise, &[]];
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for (at, bytes) in (1u32..).zip(written) {
        writer.append(Stream::Lifecycle, at, 1, 2, bytes).unwrap();
    }
    let (blocks, reader) = read(&writer.finish(&trailer()).unwrap().0).unwrap();
    assert_eq!(reader.damage(), []);
    for (block, bytes) in blocks.iter().zip(written) {
        assert_eq!(block.bytes, bytes);
    }
    let stored: Vec<_> = blocks.iter().map(|block| block.info.stored_bytes as usize).collect();
    let expected: [(usize, usize); 7] = [
        (1, 1),
        (noise.len(), noise.len()),
        (1, text.len() / 100),
        (7, 7),
        (1, records.len() / 4),
        (noise.len(), noise.len()),
        (0, 0),
    ];
    for (stored, (least, most)) in stored.iter().zip(expected) {
        assert!((least..=most).contains(stored), "{stored} of {least}..={most}");
    }
    assert_eq!(stored.len(), expected.len());
}

/// Gives a byte at a time, and between any two of them is interrupted by a signal; at last it fails.
struct Interrupted {
    bytes: Cursor<Vec<u8>>,
    is_interrupted: bool,
    fails_at: u64,
}

impl io::Read for Interrupted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted ^= true;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.bytes.position() >= self.fails_at {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = buffer.len().min(1);
        io::Read::read(&mut self.bytes, &mut buffer[..length])
    }
}

impl io::Seek for Interrupted {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        io::Seek::seek(&mut self.bytes, to)
    }
}

#[test]
fn interrupted_reads_are_repeated_and_others_fail() {
    let input =
        |fails_at| Interrupted { bytes: Cursor::new(trace()), is_interrupted: false, fails_at };
    let mut reader = Reader::new(input(u64::MAX), "x").unwrap();
    let blocks: Vec<Block> = std::iter::from_fn(|| reader.next_block()).collect();
    assert_eq!(blocks.len(), contents().len());
    assert_genuine(&blocks);
    assert_eq!(reader.damage(), []);
    assert!(matches!(Reader::new(input(9), "x"), Err(ReadError::Io { .. })));
}

/// Blocks behind bytes of no block are found, wherever they lie in the buffer of the search.
#[test]
fn blocks_behind_garbage_are_found() {
    let whole = trace();
    let first = block_ends(&whole)[0];
    for bytes in (65_480..65_600).chain([1, 47, 48, 131_060, 131_070, 131_080]) {
        let mut longer = whole.clone();
        longer.splice(first..first, std::iter::repeat_n(b'P', bytes));
        let (blocks, reader) = read(&longer).unwrap();
        assert_eq!(blocks.len(), contents().len(), "{bytes}");
        let damage: Vec<DamageKind> = reader.damage().iter().map(|damage| damage.what).collect();
        assert_eq!(damage, [DamageKind::Garbage { bytes: bytes as u64 }]);
    }
    // At the end, as much as a header is garbage, and less a header that was cut.
    for (bytes, expected) in [(48, DamageKind::Garbage { bytes: 48 }), (47, DamageKind::Truncated)]
    {
        let longer = [&whole[..], &vec![b'x'; bytes]].concat();
        let (_, reader) = read(&longer).unwrap();
        assert_eq!(reader.damage().last().map(|damage| damage.what), Some(expected), "{bytes}");
    }
}

#[test]
fn missing_blocks_are_counted() {
    let mut whole = trace();
    let ends = block_ends(&whole);
    // The second and the third of three are gone: the trailer has the number 3.
    whole.drain(ends[1]..ends[3]);
    let (blocks, reader) = read(&whole).unwrap();
    assert_eq!(blocks.len(), 1);
    let damage: Vec<DamageKind> = reader.damage().iter().map(|damage| damage.what).collect();
    assert_eq!(damage, [DamageKind::Missing { blocks: 2 }]);
}

/// A block has as many records as fit, and no more.
#[test]
fn the_spool_fills_blocks() {
    let records = (512 << 10) / 8;
    let mut spool = Spool::new(Writer::new(Vec::new(), &header()).unwrap()).unwrap();
    for n in 0..=records {
        spool.push(Stream::Lookups, n, &n.to_le_bytes()).unwrap();
    }
    let (bytes, _) = spool.finish(&trailer()).unwrap();
    let (blocks, _) = read(&bytes).unwrap();
    let counts: Vec<u32> = blocks.iter().map(|block| block.info.records).collect();
    assert_eq!(counts, [records as u32, 1]);
}

#[test]
fn the_spool_keeps_every_record_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spooled.ptrace");
    let writer = Writer::new(std::fs::File::create(&path).unwrap(), &header()).unwrap();
    let mut spool = Spool::new(writer).unwrap();
    for n in 0..200_000u64 {
        spool.push(Stream::Lookups, n, &n.to_le_bytes()).unwrap();
        if n % 1000 == 0 {
            spool.push(Stream::Lifecycle, n, &n.to_be_bytes()).unwrap();
        }
        if n == 777 {
            spool.flush().unwrap();
        }
    }
    spool.finish(&trailer()).unwrap();

    let mut reader = Reader::open(&path).unwrap();
    let (mut lookups, mut lifecycle) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        match block.info.stream {
            Stream::Lookups => lookups.extend(block.bytes),
            _ => lifecycle += block.info.records,
        }
    }
    let expected: Vec<u8> = (0..200_000u64).flat_map(u64::to_le_bytes).collect();
    assert!(lookups == expected);
    assert_eq!(lifecycle, 200);
    assert_eq!(reader.damage(), []);
}

#[test]
fn a_full_disk_is_told_by_finish() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert!(Writer::new(full, &header()).is_err());

    struct FullAfter(usize);
    impl std::io::Write for FullAfter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut spool = Spool::new(Writer::new(FullAfter(10_000), &header()).unwrap()).unwrap();
    let mut noise = 1u64;
    for n in 0..1_000_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if spool.push(Stream::Lookups, n, &noise.to_le_bytes()).is_err() {
            break;
        }
    }
    let error = spool.finish(&trailer()).map(|_| ()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("no storage space"), "{source}");
}

/// An output of which one write fails, after the half of it or all at once.
struct FailsAt {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Writes until then.
    left: usize,
    is_cut: bool,
    errno: i32,
}

impl Write for FailsAt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = bytes.len();
        if self.left == 0 {
            if !std::mem::take(&mut self.is_cut) {
                return Err(io::Error::from_raw_os_error(self.errno));
            }
            taken /= 2;
        } else {
            self.left -= 1;
        }
        self.kept.lock().unwrap().extend(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a trace as a recorder does; returns the error number, and what has been written.
fn write_failing_at(left: usize, is_cut: bool, errno: i32) -> (Option<i32>, Vec<u8>) {
    let kept = Arc::default();
    let out = FailsAt { kept: Arc::clone(&kept), left, is_cut, errno };
    let result = Writer::new(out, &header()).and_then(|writer| {
        let mut spool = Spool::new(writer)?;
        for (stream, bytes) in contents() {
            // That the writing has failed may be known here, and why at the end.
            let _ = spool.push(stream, 1, &bytes).and_then(|()| spool.flush());
        }
        spool.finish(&trailer()).map(drop)
    });
    let errno = result.err().map(|error| match error {
        WriteError::Io(error) => error.raw_os_error().unwrap(),
        error => panic!("{error}"),
    });
    (errno, Arc::try_unwrap(kept).unwrap().into_inner().unwrap())
}

#[test]
fn whichever_write_fails_the_trace_reads_up_to_there() {
    const ENOSPC: i32 = 28;
    const EIO: i32 = 5;
    let expected: Vec<Vec<u8>> = contents().into_iter().map(|(_, bytes)| bytes).collect();
    let read_back = |bytes: &[u8]| {
        let (blocks, reader) = read(bytes).unwrap();
        let is_whole = reader.trailer().is_some();
        (blocks.into_iter().map(|block| block.bytes).collect::<Vec<_>>(), is_whole)
    };
    for (errno, is_cut) in [(ENOSPC, false), (ENOSPC, true), (EIO, false), (EIO, true)] {
        let (failed, bytes) = write_failing_at(0, is_cut, errno);
        assert_eq!(failed, Some(errno));
        assert!(read(&bytes).is_err(), "half a header is no trace");
        // The header, the blocks, and the trailer.
        for blocks in 0..=expected.len() {
            let (failed, bytes) = write_failing_at(1 + blocks, is_cut, errno);
            assert_eq!(failed, Some(errno));
            assert_eq!(read_back(&bytes), (expected[..blocks].to_vec(), false));
        }
        let (failed, bytes) = write_failing_at(2 + expected.len(), is_cut, errno);
        assert_eq!((failed, read_back(&bytes)), (None, (expected.clone(), true)));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..4000), real: bool) {
        if real {
            let whole = trace();
            let at = bytes.len() % whole.len();
            bytes.splice(0..0, whole[..at].iter().copied());
        }
        let _ = read(&bytes);
    }

    #[test]
    fn shuffled_pieces_of_traces_give_only_genuine_blocks(
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
    ) {
        let whole = trace();
        let first_block = block_ends(&whole)[0];
        let mut bytes = whole[..first_block].to_vec();
        for (from, to) in cuts {
            let (from, to) = (from.index(whole.len()), to.index(whole.len()));
            bytes.extend_from_slice(&whole[from.min(to)..from.max(to)]);
        }
        let (blocks, _) = read(&bytes).unwrap();
        assert_genuine(&blocks);
    }
}

/// The result of reading: blocks, damage, trailer, and the reader's position.
type Read = (Vec<(BlockInfo, Vec<u8>)>, Vec<Damage>, Option<Trailer>, u64);

/// Reads twice, to detect state left behind by the first time.
fn read_with(bytes: &[u8], stream: Option<Stream>, threads: Option<usize>) -> Option<Read> {
    let mut reader = Reader::new(Cursor::new(bytes.to_vec()), "test.ptrace").ok()?;
    let mut blocks = Vec::new();
    for _ in 0..2 {
        blocks.clear();
        reader.rewind();
        let wanted = |info: &BlockInfo| stream.is_none_or(|stream| info.stream == stream);
        match threads {
            Some(threads) => reader
                .each_block(threads, wanted, |info, bytes| blocks.push((*info, bytes.to_vec()))),
            None => {
                while let Some(block) = reader.next_block_where(wanted) {
                    blocks.push((block.info, block.bytes));
                }
            }
        }
    }
    let trailer = reader.trailer().cloned();
    Some((blocks, reader.damage().to_vec(), trailer, reader.position_bytes()))
}

proptest! {
    #[test]
    fn threads_change_nothing_whatever_happened_to_a_trace(
        parts in proptest::collection::vec((0usize..3, 0u8..8, any::<prop::sample::Index>()), 1..24),
        cut in any::<prop::sample::Index>(),
        stream in prop_oneof![Just(None), Just(Some(Stream::Lifecycle)), Just(Some(Stream::Lookups))],
    ) {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        for (n, (part, ..)) in (1u32..).zip(&parts) {
            let (stream, bytes) = &contents()[*part];
            writer.append(*stream, n, 1, 2, bytes).unwrap();
        }
        let (mut bytes, _) = writer.finish(&trailer()).unwrap();
        let ends: Vec<usize> =
            (0..bytes.len() - 4).filter(|at| &bytes[*at..at + 4] == b"PTBK").collect();
        for ((_, accident, at), window) in parts.iter().zip(ends.windows(2)).rev() {
            let hit = window[0] + at.index(window[1] - window[0]);
            match accident {
                0 => bytes[hit] ^= 1,
                1 => drop(bytes.drain(window[0]..hit)),
                2 => drop(bytes.splice(hit..hit, *b"PTBK and more")),
                3 => {
                    let twice = bytes[window[0]..window[1]].to_vec();
                    drop(bytes.splice(window[1]..window[1], twice));
                }
                _ => {}
            }
        }
        if cut.index(3) == 0 {
            bytes.truncate(bytes.len() - cut.index(bytes.len() / 4));
        }
        let alone = read_with(&bytes, stream, None);
        for threads in [0, 1, 2, 5] {
            prop_assert_eq!(&read_with(&bytes, stream, Some(threads)), &alone);
        }
    }
}

/// Counts the bytes read.
struct Counting(Cursor<Vec<u8>>, u64);

impl std::io::Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1 += read as u64;
        Ok(read)
    }
}

impl std::io::Seek for Counting {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn what_only_begins_like_a_block_is_read_a_few_times_at_most() {
    let mut bytes = trace();
    let whole = bytes.len();
    bytes.extend(b"PTBK".repeat(100_000));
    let length = bytes.len() as u64;
    let mut input = Counting(Cursor::new(bytes), 0);
    let mut reader = Reader::new(&mut input, "test.ptrace").unwrap();
    while reader.next_block().is_some() {}
    let garbage = DamageKind::Garbage { bytes: length - whole as u64 };
    assert_eq!(reader.damage().iter().map(|damage| damage.what).collect::<Vec<_>>(), [garbage]);
    assert!(input.1 < 4 * length, "{} bytes were read of {length}", input.1);
}
