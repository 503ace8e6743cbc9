//! The tables of which the trace is read once more, some rows at a time: execs, look-ups, samples and
//! what else happens often.

use std::path::Path;

use polars::prelude::*;
use proctrace_replay::{Assembler, Body, Event, records, variables};
use proctrace_trace::{Quantity, Reader};
use proctrace_wire::escape::to_text;
use proctrace_wire::layout::{EXEC_BEFORE, MISS_PATH_FAULT, Memory, MissFixed, Sample};
use proctrace_wire::{Call, Family, Record, Stream};

use crate::error::AnalysisError;
use crate::load::serials::Serials;
use crate::recording::Recording;
use crate::recording::fast::FastMap;
use crate::recording::names::{comm, directory, errno};
use crate::tables::frame::{Frame, Wanted, Words};
use crate::tables::rows::{Names, category_of, number, since};
use crate::tables::schema::TableSchema;

/// errno(3).
const EINVAL: u16 = 22;

/// Takes the rows of tables as they are read.
pub(crate) type Sink<'s> =
    &'s mut dyn FnMut(&'static TableSchema, DataFrame) -> Result<(), AnalysisError>;

/// A recording and what is needed to join the records of its trace with it.
pub(crate) struct Scan<'a> {
    recording: &'a Recording,
    names: &'a Names,
    task_of: Serials,
    process_of: Serials,
    runs: RunsOf,
    wanted: &'a Wanted,
    batch_rows: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        names: &'a Names,
        wanted: &'a Wanted,
        batch_rows: usize,
    ) -> Self {
        let (mut task_of, mut process_of) = (Serials::default(), Serials::default());
        for (at, task) in recording.tasks.iter().enumerate() {
            task_of.insert(task.serial, at);
        }
        for (at, process) in recording.processes.iter().enumerate() {
            process_of.insert(process.serial, at);
        }
        let runs = RunsOf::new(recording);
        Self { recording, names, task_of, process_of, runs, wanted, batch_rows }
    }

    fn since(&self, time_ns: u64) -> u64 {
        since(self.recording, time_ns)
    }

    /// Index of the process that a task belongs to.
    fn process_of_task(&self, serial: u32) -> Option<usize> {
        self.task_of.get(serial).map(|task| self.recording.tasks[task].process)
    }

    fn serial_of(&self, process: usize) -> Option<u32> {
        self.recording.processes.get(process).map(|process| process.serial)
    }

    /// What a process ran at a time: the exec, and the program.
    fn ran(&self, process: usize, time_ns: u64) -> (Option<u32>, Option<u32>) {
        let run = self.runs.at(self.recording, process, time_ns);
        let program = match run {
            Some(run) => self.recording.runs.get(run as usize).map(|run| run.program),
            None => self.recording.processes.get(process).map(|process| number(process.program)),
        };
        (run, program)
    }

    /// Reads the trace for these tables.
    pub(crate) fn read(
        &self,
        path: &Path,
        tables: &[&'static TableSchema],
        sink: Sink<'_>,
    ) -> Result<(), AnalysisError> {
        let of = |name: &str| tables.iter().copied().find(|table| table.name == name);
        let mut failed = None;
        let mut keep = |result: Result<(), AnalysisError>| {
            if let Err(error) = result {
                failed.get_or_insert(error);
            }
        };
        let lifecycle = ["execs", "failed_execs", "environments", "renames"].map(of);
        if lifecycle.iter().any(Option::is_some) {
            let [execs, failed_execs, environments, renames] = lifecycle;
            let mut execs = execs.map(|schema| Execs::new(schema, self));
            let mut failed_execs = failed_execs.map(|schema| Misses::new(schema, self));
            let mut environments = environments.map(|schema| Environments::new(schema, self));
            let mut renames = renames.map(|schema| Renames::new(schema, self));
            let mut assembler = Assembler::default();
            let mut take = |event: Event| match event.body {
                Body::Exec(exec) => {
                    if let Some(table) = &mut execs {
                        keep(table.add(&exec, sink));
                    }
                }
                Body::ExecFailed(miss) => {
                    if let Some(table) = &mut failed_execs {
                        keep(table.add(&miss.record, &miss.path, sink));
                    }
                }
                Body::Rename(rename) => {
                    if let Some(table) = &mut renames {
                        keep(table.add(
                            (rename.head.task, rename.process, rename.head.time_ns),
                            &comm(&rename.comm),
                            sink,
                        ));
                    }
                }
                _ => {}
            };
            let mut reader = Reader::open(path)?;
            records(&mut reader, Stream::Lifecycle, |record| {
                if let Record::Env(env, bytes) = record
                    && let Some(table) = &mut environments
                {
                    table.add(env.env_id, bytes);
                }
                assembler.take(record, &mut take);
            });
            assembler.finish(&mut take);
            if let Some(table) = execs {
                keep(table.finish(sink));
            }
            if let Some(table) = failed_execs {
                keep(table.finish(sink));
            }
            if let Some(table) = environments {
                keep(table.finish(sink));
            }
            if let Some(table) = renames {
                keep(table.finish(sink));
            }
        }
        if let Some(schema) = of("lookups") {
            let mut table = Misses::new(schema, self);
            let mut reader = Reader::open(path)?;
            records(&mut reader, Stream::Lookups, |record| {
                if let Record::LookupFailed(miss, path) = record {
                    keep(table.add(&miss, path, sink));
                }
            });
            keep(table.finish(sink));
        }
        let (samples, memory) = (of("samples"), of("memory"));
        if samples.is_some() || memory.is_some() {
            let mut samples = samples.map(|schema| Samples::new(schema, self));
            let mut memory = memory.map(|schema| MemoryReadings::new(schema, self));
            let mut reader = Reader::open(path)?;
            records(&mut reader, Stream::Samples, |record| match record {
                Record::Sample(sample) => {
                    if let Some(table) = &mut samples {
                        keep(table.add(sample, sink));
                    }
                }
                Record::Memory(reading) => {
                    if let Some(table) = &mut memory {
                        keep(table.add(reading, sink));
                    }
                }
                _ => {}
            });
            if let Some(table) = samples {
                keep(table.finish(sink));
            }
            if let Some(table) = memory {
                keep(table.finish(sink));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The runs of each process, in order of time.
struct RunsOf {
    /// Where those of each process begin; one more at the end.
    starts: Vec<u32>,
    runs: Vec<u32>,
}

impl RunsOf {
    fn new(recording: &Recording) -> Self {
        let mut starts = vec![0u32; recording.processes.len() + 1];
        for run in &recording.runs {
            if let Some(count) = starts.get_mut(run.process as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut runs = vec![0; recording.runs.len()];
        for (at, run) in recording.runs.iter().enumerate() {
            if let Some(place) = next.get_mut(run.process as usize) {
                if let Some(slot) = runs.get_mut(*place as usize) {
                    *slot = number(at);
                }
                *place += 1;
            }
        }
        Self { starts, runs }
    }

    fn of(&self, process: usize) -> &[u32] {
        let bounds = self.starts.get(process).zip(self.starts.get(process + 1));
        bounds.and_then(|(from, to)| self.runs.get(*from as usize..*to as usize)).unwrap_or(&[])
    }

    /// The run that a process was in; that of its forker before its own first.
    fn at(&self, recording: &Recording, process: usize, time_ns: u64) -> Option<u32> {
        let of = self.of(process);
        let begun = of.partition_point(|run| {
            recording.runs.get(*run as usize).is_some_and(|run| run.time_ns <= time_ns)
        });
        match begun.checked_sub(1) {
            Some(last) => of.get(last).copied(),
            None => recording.processes.get(process)?.spawned_in,
        }
    }
}

/// Texts of some rows, each kept once.
#[derive(Debug, Default)]
struct Texts {
    texts: Vec<String>,
    numbers: FastMap<Vec<u8>, u32>,
}

impl Texts {
    fn number_of(&mut self, bytes: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(bytes) {
            return *number;
        }
        let new = number(self.texts.len());
        self.texts.push(to_text(bytes).into_owned());
        self.numbers.insert(bytes.to_vec(), new);
        new
    }

    fn words(&self) -> Words {
        Words::new(&self.texts)
    }
}

/// Failed look-ups, or failed execs.
struct Misses<'s> {
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
    fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
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

    fn add(&mut self, miss: &MissFixed, path: &[u8], sink: Sink<'_>) -> Result<(), AnalysisError> {
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

    fn finish(mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.flush(sink)
    }
}

/// Successful execs.
struct Execs<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    /// Runs by process and time: records come in the order of the file, argv may take several.
    run_of: FastMap<(u32, u64), u32>,
    rows: Vec<ExecRow>,
    texts: Texts,
}

struct ExecRow {
    run: Option<u32>,
    process: u32,
    time_ns: u64,
    recorded: bool,
    path: u32,
    interpreter: Option<u32>,
    exe: u32,
    cwd: u32,
    argv: Vec<String>,
    truncated: bool,
    environment: u64,
}

impl<'s> Execs<'s> {
    fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        let runs = scan.recording.runs.iter().enumerate();
        let run_of = runs.map(|(at, run)| ((run.process, run.time_ns), number(at))).collect();
        Self { scan, schema, run_of, rows: Vec::new(), texts: Texts::default() }
    }

    fn add(&mut self, exec: &proctrace_replay::Exec, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let record = &exec.record;
        let process = self.scan.process_of.get(record.process).map(number);
        self.rows.push(ExecRow {
            run: process.and_then(|p| self.run_of.get(&(p, record.head.time_ns)).copied()),
            process: record.process,
            time_ns: self.scan.since(record.head.time_ns),
            recorded: record.bits & EXEC_BEFORE == 0,
            path: self.texts.number_of(&exec.path),
            interpreter: exec.interpreter.as_deref().map(|path| self.texts.number_of(path)),
            exe: self.texts.number_of(&exec.exe),
            cwd: self.texts.number_of(&exec.cwd),
            argv: exec.argv.iter().map(|argument| to_text(argument).into_owned()).collect(),
            truncated: exec.argv_truncated,
            environment: record.env_id,
        });
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let (rows, texts) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.texts));
        let texts = texts.words();
        let (scan, recording) = (self.scan, self.scan.recording);
        let run = |row: &ExecRow| recording.runs.get(row.run? as usize);
        let start = |row: &ExecRow| recording.starts.get(row.run? as usize);
        let knows = &recording.knows;
        let mut frame = Frame::new(self.schema, scan.wanted, rows.len());
        frame.options("exec_id", || rows.iter().map(|row| row.run).collect());
        frame.values("process_id", || rows.iter().map(|row| row.process).collect());
        frame.values("time_ns", || rows.iter().map(|row| row.time_ns).collect());
        frame.values("recorded", || rows.iter().map(|row| row.recorded).collect());
        frame.words("program", &scan.names.programs, || {
            rows.iter().map(|row| Some(run(row)?.program)).collect()
        });
        frame.words("category", &scan.names.categories, || {
            rows.iter().map(|row| category_of(recording, run(row)?.program as usize)).collect()
        });
        frame.words("class", &scan.names.classes, || {
            rows.iter().map(|row| scan.names.class_of(run(row)?.program as usize)).collect()
        });
        frame.words("path", &texts, || rows.iter().map(|row| Some(row.path)).collect());
        frame.words("interpreter", &texts, || rows.iter().map(|row| row.interpreter).collect());
        frame.words("exe", &texts, || rows.iter().map(|row| Some(row.exe)).collect());
        frame.words("cwd", &texts, || rows.iter().map(|row| Some(row.cwd)).collect());
        let argv = knows.all(&[Quantity::Argv]);
        frame.lists("argv", || {
            rows.iter()
                .map(|row| argv.then(|| row.argv.iter().map(String::as_str).collect()))
                .collect()
        });
        frame.known("argv_truncated", argv, || rows.iter().map(|row| row.truncated).collect());
        frame.known("command_line", argv, || {
            rows.iter().map(|row| row.argv.join(" ")).collect::<Vec<String>>()
        });
        frame.words("command_shape", &scan.names.templates, || {
            rows.iter().map(|row| run(row).filter(|_| argv).map(|run| run.template)).collect()
        });
        frame.options("environment_id", || {
            rows.iter().map(|row| Some(row.environment).filter(|id| *id != 0)).collect()
        });
        let lookups = knows.all(&Quantity::LOOKUPS);
        frame.options("failed_lookups", || {
            rows.iter()
                .map(|row| Some(u64::from(start(row)?.lookups)).filter(|_| lookups))
                .collect()
        });
        frame.options("loading_failed_lookups", || {
            rows.iter()
                .map(|row| Some(u64::from(start(row)?.loading)).filter(|_| lookups))
                .collect()
        });
        frame.options("loaded_ns", || {
            let of = |row: &ExecRow| Some(start(row)?).filter(|start| start.loading > 0);
            rows.iter().map(|row| Some(of(row)?.loaded_ns()).filter(|_| lookups)).collect()
        });
        sink(self.schema, frame.finish()?)
    }

    fn finish(mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.flush(sink)
    }
}

/// Environments: few, and so all at once.
struct Environments<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    rows: Vec<(u64, u32, u32)>,
    texts: Texts,
}

impl<'s> Environments<'s> {
    fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        Self { scan, schema, rows: Vec::new(), texts: Texts::default() }
    }

    fn add(&mut self, id: u64, bytes: &[u8]) {
        for (name, value) in variables(bytes) {
            let (name, value) = (self.texts.number_of(&name), self.texts.number_of(&value));
            self.rows.push((id, name, value));
        }
    }

    fn finish(self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let texts = self.texts.words();
        let mut frame = Frame::new(self.schema, self.scan.wanted, self.rows.len());
        frame.values("environment_id", || self.rows.iter().map(|row| row.0).collect());
        frame.words("name", &texts, || self.rows.iter().map(|row| Some(row.1)).collect());
        frame.words("value", &texts, || self.rows.iter().map(|row| Some(row.2)).collect());
        sink(self.schema, frame.finish()?)
    }
}

