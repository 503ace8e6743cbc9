//! The tables for which the trace is read again, some rows at a time: execs, look-ups, samples and
//! other frequent records.

mod execs;
mod misses;
mod names;
mod samples;

use std::path::Path;

use polars::prelude::DataFrame;
use proctrace_classify::fast::FastMap;
use proctrace_classify::names::comm;
use proctrace_lineage::Serials;
use proctrace_recording::Recording;
use proctrace_replay::{Assembler, Body, Event, lookups, records};
use proctrace_trace::Reader;
use proctrace_wire::escape::to_text;
use proctrace_wire::{Record, Stream};

use self::execs::Execs;
use self::misses::Misses;
use self::names::{Environments, Renames};
use self::samples::{MemoryReadings, Samples};
use crate::error::TableError;
use crate::frame::{Wanted, Words};
use crate::rows::{Names, number, since};
use crate::schema::TableSchema;

/// Receives the rows of tables as they are read.
pub(crate) type Sink<'s> =
    &'s mut dyn FnMut(&'static TableSchema, DataFrame) -> Result<(), TableError>;

/// A recording and the indices for joining the records of its trace with it.
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
        for (at, task) in recording.tasks().iter().enumerate() {
            task_of.insert(task.serial, at);
        }
        for (at, process) in recording.processes().iter().enumerate() {
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
        self.task_of.get(serial).map(|task| self.recording.tasks()[task].process())
    }

    fn serial_of(&self, process: usize) -> Option<u32> {
        self.recording.processes().get(process).map(|process| process.serial)
    }

    /// The step of the process of this serial number.
    fn step_of(&self, serial: u32) -> Option<u32> {
        self.recording.steps().of_process(number(self.process_of.get(serial)?))
    }

    /// The program that a process was running at a given time.
    fn ran(&self, process: usize, time_ns: u64) -> Ran {
        let mut ran = self.runs.at(self.recording, process, time_ns);
        ran.program = match ran.exec {
            Some(run) => self.recording.runs().get(run as usize).map(|run| run.program),
            None => {
                self.recording.processes().get(process).map(|process| number(process.program()))
            }
        };
        ran
    }

    /// Reads the trace for these tables.
    pub(crate) fn read(
        &self,
        path: &Path,
        tables: &[&'static TableSchema],
        sink: Sink<'_>,
    ) -> Result<(), TableError> {
        let of = |name: &str| tables.iter().copied().find(|table| table.name == name);
        let lifecycle = ["execs", "failed_execs", "environments", "renames"].map(of);
        if lifecycle.iter().any(Option::is_some) {
            self.read_lifecycle(path, lifecycle, sink)?;
        }
        if let Some(schema) = of("lookups") {
            let (mut table, mut failure) = (Misses::new(schema, self), Failure::default());
            let mut told = 0u32;
            lookups(
                &mut Reader::open(path)?,
                |_, _| {
                    told = told.wrapping_add(1);
                    told
                },
                |lookup| failure.note(table.add(&lookup.miss, lookup.path, lookup.made, sink)),
            );
            failure.end()?;
            table.finish(sink)?;
        }
        let samples = ["samples", "memory"].map(of);
        if samples.iter().any(Option::is_some) {
            self.read_samples(path, samples, sink)?;
        }
        Ok(())
    }

    fn read_lifecycle(
        &self,
        path: &Path,
        [execs, failed_execs, environments, renames]: [Option<&'static TableSchema>; 4],
        sink: Sink<'_>,
    ) -> Result<(), TableError> {
        let mut execs = execs.map(|schema| Execs::new(schema, self));
        let mut failed_execs = failed_execs.map(|schema| Misses::new(schema, self));
        let mut environments = environments.map(|schema| Environments::new(schema, self));
        let mut renames = renames.map(|schema| Renames::new(schema, self));
        let (mut assembler, mut failure) = (Assembler::default(), Failure::default());
        let mut failed = 0u32;
        let mut take = |event: Event| match event.body {
            Body::Exec(exec) => {
                failure.note(execs.as_mut().map_or(Ok(()), |table| table.add(&exec, sink)));
            }
            Body::ExecFailed(miss) => {
                // Each is stored in full.
                failed = failed.wrapping_add(1);
                let (record, path, table) = (&miss.record, &miss.path, failed_execs.as_mut());
                let added = table.map_or(Ok(()), |table| table.add(record, path, failed, sink));
                failure.note(added);
            }
            Body::Rename(rename) => {
                let whom = (rename.head.task, rename.process, rename.head.time_ns);
                let name = comm(&rename.comm);
                failure.note(renames.as_mut().map_or(Ok(()), |table| table.add(whom, &name, sink)));
            }
            // These are in other tables.
            Body::Attach(_)
            | Body::Fork(_)
            | Body::LookupFailed(_)
            | Body::LookupTime(_)
            | Body::Opened(_)
            | Body::Place(_)
            | Body::Mounts(_)
            | Body::Workdir(_)
            | Body::Exit(_)
            | Body::Sample(_)
            | Body::Tick(_)
            | Body::Memory(_)
            | Body::Blind(_)
            | Body::Wait(_)
            | Body::Moved(_)
            | Body::Written(_)
            | Body::Signal(_)
            | Body::Loss(_) => {}
        };
        records(&mut Reader::open(path)?, Stream::Lifecycle, |record| {
            if let Record::Env(env, bytes) = record
                && let Some(table) = &mut environments
            {
                table.add(env.env_id, bytes);
            }
            assembler.take(record, &mut take);
        });
        assembler.finish(&mut take);
        failure.end()?;
        execs.map_or(Ok(()), |table| table.finish(sink))?;
        failed_execs.map_or(Ok(()), |table| table.finish(sink))?;
        environments.map_or(Ok(()), |table| table.finish(sink))?;
        renames.map_or(Ok(()), |table| table.finish(sink))
    }

    fn read_samples(
        &self,
        path: &Path,
        [samples, memory]: [Option<&'static TableSchema>; 2],
        sink: Sink<'_>,
    ) -> Result<(), TableError> {
        let mut samples = samples.map(|schema| Samples::new(schema, self));
        let mut memory = memory.map(|schema| MemoryReadings::new(schema, self));
        let mut failure = Failure::default();
        records(&mut Reader::open(path)?, Stream::Samples, |record| match record {
            Record::Sample(sample) => {
                failure.note(samples.as_mut().map_or(Ok(()), |table| table.add(sample, sink)));
            }
            Record::Memory(reading) => {
                failure.note(memory.as_mut().map_or(Ok(()), |table| table.add(reading, sink)));
            }
            _ => {}
        });
        failure.end()?;
        samples.map_or(Ok(()), |table| table.finish(sink))?;
        memory.map_or(Ok(()), |table| table.finish(sink))
    }
}

/// The first failure during a read that cannot be aborted.
#[derive(Default)]
struct Failure(Option<TableError>);

impl Failure {
    fn note(&mut self, result: Result<(), TableError>) {
        if let Err(error) = result {
            self.0.get_or_insert(error);
        }
    }

    fn end(self) -> Result<(), TableError> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The runs of each process, in time order.
struct RunsOf {
    /// Start index of each process's runs; one more at the end.
    starts: Vec<u32>,
    runs: Vec<u32>,
}

impl RunsOf {
    fn new(recording: &Recording) -> Self {
        let mut starts = vec![0u32; recording.processes().len() + 1];
        for run in recording.runs() {
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
        let mut runs = vec![0; recording.runs().len()];
        for (at, run) in recording.runs().iter().enumerate() {
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

    /// The run that a process was in; its forker's before its own first one.
    fn at(&self, recording: &Recording, process: usize, time_ns: u64) -> Ran {
        let of = self.of(process);
        let begins = |run: &u32| recording.runs().get(*run as usize).map_or(0, |run| run.time_ns);
        let begun = of.partition_point(|run| begins(run) <= time_ns);
        let last = begun.checked_sub(1).and_then(|last| of.get(last));
        Ran {
            exec: match last {
                Some(run) => Some(*run),
                None => recording.processes().get(process).and_then(|process| process.spawned_in()),
            },
            program: None,
            from_ns: last.map_or(0, begins),
            until_ns: of.get(begun).map_or(u64::MAX, begins),
        }
    }
}

/// The program that a process ran during an interval.
#[derive(Debug, Clone, Copy)]
struct Ran {
    /// Number of the exec.
    exec: Option<u32>,
    program: Option<u32>,
    from_ns: u64,
    until_ns: u64,
}

/// Unique strings of some rows.
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
