//! A source that plays the records of a trace, so that launching and following can be tried by anyone.
//!
//! What comes out is the trace's, byte for byte. Whom a recording waits for is real: the command and
//! all that it leaves behind, found in /proc by a variable in their environment.

mod marked;

use std::io::{Read, Seek};

use proctrace_trace::{Header, Program, Reader};
use proctrace_wire::layout::{Head, SAMPLE_FINAL, Sample};
use proctrace_wire::{Frames, IntoBytes, Kind, Stream};

use crate::clock::boot_ns;
use crate::intake::Intake;
use crate::loss::LossCount;
use crate::source::{Hold, Pass, Source, SourceError, TaskCounts};
use marked::{Marked, Process};

/// So many records of a stream are handed over at a time.
const RECORDS_A_DRAIN: usize = 256;

/// Plays the records of a trace.
#[derive(Debug, Default)]
pub struct Replaying {
    lifecycle: Played,
    lookups: Played,
    samples: Played,
    losses: Vec<LossCount>,
    marked: Marked,
    detached: bool,
}

/// One stream's records, and how far they have been played.
#[derive(Debug, Default)]
struct Played {
    bytes: Vec<u8>,
    at: usize,
}

impl Replaying {
    /// Plays all intact records of a trace.
    pub fn of<R: Read + Seek>(mut trace: Reader<R>) -> Self {
        let mut replaying = Self::default();
        while let Some(block) = trace.next_block() {
            replaying.stream(block.info.stream).bytes.extend_from_slice(&block.bytes);
        }
        replaying
    }

    /// Says at the end that so much was lost as well.
    #[must_use]
    pub fn losing(mut self, losses: impl IntoIterator<Item = LossCount>) -> Self {
        self.losses.extend(losses);
        self
    }

    /// The variable by which what the command leaves behind is found: the command's environment has
    /// to have it. Without it the recording is over when the command has exited.
    pub fn mark(&self) -> (String, String) {
        self.marked.variable()
    }

    /// All records of a stream, played or not.
    pub fn records(&self, stream: Stream) -> &[u8] {
        match stream {
            Stream::Lifecycle => &self.lifecycle.bytes,
            Stream::Lookups => &self.lookups.bytes,
            Stream::Samples => &self.samples.bytes,
        }
    }

    fn stream(&mut self, stream: Stream) -> &mut Played {
        match stream {
            Stream::Lifecycle => &mut self.lifecycle,
            Stream::Lookups => &mut self.lookups,
            Stream::Samples => &mut self.samples,
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
        let mut played = 0;
        for stream in [Stream::Lifecycle, Stream::Lookups] {
            played += self.stream(stream).play(stream, intake);
        }
        // Samples come by passes; what the recording was too short for is left for the end.
        if self.detached {
            played += self.samples.play(Stream::Samples, intake);
        }
        Ok(played)
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

    /// Hands over the next few records.
    fn play(&mut self, stream: Stream, intake: &mut Intake<'_>) -> usize {
        let mut played = 0;
        let mut bytes = 0;
        for frame in Frames::new(self.rest()).flatten().take(RECORDS_A_DRAIN) {
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

/// What /proc says of a process, as far as following needs it.
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
