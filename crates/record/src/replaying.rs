//! A source that replays the records of a trace, so that launching and following need no
//! privileges.
//!
//! The records are those of the trace, byte for byte. The processes that a recording waits for are
//! real: the command and its descendants, found in /proc by a variable in their environment.

mod marked;

use std::io::{Read, Seek};

use proctrace_trace::{Header, LossCount, Program, Reader};
use proctrace_wire::layout::{Head, SAMPLE_FINAL, Sample};
use proctrace_wire::{Frames, IntoBytes, Kind, Stream};

use crate::clock::boot_ns;
use crate::intake::Intake;
use crate::source::{Hold, Pass, Source, SourceError, TaskCounts};
use marked::{Marked, Process};

/// Maximum records of a stream per drain, while the recording is running.
const RECORDS_A_DRAIN: usize = 256;

/// Replays the records of a trace.
#[derive(Debug, Default)]
pub struct Replaying {
    lifecycle: Played,
    lookups: Played,
    samples: Played,
    waits: Played,
    losses: Vec<LossCount>,
    marked: Marked,
    detached: bool,
}

/// The records of one stream, and the position of the replay.
#[derive(Debug, Default)]
struct Played {
    bytes: Vec<u8>,
    at: usize,
}

impl Replaying {
    /// Replays all intact records of a trace.
    pub fn of<R: Read + Seek>(mut trace: Reader<R>) -> Self {
        let mut replaying = Self::default();
        while let Some(block) = trace.next_block() {
            replaying.stream(block.info.stream).bytes.extend_from_slice(&block.bytes);
        }
        replaying
    }

    /// Reports these losses at the end.
    #[must_use]
    pub fn losing(mut self, losses: impl IntoIterator<Item = LossCount>) -> Self {
        self.losses.extend(losses);
        self
    }

    /// The variable that identifies the command's descendants: it must be in the command's
    /// environment. Without it the recording ends when the command has exited.
    pub fn mark(&self) -> (String, String) {
        self.marked.variable()
    }

    /// All records of a stream, replayed or not.
    pub fn records(&self, stream: Stream) -> &[u8] {
        match stream {
            Stream::Lifecycle => &self.lifecycle.bytes,
            Stream::Lookups => &self.lookups.bytes,
            Stream::Samples => &self.samples.bytes,
            Stream::Waits => &self.waits.bytes,
        }
    }

    fn stream(&mut self, stream: Stream) -> &mut Played {
        match stream {
            Stream::Lifecycle => &mut self.lifecycle,
            Stream::Lookups => &mut self.lookups,
            Stream::Samples => &mut self.samples,
            Stream::Waits => &mut self.waits,
        }
    }
}

impl Source for Replaying {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn describe(&self, _header: &mut Header) {}

    fn arm(&mut self) -> Result<Hold, SourceError> {
        Ok(Hold::No)
    }

    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError> {
        // Samples are replayed by passes; the records left after a short recording are drained at
        // the end.
        let (streams, most) = match self.detached {
            false => (&[Stream::Lifecycle, Stream::Lookups, Stream::Waits][..], RECORDS_A_DRAIN),
            true => (&Stream::ALL[..], usize::MAX),
        };
        Ok(streams.iter().map(|stream| self.stream(*stream).play(*stream, most, intake)).sum())
    }

    fn is_behind(&self) -> bool {
        !self.lifecycle.rest().is_empty() || !self.lookups.rest().is_empty()
    }

    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError> {
        samples.clear();
        match pass {
            Pass::Changed => samples.extend_from_slice(self.samples.pass()),
            Pass::Final | Pass::Every => {
                for process in self.marked.alive() {
                    samples.extend_from_slice(sample(&process, pass).as_bytes());
                }
            }
        }
        Ok(())
    }

    fn task_counts(&mut self) -> TaskCounts {
        let alive = self.marked.alive().len() as u64;
        let born = self.marked.known() as u64;
        TaskCounts { born, ended: born - alive }
    }

    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError> {
        Ok(if self.detached { self.losses.clone() } else { Vec::new() })
    }

    fn detach(&mut self) -> Result<Vec<Program>, SourceError> {
        self.detached = true;
        Ok(Vec::new())
    }
}

impl Played {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Replays the next records, at most `most`.
    fn play(&mut self, stream: Stream, most: usize, intake: &mut Intake<'_>) -> usize {
        let mut played = 0;
        let mut bytes = 0;
        for frame in Frames::new(self.rest()).flatten().take(most) {
            intake.take(stream, frame);
            bytes += frame.bytes.len();
            played += 1;
        }
        self.at += bytes;
        played
    }

    /// The next records up to a tick, which ends a pass.
    fn pass(&mut self) -> &[u8] {
        let mut bytes = 0;
        for frame in Frames::new(self.rest()).flatten() {
            bytes += frame.bytes.len();
            if frame.head.kind == Kind::Tick as u16 {
                break;
            }
        }
        let begin = self.at;
        self.at += bytes;
        &self.bytes[begin..self.at]
    }
}

/// A sample from /proc, with the fields needed here.
fn sample(process: &Process, pass: Pass) -> Sample {
    Sample {
        head: Head {
            kind: Kind::Sample as u16,
            size: u16::try_from(size_of::<Sample>()).expect("it is 136 bytes"),
            task: process.serial,
            time_ns: boot_ns(),
        },
        process: process.serial,
        tgid: process.pid,
        tid: process.pid,
        state: u16::from(process.state),
        bits: if pass == Pass::Final { SAMPLE_FINAL } else { 0 },
        run_ns: 0,
        utime_ns: 0,
        stime_ns: 0,
        nvcsw: 0,
        nivcsw: 0,
        minflt: 0,
        majflt: 0,
        rchar: 0,
        wchar: 0,
        read_bytes: 0,
        write_bytes: 0,
        run_delay_ns: 0,
        rss_pages: process.rss_pages,
    }
}
