//! Merging the streams of a trace into one, in time order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::Path;

use proctrace_trace::{Damage, Header, ReadError, Reader, Trailer};
use proctrace_wire::layout;
use proctrace_wire::{Architecture, Record, Stream};

use crate::assemble::{Assembler, event};
use crate::cursor::{Cursor, Decoded};
use crate::event::{Body, Event, Exit, Moved, Sample, TimeOff, TimedMiss, Written};
use crate::lookups::Recalled;

/// Records of one stream arrive nearly in order: two CPUs may stamp in one order and deliver in the
/// other, and the stamps of look-ups are up to a clock tick old. This many are buffered for
/// sorting: the number of opens that can fail on two CPUs in 4 ms.
const WINDOW: usize = 8192;

/// One for each stream.
const LANES: usize = Stream::ALL.len();

/// The events of a trace in time order.
///
/// Memory grows with the number of tasks, not of events: exits are sorted beforehand, because the
/// record of one is written when the task has torn down its memory, at any time after it exited.
#[derive(Debug)]
pub struct Replay {
    header: Header,
    lanes: [Lane; LANES],
    /// Latest first.
    exits: Vec<layout::Exit>,
    pids: HashMap<u32, (i32, i32)>,
    first_pass: (Vec<Damage>, Decoded),
}

/// The results of a replay besides events.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Trailer of the trace; None if the trace is incomplete.
    pub trailer: Option<Trailer>,
    /// The damage that was skipped.
    pub damage: Vec<Damage>,
    /// The results of decoding.
    pub decoded: Decoded,
}

impl Replay {
    /// Opens the trace at `path` and reads its exits.
    ///
    /// # Errors
    /// When it is not a trace, or one that this version cannot read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::open_with(path, |_| ())
    }

    /// The same; the records of the lifecycle, which are read beforehand for the exits, are passed to `first`: for
    /// what must be known before the first event.
    ///
    /// # Errors
    /// Those of [`Replay::open`].
    pub fn open_with(
        path: impl AsRef<Path>,
        mut first: impl FnMut(Record<'_>),
    ) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let mut reader = Reader::open(path)?;
        let mut exits = Vec::new();
        let decoded = crate::records(&mut reader, Stream::Lifecycle, |record| {
            if let Record::Exit(exit) = record {
                exits.push(exit);
            }
            first(record);
        });
        // In place: a stable sort needs half as much memory again.
        exits.sort_unstable_by_key(|exit| Reverse((exit.head.time_ns, exit.head.task)));
        keep_one_end(&mut exits);
        let lanes = Stream::ALL.map(|stream| Reader::open(path).map(|r| Lane::new(r, stream)));
        let [lifecycle, lookups, samples, waits] = lanes;
        Ok(Self {
            header: reader.header().clone(),
            lanes: [lifecycle?, lookups?, samples?, waits?],
            exits,
            pids: HashMap::new(),
            first_pass: (reader.damage().to_vec(), decoded),
        })
    }

    /// The header: where and how the recording was made.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The results besides events; complete when the iterator is exhausted.
    pub fn summary(&self) -> Summary {
        let mut damage = self.first_pass.0.clone();
        let mut decoded = Decoded::default();
        for lane in &self.lanes {
            damage.extend_from_slice(lane.cursor.reader.damage());
            decoded.records += lane.cursor.decoded.records;
            decoded.unknown += lane.cursor.decoded.unknown;
            decoded.undecodable += lane.cursor.decoded.undecodable;
        }
        // Each reader finds the same gaps.
        let mut seen = HashSet::new();
        damage.retain(|damage| seen.insert((damage.offset, format!("{:?}", damage.what))));
        damage.sort_by_key(|damage| damage.offset);
        let trailer = self.lanes.iter().find_map(|lane| lane.cursor.reader.trailer().cloned());
        Summary { trailer, damage, decoded }
    }

    fn pids_of(&mut self, event: &mut Event) {
        match &event.body {
            Body::Attach(attach) => {
                self.pids.insert(event.task, (attach.tgid, attach.tid));
            }
            Body::Fork(fork) => {
                self.pids.insert(fork.child, (fork.child_tgid, fork.child_tid));
            }
            // A thread that calls exec inherits its leader's id.
            Body::Exec(exec) => {
                self.pids.insert(event.task, (exec.record.tgid, exec.record.tid));
            }
            Body::ExecFailed(_)
            | Body::LookupFailed(_)
            | Body::LookupTime(_)
            | Body::Opened(_)
            | Body::Moved(_)
            | Body::Written(_)
            | Body::Place(_)
            | Body::Wait(_)
            | Body::Mounts(_) => {
                let pids = self.pids.get(&event.task);
                event.pid = pids.map(|(tgid, _)| *tgid);
                event.tid = pids.map(|(_, tid)| *tid);
            }
            // Its ids are needed after its exit, too: it may wait while its memory is torn down.
            Body::Exit(_)
            | Body::Rename(_)
            | Body::Workdir(_)
            | Body::Sample(_)
            | Body::Tick(_)
            | Body::Memory(_)
            | Body::Blind(_)
            | Body::Signal(_)
            | Body::Loss(_) => {}
        }
    }
}

