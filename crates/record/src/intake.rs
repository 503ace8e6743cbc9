//! Records on their way from the source to the sink: counted, and completed with data from /proc.

use std::io;

use proctrace_wire::layout::{ATTACH_ROOT, Attach};
use proctrace_wire::{Frame, Frames, Kind, Record, Stream};

use crate::count::Counts;
use crate::sink::Sink;
use crate::snapshot;

/// Receives records and counts them.
pub struct Intake<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) counts: Counts,
    /// Attached processes whose program has not been recorded yet.
    attached: Vec<Attach>,
    pub(crate) error: Option<io::Error>,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, counts: Counts::default(), attached: Vec::new(), error: None }
    }

    /// Processes one record. After an error of the sink, records are still counted but no longer
    /// stored.
    #[inline]
    pub fn take(&mut self, stream: Stream, frame: Frame<'_>) {
        self.counts.add(frame);
        if frame.head.kind == Kind::Attach as u16 {
            self.remember(frame);
        }
        if self.error.is_none() {
            self.error = self.sink.push(stream, frame.head.time_ns, frame.bytes).err();
        }
    }

    /// Remembers a process whose program is only known from /proc.
    #[cold]
    fn remember(&mut self, frame: Frame<'_>) {
        if let Ok(Record::Attach(attach)) = Record::decode(frame)
            && attach.bits & ATTACH_ROOT == 0
            && attach.head.task == attach.process
        {
            self.attached.push(attach);
        }
    }

    /// Processes a record created by the recorder itself.
    pub(crate) fn take_own(&mut self, stream: Stream, record: &[u8]) {
        for frame in Frames::new(record).flatten() {
            self.take(stream, frame);
        }
    }

    /// Records the programs of attached processes.
    pub(crate) fn tell_attached(&mut self) {
        for attach in std::mem::take(&mut self.attached) {
            if let Some(record) = snapshot::exec_before(&attach) {
                self.take_own(Stream::Lifecycle, &record);
            }
        }
    }

    pub(crate) fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.sink.flush().err();
        }
    }
}

impl std::fmt::Debug for Intake<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intake").field("counts", &self.counts).finish_non_exhaustive()
    }
}
