//! Following a trace that grows, is cut, damaged or replaced.

use std::cell::RefCell;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;

use proctrace_trace::{
    Block, BlockInfo, DamageKind, Ended, FollowError, Follower, Header, MAGIC, ReadError, Reader,
    RecorderUsage, Skipped, Trailer, Writer,
};
use proctrace_wire::layout::{Again, Head};
use proctrace_wire::{IntoBytes, Kind, Stream};
use proptest::prelude::*;

/// A file that grows while it is open.
#[derive(Debug, Clone, Default)]
struct Growing {
    bytes: Rc<RefCell<Vec<u8>>>,
    at: u64,
}

impl Growing {
    fn with(bytes: &[u8]) -> Self {
        Self { bytes: Rc::new(RefCell::new(bytes.to_vec())), at: 0 }
    }

    fn append(&self, bytes: &[u8]) {
        self.bytes.borrow_mut().extend_from_slice(bytes);
    }
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes.borrow();
        let at = usize::try_from(self.at).unwrap().min(bytes.len());
        let read = (&bytes[at..]).read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Growing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(by) => (self.bytes.borrow().len() as u64).saturating_add_signed(by),
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

/// The header of a real recording, in which only the start differs.
fn header(started_ns: u64) -> Header {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    let mut header = Reader::open(traces.join("tour-5.ptrace")).unwrap().header().clone();
    header.started_ns = started_ns;
    header.knowledge.clear();
    header.hooks.clear();
    header
}

fn trailer() -> Trailer {
    Trailer {
        ended_ns: 99,
        ended: Ended::Interrupted,
        payload: None,
        tasks: 3,
        records: Default::default(),
        losses: Vec::new(),
        cgroup: None,
        machine: None,
        recorder: RecorderUsage::default(),
        programs: Vec::new(),
        job: std::collections::BTreeMap::new(),
        held_up: None,
        of_node: None,
    }
}

fn record(number: u32) -> Vec<u8> {
    let head = Head { kind: Kind::LookupAgain as u16, size: 24, task: 1, time_ns: number.into() };
    Again { head, number, pad: 0 }.as_bytes().to_vec()
}

/// A trace of some blocks, the contents of these, and where its first block begins.
fn trace() -> (Vec<u8>, Vec<Block>, usize) {
    let mut writer = Writer::new(Vec::new(), &header(2)).unwrap();
    let begin = usize::try_from(writer.written_bytes()).unwrap();
    let mut blocks = Vec::new();
    for number in 0..5 {
        let stream = Stream::ALL[number % 2];
        let count = u32::try_from(number).unwrap() + 1;
        let bytes: Vec<u8> = (0..count).flat_map(|n| record(n * 7919 + count)).collect();
        let (first, last) = (u64::from(count), u64::from(count) + 5);
        writer.append(stream, count, first, last, &bytes).unwrap();
        blocks.push((stream, bytes));
    }
    let (bytes, _) = writer.finish(&trailer()).unwrap();
    let mut reader = Reader::new(Cursor::new(&bytes), "x").unwrap();
    let read: Vec<Block> = std::iter::from_fn(|| reader.next_block()).collect();
    let contents: Vec<_> = read.iter().map(|b| (b.info.stream, b.bytes.clone())).collect();
    assert_eq!(contents, blocks);
    (bytes, read, begin)
}

/// The blocks that are there.
fn rest<R: Read + Seek>(follower: &mut Follower<R>) -> Vec<Block> {
    follower.refresh().unwrap();
    let mut blocks = Vec::new();
    while let Some((info, bytes)) = follower.next_block(|_| true).unwrap() {
        blocks.push(Block { info, bytes: bytes.to_vec() });
    }
    blocks
}

#[test]
fn a_block_comes_when_its_last_byte_is_there() {
    let (bytes, blocks, begin) = trace();
    let file = Growing::with(&bytes[..begin]);
    let mut follower = Follower::new(file.clone(), "x").unwrap();
    let mut ends = Vec::new();
    let mut come = Vec::new();
    for (at, byte) in bytes.iter().enumerate().skip(begin) {
        assert!(follower.trailer().is_none());
        file.append(&[*byte]);
        for block in rest(&mut follower) {
            come.push(block);
            ends.push(at + 1);
        }
    }
    assert_eq!(come, blocks);
    assert_eq!(follower.trailer(), Some(&trailer()));
    assert_eq!(follower.skipped(), Skipped::default());
    // Each as soon as it can be read: its end is where the next begins.
    let sizes = blocks.iter().map(|block| 48 + block.info.stored_bytes as usize);
    let expected: Vec<usize> = sizes
        .scan(begin, |end, size| {
            *end += size;
            Some(*end)
        })
        .collect();
    assert_eq!(ends, expected);
    assert_eq!(follower.position_bytes(), bytes.len() as u64);
}

#[test]
fn a_trace_that_nobody_completes_has_what_a_reader_finds() {
    let (bytes, _, begin) = trace();
    for cut in begin..bytes.len() {
        let mut reader = Reader::new(Cursor::new(&bytes[..cut]), "x").unwrap();
        let expected: Vec<Block> = std::iter::from_fn(|| reader.next_block()).collect();
        let mut follower = Follower::new(Cursor::new(&bytes[..cut]), "x").unwrap();
        let mut come = rest(&mut follower);
        while follower.skip_incomplete() {
            come.extend(rest(&mut follower));
        }
        assert_eq!(come, expected, "cut at {cut}");
        assert_eq!(follower.position_bytes(), cut as u64);
        let is_between = reader.damage().is_empty();
        assert_eq!(follower.skipped() == Skipped::default(), is_between, "cut at {cut}");
    }
}

#[test]
fn a_header_that_is_not_there_yet_is_an_error() {
    let (bytes, _, begin) = trace();
    for cut in 0..begin {
        let error = Follower::new(Cursor::new(&bytes[..cut]), "x").unwrap_err();
        match cut < MAGIC.len() {
            true => assert!(matches!(error, ReadError::Foreign { .. }), "{cut}: {error}"),
            false => assert!(matches!(error, ReadError::Header { .. }), "{cut}: {error}"),
        }
    }
}

#[test]
fn unwanted_blocks_are_passed_over() {
    let (bytes, blocks, _) = trace();
    let mut follower = Follower::new(Cursor::new(bytes), "x").unwrap();
    follower.refresh().unwrap();
    let mut come = 0;
    let wanted = |info: &BlockInfo| info.stream == Stream::Lookups;
    while let Some((info, _)) = follower.next_block(wanted).unwrap() {
        assert_eq!(info.stream, Stream::Lookups);
        come += 1;
    }
    assert_eq!(come, blocks.iter().filter(|block| block.info.stream == Stream::Lookups).count());
    assert!(follower.trailer().is_some());
}

#[test]
fn damage_costs_only_the_block_that_has_it() {
    let (mut bytes, blocks, begin) = trace();
    let second = begin + 48 + blocks[0].info.stored_bytes as usize;
    bytes[second + 48] ^= 1;
    let mut follower = Follower::new(Cursor::new(&bytes), "x").unwrap();
    let mut expected = blocks.clone();
    expected.remove(1);
    assert_eq!(rest(&mut follower), expected);
    assert_eq!(follower.skipped().blocks, 1);
    assert_eq!(follower.skipped().records, 2);
    // In its header: the next one is searched for, and its number says that one is missing.
    bytes[second + 20] ^= 1;
    let mut follower = Follower::new(Cursor::new(&bytes), "x").unwrap();
    assert_eq!(rest(&mut follower), expected);
    let size = 48 + u64::from(blocks[1].info.stored_bytes);
    assert_eq!(follower.skipped(), Skipped { bytes: size, blocks: 1, records: 0 });
}

/// Where each block begins, and where the last one ends.
fn begins(blocks: &[Block], begin: usize) -> Vec<usize> {
    let sizes = blocks.iter().map(|block| 48 + block.info.stored_bytes as usize);
    let ends = sizes.scan(begin, |at, size| {
        *at += size;
        Some(*at)
    });
    [begin].into_iter().chain(ends).collect()
}

/// The amounts that are skipped are exact, also where bytes are only like a block.
#[test]
fn what_is_skipped_is_counted() {
    let (bytes, blocks, begin) = trace();
    let at = begins(&blocks, begin);
    // In the contents of the second block.
    let mut damaged = bytes.clone();
    damaged[at[1] + 48] ^= 1;
    let mut follower = Follower::new(Cursor::new(&damaged), "x").unwrap();
    rest(&mut follower);
    let size = (at[2] - at[1]) as u64;
    assert_eq!(follower.skipped(), Skipped { bytes: size, blocks: 1, records: 2 });
    assert_eq!(follower.len_bytes(), bytes.len() as u64);
    // Bytes between two blocks that begin like one.
    let like = b"..PTBK..........................................................PTBK";
    let mut longer = bytes.clone();
    longer.splice(at[1]..at[1], like.iter().copied());
    let mut follower = Follower::new(Cursor::new(&longer), "x").unwrap();
    assert_eq!(rest(&mut follower), blocks);
    assert_eq!(follower.skipped(), Skipped { bytes: like.len() as u64, ..Skipped::default() });
    assert!(follower.trailer().is_some());
}

/// Of a block that is not complete, only the header is passed over: what follows it may be blocks.
#[test]
fn a_block_within_an_incomplete_one_is_found() {
    let mut writer = Writer::new(Vec::new(), &header(2)).unwrap();
    let begin = usize::try_from(writer.written_bytes()).unwrap();
    let mut noise = 1_u64;
    let mut noise = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 56) as u8
    };
    let large: Vec<u8> = (0..2_000).map(|_| noise()).collect();
    writer.append(Stream::Lifecycle, 7, 1, 2, &large).unwrap();
    let second = usize::try_from(writer.written_bytes()).unwrap();
    writer.append(Stream::Lookups, 1, 1, 2, &record(5)).unwrap();
    let (mut bytes, _) = writer.finish(&trailer()).unwrap();
    // The contents of the first are lost, so that the others lie where they should be.
    bytes.drain(begin + 48..second);
    let mut follower = Follower::new(Cursor::new(&bytes), "x").unwrap();
    assert!(rest(&mut follower).is_empty());
    assert!(follower.skip_incomplete());
    let found = rest(&mut follower);
    assert_eq!(found.iter().map(|block| &*block.bytes).collect::<Vec<_>>(), [record(5)]);
    assert_eq!(follower.trailer(), Some(&trailer()));
    assert_eq!(follower.skipped(), Skipped { bytes: 48, blocks: 1, records: 7 });
    // Nothing but its header is there, or not even that.
    for (left, records) in [(48, 7), (47, 0)] {
        let mut follower = Follower::new(Cursor::new(&bytes[..begin + left]), "x").unwrap();
        assert!(rest(&mut follower).is_empty());
        assert!(follower.skip_incomplete() && !follower.skip_incomplete());
        assert_eq!(follower.skipped(), Skipped { bytes: left as u64, blocks: 1, records });
    }
}

