//! Reading one stream of a trace, block after block.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use proctrace_trace::Reader;
use proctrace_wire::layout::MissFixed;
use proctrace_wire::{Frames, Record, Stream};

use crate::lookups::{Lookup, Lookups, Recalled};

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
/// number comes as the [`Record::LookupFailed`] that it repeats. Blocks are unpacked on all cores.
pub fn records<R: Read + Seek>(
    reader: &mut Reader<R>,
    stream: Stream,
    mut take: impl FnMut(Record<'_>),
) -> Decoded {
    let mut decoded = Decoded::default();
    let mut lookups = Lookups::default();
    let threads = threads_for(reader);
    reader.each_block(
        threads,
        |info| info.stream == stream,
        |_, bytes| decode_block(bytes, &mut decoded, &mut lookups, &mut take),
    );
    decoded
}

/// Hands every failed look-up to `take`, in the order of the file.
///
/// Most of them repeat another that was told in full: `make` is asked only of those that are, and
/// what it makes of one comes with each that repeats it.
pub fn lookups<R: Read + Seek, T: Copy>(
    reader: &mut Reader<R>,
    mut make: impl FnMut(&MissFixed, &[u8]) -> T,
    mut take: impl FnMut(Lookup<'_, T>),
) -> Decoded {
    let mut decoded = Decoded::default();
    let mut known = Lookups::default();
    let threads = threads_for(reader);
    reader.each_block(
        threads,
        |info| info.stream == Stream::Lookups,
        |_, bytes| {
            for frame in Frames::new(bytes) {
                // There are a hundred of these for each of all others.
                if let Ok(frame) = frame
                    && let Some(again) = frame.lookup_again()
                {
                    decoded.records += 1;
                    take(known.in_full(again, &mut make));
                    continue;
                }
                match frame.and_then(Record::decode) {
                    Ok(Record::Unknown(_)) => decoded.unknown += 1,
                    Ok(record) => {
                        decoded.records += 1;
                        if let Recalled::Lookup(lookup) = known.recall(record, &mut make) {
                            take(lookup);
                        }
                    }
                    Err(_) => decoded.undecodable += 1,
                }
            }
        },
    );
    decoded
}

/// What is smaller is read before threads have begun.
const BYTES_MIN: u64 = 1 << 18;
/// One thread takes what the others unpack; more than so many it cannot keep up with.
const THREADS_MAX: usize = 8;

/// How many threads unpack blocks: how fast a trace is read depends on the machine, and nothing else
/// does.
fn threads_for<R: Read + Seek>(reader: &Reader<R>) -> usize {
    if reader.len_bytes().saturating_sub(reader.position_bytes()) < BYTES_MIN {
        return 0;
    }
    match std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
        1 => 0,
        cores => cores.min(THREADS_MAX),
    }
}

fn decode_block(
    bytes: &[u8],
    decoded: &mut Decoded,
    lookups: &mut Lookups<()>,
    take: &mut impl FnMut(Record<'_>),
) {
    for frame in Frames::new(bytes) {
        match frame.and_then(Record::decode) {
            Ok(Record::Unknown(_)) => decoded.unknown += 1,
            Ok(record) => {
                decoded.records += 1;
                take(lookups.recall(record, |_, _| ()).into_record());
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
    lookups: Lookups<()>,
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
