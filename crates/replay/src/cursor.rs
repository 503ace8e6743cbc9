//! Reading one stream of a trace, block after block.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use proctrace_trace::{BlockInfo, Reader};
use proctrace_wire::layout::{Again, MissFixed, MovedFixed, WrittenFixed};
use proctrace_wire::{Frames, Record, Stream};

use crate::lookups::{Lookup, Lookups, Recall, Recalled};

/// The results of decoding a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Passed to the caller.
    pub records: u64,
    /// Number of records of a kind added by a later version.
    pub unknown: u64,
    /// Records that are not decodable although the block's checksum is correct: a bug in the
    /// recorder.
    pub undecodable: u64,
}

/// Passes every record of `stream` to `take`, in file order. A repeated look-up is passed as the
/// [`Record::LookupFailed`] that it repeats. Blocks are unpacked on all cores.
pub fn records<R: Read + Seek>(
    reader: &mut Reader<R>,
    stream: Stream,
    take: impl FnMut(Record<'_>),
) -> Decoded {
    records_of(reader, stream, |_| true, take)
}

/// Reads as [`records()`] does, but only the blocks of the stream that are `wanted`. A repeated look-up is passed only if
/// the block that names its path is.
pub fn records_of<R: Read + Seek>(
    reader: &mut Reader<R>,
    stream: Stream,
    wanted: impl Fn(&BlockInfo) -> bool,
    mut take: impl FnMut(Record<'_>),
) -> Decoded {
    let mut decoded = Decoded::default();
    let mut recall = Recall::default();
    let threads = threads_for(reader);
    reader.each_block(
        threads,
        |info| info.stream == stream && wanted(info),
        |_, bytes| {
            decode_block(bytes, &mut decoded, |record| match record {
                Record::LookupNamed(..) | Record::LookupAgain(_) => {
                    if let Recalled::Failed(lookup) = recall.recall(record) {
                        take(Record::LookupFailed(lookup.miss, lookup.path));
                    }
                }
                // All others are complete, or of no interest to those who read all records; not moving
                // them saves a tenth of the time.
                record => take(record),
            });
        },
    );
    decoded
}

/// Passes every failed look-up to `take`, in file order.
///
/// Most of them repeat a look-up that was recorded in full: `make` is called only for those in
/// full, and its result is passed with each repetition.
pub fn lookups<R: Read + Seek, T: Copy>(
    reader: &mut Reader<R>,
    make: impl FnMut(&MissFixed, &[u8]) -> T,
    take: impl FnMut(Lookup<'_, T>),
) -> Decoded {
    timed_lookups(reader, make, take, |_, _| ())
}

/// Reads as [`lookups()`] does; also passes each duration that was measured to `time`, in nanoseconds, with
/// what `make` returned for its look-up.
pub fn timed_lookups<R: Read + Seek, T: Copy>(
    reader: &mut Reader<R>,
    mut make: impl FnMut(&MissFixed, &[u8]) -> T,
    mut take: impl FnMut(Lookup<'_, T>),
    mut time: impl FnMut(u32, T),
) -> Decoded {
    let mut decoded = Decoded::default();
    let mut known = Lookups::default();
    let threads = threads_for(reader);
    reader.each_block(
        threads,
        |info| info.stream == Stream::Lookups,
        |_, bytes| {
            for frame in Frames::new(bytes) {
                // A hundred times as frequent as all other records.
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
                        match record {
                            Record::LookupFailed(miss, path) => {
                                let made = make(&miss, path);
                                take(Lookup { miss, path, made });
                            }
                            Record::LookupNamed(named, path) => {
                                take(known.in_full_first(named, path, &mut make));
                            }
                            Record::LookupTime(timed) => {
                                let again =
                                    Again { head: timed.head, number: timed.number, pad: 0 };
                                time(timed.duration_ns, known.in_full(again, &mut make).made);
                            }
                            _ => {}
                        }
                    }
                    Err(_) => decoded.undecodable += 1,
                }
            }
        },
    );
    decoded
}

/// What a task did with a file.
#[derive(Debug)]
pub enum FileAct<'a, T> {
    /// It opened it.
    Opened(Lookup<'a, T>),
    /// It renamed or removed it: the path before, and the path since. Both are empty if they are not known.
    Moved(MovedFixed, &'a [u8], &'a [u8]),
    /// It closed a descriptor through which it could be written.
    Written(WrittenFixed, &'a [u8]),
}

/// Passes every recorded open, rename, removal and size to `take`, in file order; otherwise like [`lookups()`].
pub fn opens<R: Read + Seek, T: Copy>(
    reader: &mut Reader<R>,
    mut make: impl FnMut(&MissFixed, &[u8]) -> T,
    mut take: impl FnMut(FileAct<'_, T>),
) -> Decoded {
    let mut decoded = Decoded::default();
    let mut known = Lookups::default();
    let threads = threads_for(reader);
    reader.each_block(
        threads,
        |info| info.stream == Stream::Lookups,
        |_, bytes| {
            decode_block(bytes, &mut decoded, |record| match record {
                Record::OpenedNamed(named, path) => {
                    take(FileAct::Opened(known.in_full_first(named, path, &mut make)));
                }
                Record::OpenedAgain(again) => {
                    take(FileAct::Opened(known.in_full(again, &mut make)));
                }
                Record::Moved(moved, from, path) => take(FileAct::Moved(moved, from, path)),
                Record::Written(written, path) => take(FileAct::Written(written, path)),
                _ => {}
            });
        },
    );
    decoded
}

/// Minimum size of a trace for which threads are worth starting: a smaller one is read before they have started.
const BYTES_MIN: u64 = 1 << 18;
/// One thread consumes what the others unpack; it cannot keep up with more than this.
const THREADS_MAX: usize = 8;

/// Number of unpacking threads, chosen by the machine; it affects only the speed of reading.
fn threads_for<R: Read + Seek>(reader: &Reader<R>) -> usize {
    if reader.len_bytes().saturating_sub(reader.position_bytes()) < BYTES_MIN {
        return 0;
    }
    match std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
        1 => 0,
        cores => cores.min(THREADS_MAX),
    }
}

fn decode_block(bytes: &[u8], decoded: &mut Decoded, mut take: impl FnMut(Record<'_>)) {
    for frame in Frames::new(bytes) {
        let told = frame.and_then(|frame| {
            Record::decode_to(frame, |record| match record {
                Record::Unknown(_) => decoded.unknown += 1,
                record => {
                    decoded.records += 1;
                    take(record);
                }
            })
        });
        if told.is_err() {
            decoded.undecodable += 1;
        }
    }
}

/// A stream with its own reader, so that several can be merged.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) reader: Reader<BufReader<File>>,
    stream: Stream,
    recall: Recall,
    pub(crate) decoded: Decoded,
}

impl Cursor {
    pub(crate) fn new(reader: Reader<BufReader<File>>, stream: Stream) -> Self {
        Self { reader, stream, recall: Recall::default(), decoded: Decoded::default() }
    }

    /// Passes the records of the next block to `take`; false at the end.
    pub(crate) fn next_block(&mut self, mut take: impl FnMut(Recalled<'_>)) -> bool {
        let stream = self.stream;
        let Some(block) = self.reader.next_block_where(|info| info.stream == stream) else {
            return false;
        };
        let recall = &mut self.recall;
        decode_block(&block.bytes, &mut self.decoded, |record| take(recall.recall(record)));
        true
    }
}