/// A block of a stream that is not known is no trailer, whatever is in it.
#[test]
fn a_trailer_is_told_by_its_stream() {
    let (mut bytes, blocks, begin) = trace();
    let last = *begins(&blocks, begin).last().unwrap();
    bytes[last + 4] = 77;
    let crc = crc32c::crc32c(&bytes[last..last + 44]);
    bytes[last + 44..last + 48].copy_from_slice(&crc.to_le_bytes());
    let mut follower = Follower::new(Cursor::new(&bytes), "x").unwrap();
    assert_eq!(rest(&mut follower), blocks);
    assert!(follower.trailer().is_none());
    assert_eq!(follower.skipped().blocks, 1);
    let mut reader = Reader::new(Cursor::new(&bytes), "x").unwrap();
    while reader.next_block().is_some() {}
    assert!(reader.trailer().is_none());
    let damage: Vec<DamageKind> = reader.damage().iter().map(|damage| damage.what).collect();
    assert!(damage.contains(&DamageKind::UnknownStream), "{damage:?}");
    assert_eq!(reader.position_bytes(), bytes.len() as u64);
}

#[test]
fn contents_that_arrive_after_the_length_are_waited_for() {
    let (bytes, blocks, begin) = trace();
    let end = begin + 48 + blocks[0].info.stored_bytes as usize;
    let mut zeros = bytes[..end].to_vec();
    zeros[begin + 60..].fill(0);
    let file = Growing::with(&zeros);
    let mut follower = Follower::new(file.clone(), "x").unwrap();
    assert!(rest(&mut follower).is_empty());
    *file.bytes.borrow_mut() = bytes;
    assert_eq!(rest(&mut follower), blocks);
    assert_eq!(follower.skipped(), Skipped::default());
}

