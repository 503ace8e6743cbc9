//! Records on their way from the source to the sink: counted, and completed with data from /proc.

use std::io;

use proctrace_wire::layout::{ATTACH_ROOT, Attach, PlaceFixed};
use proctrace_wire::{Frame, Frames, Kind, Record, Stream};

use crate::count::Counts;
use crate::lives::Lives;
use crate::mounts::{MountTables, place_before};
use crate::options::{Options, Scope};
use crate::sink::Sink;
use crate::snapshot;

/// Receives records and counts them.
pub struct Intake<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) counts: Counts,
    /// Attached processes whose program has not been recorded yet.
    attached: Vec<Attach>,
    /// Places whose mount tables may not have been recorded yet, each with its root.
    places: Vec<(PlaceFixed, Vec<u8>)>,
    /// None if they are not recorded.
    mounts: Option<MountTables>,
    /// None where nothing is said of single processes.
    pub(crate) lives: Option<Lives>,
    pub(crate) error: Option<io::Error>,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, options: &Options) -> Self {
        Self {
            sink,
            counts: Counts::default(),
            attached: Vec::new(),
            places: Vec::new(),
            mounts: options.mounts.then(|| match options.scope {
                Scope::Jobs(_) => MountTables::for_many_jobs(),
                _ => MountTables::default(),
            }),
            lives: match options.scope {
                Scope::Jobs(_) => None,
                _ => Some(Lives::default()),
            },
            error: None,
        }
    }

    /// Processes one record. After an error of the sink, records are still counted but no longer
    /// stored.
    #[inline]
    pub fn take(&mut self, stream: Stream, frame: Frame<'_>) {
        self.counts.add(frame);
        if frame.head.kind == Kind::Attach as u16 || frame.head.kind == Kind::Place as u16 {
            self.remember(frame);
        }
        if let Some(lives) = &mut self.lives {
            lives.see(frame);
        }
        if self.error.is_none() {
            self.error = self.sink.push(stream, frame.head.time_ns, frame.bytes).err();
        }
    }

    /// Remembers what is to be completed from /proc: the program of a process that existed before, and
    /// the mount table of a namespace.
    #[cold]
    fn remember(&mut self, frame: Frame<'_>) {
        match Record::decode(frame) {
            Ok(Record::Attach(attach))
                if attach.bits & ATTACH_ROOT == 0 && attach.head.task == attach.process =>
            {
                self.attached.push(attach);
            }
            Ok(Record::Place(place, root)) => self.places.push((place, root.to_vec())),
            _ => {}
        }
    }

    /// Processes a record created by the recorder itself.
    pub(crate) fn take_own(&mut self, stream: Stream, record: &[u8]) {
        for frame in Frames::new(record).flatten() {
            self.take(stream, frame);
        }
    }

    /// Records the programs and places of attached processes, and the mount tables of places.
    pub(crate) fn complete_from_proc(&mut self) {
        for attach in std::mem::take(&mut self.attached) {
            let records = [place_before(&attach), snapshot::exec_before(&attach)];
            for record in records.into_iter().flatten() {
                self.take_own(Stream::Lifecycle, &record);
            }
        }
        for (place, root) in std::mem::take(&mut self.places) {
            if let Some(mounts) = &mut self.mounts {
                let records = mounts.of(&place, &root);
                self.take_own(Stream::Lifecycle, &records);
            }
        }
    }

    /// Records the mount table of the recorder's own namespace.
    pub(crate) fn tell_own_mounts(&mut self) {
        let records = self.mounts.as_mut().map(MountTables::own).unwrap_or_default();
        self.take_own(Stream::Lifecycle, &records);
    }

    /// Records the mount tables that have changed.
    pub(crate) fn tell_changed_mounts(&mut self) {
        let records = self.mounts.as_mut().map(MountTables::changed).unwrap_or_default();
        self.take_own(Stream::Lifecycle, &records);
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
