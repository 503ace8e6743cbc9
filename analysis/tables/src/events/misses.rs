//! The tables of failed look-ups and of failed execs.

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::{directory, errno};
use proctrace_recording::misses::found_no_link;
use proctrace_wire::layout::{MISS_PATH_FAULT, MissFixed};
use proctrace_wire::{Call, Family, mark_of_path};

use super::{Scan, Sink, Texts};
use crate::error::TableError;
use crate::frame::{Frame, Words};
use crate::schema::TableSchema;

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
    /// Decoded look-ups of this batch that are stored once in full and then repeated by number.
    known: FastMap<u32, Told>,
    /// The tasks that looked up last: failures of one task come close together.
    makers: [Maker; MAKERS],
}

/// Data shared by a look-up and its repetitions.
#[derive(Debug, Clone, Copy)]
struct Told {
    path: Option<u32>,
    errno: u32,
    call: u8,
    family: Option<u8>,
    in_vain: bool,
}

/// Size of the table of makers: more than the number of CPUs of most machines.
const MAKERS: usize = 64;

/// A task that makes look-ups, and the program it runs during an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Maker {
    thread: u32,
    from_ns: u64,
    until_ns: u64,
    process: Option<u32>,
    exec: Option<u32>,
    program: Option<u32>,
}

struct MissRow {
    maker: Maker,
    time_ns: u64,
    told: Told,
}

/// Upper limit of call numbers.
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
            known: FastMap::default(),
            makers: [Maker::default(); MAKERS],
        }
    }

    /// Adds a look-up. Those with the same number in `told` differ only in task and time.
    pub(super) fn add(
        &mut self,
        miss: &MissFixed,
        path: &[u8],
        told: u32,
        sink: Sink<'_>,
    ) -> Result<(), TableError> {
        let told = match self.known.get(&told) {
            Some(known) => *known,
            None => {
                let new = self.told(miss, path);
                self.known.insert(told, new);
                new
            }
        };
        let maker = self.maker(miss.head.task, miss.head.time_ns);
        let time_ns = self.scan.since(miss.head.time_ns);
        self.rows.push(MissRow { maker, time_ns, told });
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn told(&mut self, miss: &MissFixed, path: &[u8]) -> Told {
        let is_mark = miss.bits & MISS_PATH_FAULT == 0 && mark_of_path(path).is_some();
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
        Told {
            path,
            errno: self.errnos.number_of(errno(miss.error).as_bytes()),
            call: call as u8,
            family: at.and_then(|at| u8::try_from(at).ok()),
            in_vain: !(is_mark || found_no_link(miss)),
        }
    }

    fn maker(&mut self, thread: u32, time_ns: u64) -> Maker {
        let last = &mut self.makers[thread as usize % MAKERS];
        if last.thread != thread || !(last.from_ns..last.until_ns).contains(&time_ns) {
            let mut maker = Maker { thread, until_ns: u64::MAX, ..Maker::default() };
            if let Some(process) = self.scan.process_of_task(thread) {
                let ran = self.scan.ran(process, time_ns);
                maker = Maker {
                    thread,
                    from_ns: ran.from_ns,
                    until_ns: ran.until_ns,
                    process: self.scan.serial_of(process),
                    exec: ran.exec,
                    program: ran.program,
                };
            }
            *last = maker;
        }
        *last
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.options("process_id", || rows.iter().map(|row| row.maker.process).collect());
        frame.options("step_id", || {
            rows.iter().map(|row| self.scan.step_of(row.maker.process?)).collect()
        });
        frame.values("thread_id", || rows.iter().map(|row| row.maker.thread).collect());
        frame.options("exec_id", || rows.iter().map(|row| row.maker.exec).collect());
        frame.values("time_ns", || rows.iter().map(|row| row.time_ns).collect());
        frame.words("program", &self.scan.names.programs, || {
            rows.iter().map(|row| row.maker.program).collect()
        });
        if self.schema.column("call").is_some() {
            frame.words("call", &self.calls, || {
                rows.iter().map(|row| Some(u32::from(row.told.call))).collect()
            });
            frame.words("family", &self.families, || {
                rows.iter().map(|row| row.told.family.map(u32::from)).collect()
            });
            frame.values("in_vain", || rows.iter().map(|row| row.told.in_vain).collect());
        }
        frame.words("errno", &self.errnos.words(), || {
            rows.iter().map(|row| Some(row.told.errno)).collect()
        });
        frame.words("path", &self.paths.words(), || rows.iter().map(|row| row.told.path).collect());
        frame.words("directory", &self.directories.words(), || {
            rows.iter().map(|row| self.directory_of.get(row.told.path? as usize).copied()).collect()
        });
        self.paths = Texts::default();
        self.directories = Texts::default();
        self.errnos = Texts::default();
        self.directory_of.clear();
        self.known.clear();
        sink(self.schema, frame.finish()?)
    }

    pub(super) fn finish(mut self, sink: Sink<'_>) -> Result<(), TableError> {
        self.flush(sink)
    }
}
