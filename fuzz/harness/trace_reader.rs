//! Any bytes as a trace file, unchanged or, depending on the first byte, with corrected checksums,
//! as an attacker would write them.

use std::io::Cursor;

use proctrace_trace::{RAW_BYTES_MAX, Reader};
use proctrace_wire::{Frames, Record};

/// Reads it twice; the results must be equal.
pub(crate) fn run(data: &[u8]) {
    let Some((mode, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if mode & 1 == 1 {
        repair(&mut bytes);
    }
    let Ok(mut reader) = Reader::new(Cursor::new(bytes), "fuzz.ptrace") else { return };
    let first = read(&mut reader);
    reader.rewind();
    assert_eq!(first, read(&mut reader));
}

fn read(reader: &mut Reader<Cursor<Vec<u8>>>) -> (u64, u64, usize, bool) {
    let (mut blocks, mut records) = (0, 0);
    while let Some(block) = reader.next_block() {
        assert!(block.bytes.len() <= RAW_BYTES_MAX);
        assert_eq!(block.bytes.len(), block.info.raw_bytes as usize);
        blocks += 1;
        for frame in Frames::new(&block.bytes) {
            records += u64::from(frame.and_then(Record::decode).is_ok());
        }
    }
    for damage in reader.damage() {
        assert!(damage.offset <= reader.len_bytes() && !damage.to_string().is_empty());
    }
    (blocks, records, reader.damage().len(), reader.trailer().is_some())
}

/// The magic number of a block, and the size of its header (crates/trace/src/block.rs).
const BLOCK: &[u8] = b"PTBK";
const BLOCK_HEAD: usize = 48;
/// Size of the file prefix (crates/trace/src/lib.rs).
const PREFIX: usize = 24;

fn repair(bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        u32::from_le_bytes(word.unwrap_or_default()) as usize
    };
    if let Some(header) = bytes.get(PREFIX..).and_then(|rest| rest.get(..number(bytes, 16))) {
        let crc = crc32c::crc32c(header);
        bytes[20..PREFIX].copy_from_slice(&crc.to_le_bytes());
    }
    // From the last to the first, because blocks may be nested.
    for at in (0..bytes.len()).rev() {
        let Some(block) = bytes[at..].get(..BLOCK_HEAD).filter(|b| b.starts_with(BLOCK)) else {
            continue;
        };
        let stored = number(block, 20);
        if let Some(body) = bytes[at + BLOCK_HEAD..].get(..stored) {
            let crc = crc32c::crc32c(body);
            bytes[at + 40..at + 44].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[at..at + 44]);
        bytes[at + 44..at + BLOCK_HEAD].copy_from_slice(&crc.to_le_bytes());
    }
}