impl Iterator for Replay {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        // At equal times, births and execs precede other events and exits follow them.
        let exit = self.exits.last().map(|exit| (exit.head.time_ns, LANES));
        let lane = (0..LANES)
            .filter_map(|lane| Some((self.lanes[lane].next_time()?, lane)))
            .chain(exit)
            .min()?
            .1;
        let mut event = match self.lanes.get_mut(lane) {
            Some(lane) => lane.pop()?,
            None => {
                let exit = self.exits.pop()?;
                let pids = Some((exit.tgid, exit.tid));
                let page_bytes = self.header.page_bytes;
                event(exit.head, pids, Body::Exit(Box::new(Exit { record: exit, page_bytes })))
            }
        };
        self.pids_of(&mut event);
        Some(event)
    }
}

/// A process ends once: kernels before 6.16 may flag several of its threads as the last.
pub(crate) fn keep_one_end(exits: &mut [layout::Exit]) {
    let mut ended = HashSet::new();
    // They are sorted latest first, and the latest is the correct one.
    for exit in exits.iter_mut().filter(|exit| exit.is_process()) {
        if !ended.insert(exit.process) {
            exit.bits &= !layout::EXIT_PROCESS;
        }
    }
}

/// One stream, sorted.
#[derive(Debug)]
struct Lane {
    cursor: Cursor,
    assembler: Assembler,
    window: BinaryHeap<Reverse<Waiting>>,
    arrived: u64,
    ended: bool,
}

#[derive(Debug)]
struct Waiting {
    order: (u64, u64),
    event: Event,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl Lane {
    fn new(reader: Reader<std::io::BufReader<std::fs::File>>, stream: Stream) -> Self {
        Self {
            cursor: Cursor::new(reader, stream),
            assembler: Assembler::default(),
            window: BinaryHeap::new(),
            arrived: 0,
            ended: false,
        }
    }

    fn next_time(&mut self) -> Option<u64> {
        self.fill();
        self.window.peek().map(|Reverse(waiting)| waiting.order.0)
    }

    fn pop(&mut self) -> Option<Event> {
        self.fill();
        self.window.pop().map(|Reverse(waiting)| waiting.event)
    }

    fn fill(&mut self) {
        while !self.ended && self.window.len() < WINDOW {
            let Self { cursor, assembler, window, arrived, .. } = self;
            let header = cursor.reader.header();
            let page_bytes = header.page_bytes;
            let architecture = Architecture::of_machine(&header.machine);
            let mut emit = |event: Event| {
                *arrived += 1;
                window.push(Reverse(Waiting { order: (event.time_ns, *arrived), event }));
            };
            let more = cursor.next_block(|record| match record {
                Recalled::Failed(lookup) => {
                    emit(event(lookup.miss.head, None, Body::LookupFailed(lookup.into())));
                }
                Recalled::Opened(lookup) => {
                    emit(event(lookup.miss.head, None, Body::Opened(lookup.into())));
                }
                Recalled::Timed(duration_ns, lookup) => {
                    let timed = TimedMiss { miss: lookup.into(), duration_ns };
                    emit(event(lookup.miss.head, None, Body::LookupTime(timed)));
                }
                Recalled::Other(Record::Sample(sample)) => {
                    let pids = Some((sample.tgid, sample.tid));
                    let sample = Sample { record: sample, page_bytes };
                    emit(event(sample.record.head, pids, Body::Sample(Box::new(sample))));
                }
                Recalled::Other(Record::Memory(memory)) => {
                    let pids = Some((memory.tgid, memory.tgid));
                    emit(event(memory.head, pids, Body::Memory(memory)));
                }
                Recalled::Other(Record::Wait(wait)) => {
                    let off = TimeOff { record: wait, architecture };
                    emit(event(wait.head, None, Body::Wait(Box::new(off))));
                }
                Recalled::Other(Record::Moved(record, from, path)) => {
                    let moved = Moved { record, from: from.to_vec(), path: path.to_vec() };
                    emit(event(record.head, None, Body::Moved(moved)));
                }
                Recalled::Other(Record::Written(record, path)) => {
                    let written = Written { record, path: path.to_vec() };
                    emit(event(record.head, None, Body::Written(written)));
                }
                Recalled::Other(Record::Tick(tick)) => {
                    emit(event(tick.head, None, Body::Tick(tick)));
                }
                Recalled::Other(record) => assembler.take(record, &mut emit),
            });
            if !more {
                assembler.finish(&mut emit);
                self.ended = true;
            }
        }
    }
}