/// New names of tasks.
struct Renames<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    rows: Vec<(u32, u32, u64, u32)>,
    texts: Texts,
}

impl<'s> Renames<'s> {
    fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        Self { scan, schema, rows: Vec::new(), texts: Texts::default() }
    }

    fn add(
        &mut self,
        (thread, process, time_ns): (u32, u32, u64),
        name: &str,
        sink: Sink<'_>,
    ) -> Result<(), AnalysisError> {
        let name = self.texts.number_of(name.as_bytes());
        self.rows.push((thread, process, self.scan.since(time_ns), name));
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let (rows, texts) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.texts));
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.values("thread_id", || rows.iter().map(|row| row.0).collect());
        frame.values("process_id", || rows.iter().map(|row| row.1).collect());
        frame.values("time_ns", || rows.iter().map(|row| row.2).collect());
        frame.words("name", &texts.words(), || rows.iter().map(|row| Some(row.3)).collect());
        sink(self.schema, frame.finish()?)
    }

    fn finish(mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.flush(sink)
    }
}

/// Samples of tasks.
struct Samples<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    states: Words,
    rows: Vec<Sample>,
}

/// Names of the letters of proc_pid_stat(5).
const STATES: [(u8, &str); 8] = [
    (b'R', "running"),
    (b'S', "sleeping"),
    (b'D', "uninterruptible"),
    (b'T', "stopped"),
    (b't', "traced"),
    (b'Z', "zombie"),
    (b'X', "dead"),
    (b'I', "idle"),
];

