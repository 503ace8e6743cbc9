//! The tables of failed look-ups and of failed execs.

use proctrace_wire::layout::{MISS_PATH_FAULT, MissFixed};
use proctrace_wire::{Call, Family};

use super::{Scan, Sink, Texts};
use crate::error::AnalysisError;
use crate::recording::names::{directory, errno};
use crate::tables::frame::{Frame, Words};
use crate::tables::schema::TableSchema;

/// errno(3).
const EINVAL: u16 = 22;

/// Failed look-ups, or failed execs.
pub(super) struct Misses<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    calls: Words,
    families: Words,
    rows: Vec<MissRow>,
    paths: Texts,
    /// The directory of each path.
    directory_of: Vec<u32>,
    directories: Texts,
    errnos: Texts,
}

struct MissRow {
    process: Option<u32>,
    thread: u32,
    exec: Option<u32>,
    program: Option<u32>,
    time_ns: u64,
    path: Option<u32>,
    errno: u32,
    call: u8,
    family: Option<u8>,
    in_vain: bool,
}

/// As many numbers of calls there may be.
const CALLS: u16 = 64;

impl<'s> Misses<'s> {
    pub(super) fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        Self {
            scan,
            schema,
            calls: Words::new((0..CALLS).map(|number| Call::from_number(number).name())),
            families: Words::new(Family::ALL.map(Family::name)),
            rows: Vec::new(),
            paths: Texts::default(),
            directory_of: Vec::new(),
            directories: Texts::default(),
            errnos: Texts::default(),
        }
    }

    pub(super) fn add(
        &mut self,
        miss: &MissFixed,
        path: &[u8],
        sink: Sink<'_>,
    ) -> Result<(), AnalysisError> {
        let process = self.scan.process_of_task(miss.head.task);
        let (exec, program) = match process {
            Some(process) => self.scan.ran(process, miss.head.time_ns),
            None => (None, None),
        };
        let path = (miss.bits & MISS_PATH_FAULT == 0).then(|| {
            let number = self.paths.number_of(path);
            if self.directory_of.len() <= number as usize {
                self.directory_of.push(self.directories.number_of(directory(path)));
            }
            number
        });
        let call = Call::from_number(miss.call);
        let family = Family::of(call);
        let at = Family::ALL.iter().position(|known| Some(*known) == family);
        self.rows.push(MissRow {
            process: process.and_then(|process| self.scan.serial_of(process)),
            thread: miss.head.task,
            exec,
            program,
            time_ns: self.scan.since(miss.head.time_ns),
            path,
            errno: self.errnos.number_of(errno(miss.error).as_bytes()),
            call: call as u8,
            family: at.and_then(|at| u8::try_from(at).ok()),
            in_vain: !(family == Some(Family::Readlink) && miss.error == EINVAL),
        });
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let rows = std::mem::take(&mut self.rows);
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.options("process_id", || rows.iter().map(|row| row.process).collect());
        frame.values("thread_id", || rows.iter().map(|row| row.thread).collect());
        frame.options("exec_id", || rows.iter().map(|row| row.exec).collect());
        frame.values("time_ns", || rows.iter().map(|row| row.time_ns).collect());
        frame.words("program", &self.scan.names.programs, || {
            rows.iter().map(|row| row.program).collect()
        });
        if self.schema.column("call").is_some() {
            frame.words("call", &self.calls, || {
                rows.iter().map(|row| Some(u32::from(row.call))).collect()
            });
            frame.words("family", &self.families, || {
                rows.iter().map(|row| row.family.map(u32::from)).collect()
            });
            frame.values("in_vain", || rows.iter().map(|row| row.in_vain).collect());
        }
        frame.words("errno", &self.errnos.words(), || {
            rows.iter().map(|row| Some(row.errno)).collect()
        });
        frame.words("path", &self.paths.words(), || rows.iter().map(|row| row.path).collect());
        frame.words("directory", &self.directories.words(), || {
            rows.iter().map(|row| self.directory_of.get(row.path? as usize).copied()).collect()
        });
        self.paths = Texts::default();
        self.directories = Texts::default();
        self.errnos = Texts::default();
        self.directory_of.clear();
        sink(self.schema, frame.finish()?)
    }

    pub(super) fn finish(mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.flush(sink)
    }
}