#[test]
fn a_file_that_is_overwritten_is_not_followed() {
    let (bytes, _, begin) = trace();
    let file = Growing::with(&bytes);
    let mut follower = Follower::new(file.clone(), "x").unwrap();
    rest(&mut follower);
    file.bytes.borrow_mut().truncate(begin);
    assert!(matches!(follower.refresh(), Err(FollowError::Overwritten { .. })));
    // Another recording, as long or longer.
    let mut writer = Writer::new(Vec::new(), &header(3)).unwrap();
    writer.append(Stream::Waits, 1, 0, 0, &vec![7; bytes.len() * 40]).unwrap();
    let mut other = writer.into_inner();
    other.resize(other.len().max(bytes.len() + 1), 0);
    *file.bytes.borrow_mut() = other;
    let error = follower.refresh().unwrap_err();
    assert_eq!(error.to_string(), "x was overwritten while it was being read");
}

#[test]
fn a_file_of_another_name_is_still_followed() {
    let (bytes, blocks, begin) = trace();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.ptrace");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&bytes[..begin]).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    assert!(!follower.is_replaced());
    std::fs::rename(&path, directory.path().join("job.ptrace.old")).unwrap();
    assert!(follower.is_replaced());
    std::fs::write(&path, "another").unwrap();
    assert!(follower.is_replaced());
    file.write_all(&bytes[begin..]).unwrap();
    assert_eq!(rest(&mut follower), blocks);
}

