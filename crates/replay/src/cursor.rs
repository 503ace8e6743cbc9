//! Reading one stream of a trace, block after block.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use proctrace_trace::Reader;
use proctrace_wire::{Frames, Record, Stream};

use crate::lookups::Lookups;

/// What became of the records that were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Handed over.
    pub records: u64,
    /// Of a kind that a later version brought.
    pub unknown: u64,
    /// Not decodable, in blocks whose checksum was right: a fault of the recorder.
    pub undecodable: u64,
}

/// Hands every record of `stream` to `take`, in the order of the file. A look-up that is told by
/// number comes as the [`Record::LookupFailed`] that it repeats.
pub fn records<R: Read + Seek>(
    reader: &mut Reader<R>,
    stream: Stream,
    mut take: impl FnMut(Record<'_>),
) -> Decoded {
    let mut decoded = Decoded::default();
    let mut lookups = Lookups::default();
    while let Some(block) = reader.next_block_where(|info| info.stream == stream) {
        decode_block(&block.bytes, &mut decoded, &mut lookups, &mut take);
    }
    decoded
}

fn decode_block(
    bytes: &[u8],
    decoded: &mut Decoded,
    lookups: &mut Lookups,
    take: &mut impl FnMut(Record<'_>),
) {
    for frame in Frames::new(bytes) {
        match frame.and_then(Record::decode) {
            Ok(Record::Unknown(_)) => decoded.unknown += 1,
            Ok(record) => {
                decoded.records += 1;
                take(lookups.recall(record));
            }
            Err(_) => decoded.undecodable += 1,
        }
    }
}

/// A stream with a reader of its own, so that several can be merged.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) reader: Reader<BufReader<File>>,
    stream: Stream,
    lookups: Lookups,
    pub(crate) decoded: Decoded,
}

impl Cursor {
    pub(crate) fn new(reader: Reader<BufReader<File>>, stream: Stream) -> Self {
        Self { reader, stream, lookups: Lookups::default(), decoded: Decoded::default() }
    }

    /// Hands the records of the next block to `take`; false at the end.
    pub(crate) fn next_block(&mut self, mut take: impl FnMut(Record<'_>)) -> bool {
        let stream = self.stream;
        let Some(block) = self.reader.next_block_where(|info| info.stream == stream) else {
            return false;
        };
        decode_block(&block.bytes, &mut self.decoded, &mut self.lookups, &mut take);
        true
    }
}