impl<'s> Samples<'s> {
    fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        let states = Words::new(STATES.map(|(_, name)| name));
        Self { scan, schema, states, rows: Vec::new() }
    }

    fn add(&mut self, sample: Sample, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.rows.push(sample);
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let rows = std::mem::take(&mut self.rows);
        let page_bytes = u64::from(self.scan.recording.header.page_bytes);
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.values("thread_id", || rows.iter().map(|row| row.head.task).collect());
        frame.values("process_id", || rows.iter().map(|row| row.process).collect());
        frame.values("time_ns", || {
            rows.iter().map(|row| self.scan.since(row.head.time_ns)).collect()
        });
        frame.words("state", &self.states, || {
            let of = |state: u16| STATES.iter().position(|known| u16::from(known.0) == state);
            rows.iter().map(|row| of(row.state).map(number)).collect()
        });
        let knows = |quantity| self.scan.recording.knows.all(&[quantity]);
        for (name, quantity, of) in [
            ("cpu_ns", Quantity::Cpu, (|s| s.run_ns) as fn(&Sample) -> u64),
            ("user_ticks_ns", Quantity::Cpu, |s| s.utime_ns),
            ("system_ticks_ns", Quantity::Cpu, |s| s.stime_ns),
            ("run_delay_ns", Quantity::RunDelay, |s| s.run_delay_ns),
            ("voluntary_switches", Quantity::Switches, |s| s.nvcsw),
            ("involuntary_switches", Quantity::Switches, |s| s.nivcsw),
            ("minor_faults", Quantity::Faults, |s| s.minflt),
            ("major_faults", Quantity::Faults, |s| s.majflt),
            ("read_bytes", Quantity::Io, |s| s.read_bytes),
            ("write_bytes", Quantity::Io, |s| s.write_bytes),
            ("read_call_bytes", Quantity::Io, |s| s.rchar),
            ("write_call_bytes", Quantity::Io, |s| s.wchar),
        ] {
            frame.known(name, knows(quantity), || rows.iter().map(of).collect());
        }
        frame.values("rss_bytes", || {
            rows.iter().map(|row| row.rss_pages.saturating_mul(page_bytes)).collect()
        });
        sink(self.schema, frame.finish()?)
    }

    fn finish(mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.flush(sink)
    }
}

/// Readings of the memory of processes.
struct MemoryReadings<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    rows: Vec<Memory>,
}

impl<'s> MemoryReadings<'s> {
    fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        Self { scan, schema, rows: Vec::new() }
    }

    fn add(&mut self, reading: Memory, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.rows.push(reading);
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        let rows = std::mem::take(&mut self.rows);
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.values("process_id", || rows.iter().map(|row| row.process).collect());
        frame.values("time_ns", || {
            rows.iter().map(|row| self.scan.since(row.head.time_ns)).collect()
        });
        frame.values("rss_bytes", || rows.iter().map(|row| row.rss_bytes).collect());
        frame.values("pss_bytes", || rows.iter().map(|row| row.pss_bytes).collect());
        frame.values("uss_bytes", || rows.iter().map(|row| row.uss_bytes).collect());
        frame.values("shared_bytes", || rows.iter().map(|row| row.shared_bytes).collect());
        frame.values("swap_bytes", || rows.iter().map(|row| row.swap_bytes).collect());
        sink(self.schema, frame.finish()?)
    }

    fn finish(mut self, sink: Sink<'_>) -> Result<(), AnalysisError> {
        self.flush(sink)
    }
}