#[test]
fn what_cannot_grow_is_not_opened() {
    for path in ["/", "/dev/null", "/nonexistent"] {
        assert!(matches!(Follower::open(path), Err(ReadError::Io { .. })), "{path}");
    }
}

proptest! {
    /// Whatever becomes of the bytes behind the header: what comes is what was written, and reading
    /// ends.
    #[test]
    fn hostile_bytes_cost_blocks_and_nothing_else(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        steps in proptest::collection::vec(1usize..400, 0..12),
        inserted in proptest::collection::vec(any::<u8>(), 0..80),
        place in any::<prop::sample::Index>(),
    ) {
        let (mut bytes, blocks, begin) = trace();
        for (at, byte) in damage {
            let at = begin + at.index(bytes.len() - begin);
            bytes[at] = byte;
        }
        let place = begin + place.index(bytes.len() - begin);
        bytes.splice(place..place, inserted);
        let file = Growing::with(&bytes[..begin]);
        let mut follower = Follower::new(file.clone(), "x").unwrap();
        let mut come = Vec::new();
        let mut left = &bytes[begin..];
        for step in steps {
            let (now, later) = left.split_at(step.min(left.len()));
            file.append(now);
            left = later;
            come.extend(rest(&mut follower));
        }
        file.append(left);
        come.extend(rest(&mut follower));
        while follower.skip_incomplete() {
            come.extend(rest(&mut follower));
        }
        for block in come {
            prop_assert!(blocks.contains(&block));
        }
        prop_assert!(follower.position_bytes() <= bytes.len() as u64);
    }

    #[test]
    fn blocks_of_any_bytes_do_not_make_it_panic(garbage: Vec<u8>) {
        let (bytes, _, begin) = trace();
        let mut bytes = bytes[..begin].to_vec();
        bytes.extend_from_slice(b"PTBK");
        bytes.extend(garbage);
        let mut follower = Follower::new(Cursor::new(&bytes), "x").unwrap();
        prop_assert!(rest(&mut follower).is_empty());
        while follower.skip_incomplete() {
            prop_assert!(rest(&mut follower).is_empty());
        }
        prop_assert_eq!(follower.position_bytes(), bytes.len() as u64);
    }
}
