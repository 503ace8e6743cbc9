//! The tables of environments and of names that tasks gave themselves.

use std::collections::HashSet;

use proctrace_replay::variables;

use super::{Scan, Sink, Texts};
use crate::error::TableError;
use crate::frame::Frame;
use crate::schema::TableSchema;

/// Environments: few enough to keep all at once.
pub(super) struct Environments<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    rows: Vec<(u64, u32, u32)>,
    /// The ids in it: an environment may be recorded again.
    known: HashSet<u64>,
    texts: Texts,
}

impl<'s> Environments<'s> {
    pub(super) fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        let known = HashSet::new();
        Self { scan, schema, rows: Vec::new(), known, texts: Texts::default() }
    }

    pub(super) fn add(&mut self, id: u64, bytes: &[u8]) {
        if !self.known.insert(id) {
            return;
        }
        for (name, value) in variables(bytes) {
            let (name, value) = (self.texts.number_of(&name), self.texts.number_of(&value));
            self.rows.push((id, name, value));
        }
    }

    pub(super) fn finish(self, sink: Sink<'_>) -> Result<(), TableError> {
        let texts = self.texts.words();
        let mut frame = Frame::new(self.schema, self.scan.wanted, self.rows.len());
        frame.values("environment_id", || self.rows.iter().map(|row| row.0).collect());
        frame.words("name", &texts, || self.rows.iter().map(|row| Some(row.1)).collect());
        frame.words("value", &texts, || self.rows.iter().map(|row| Some(row.2)).collect());
        sink(self.schema, frame.finish()?)
    }
}

/// New names of tasks.
pub(super) struct Renames<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    rows: Vec<(u32, u32, u64, u32)>,
    texts: Texts,
}

impl<'s> Renames<'s> {
    pub(super) fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        Self { scan, schema, rows: Vec::new(), texts: Texts::default() }
    }

    pub(super) fn add(
        &mut self,
        (thread, process, time_ns): (u32, u32, u64),
        name: &str,
        sink: Sink<'_>,
    ) -> Result<(), TableError> {
        let name = self.texts.number_of(name.as_bytes());
        self.rows.push((thread, process, self.scan.since(time_ns), name));
        if self.rows.len() >= self.scan.batch_rows { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), TableError> {
        let (rows, texts) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.texts));
        let mut frame = Frame::new(self.schema, self.scan.wanted, rows.len());
        frame.values("thread_id", || rows.iter().map(|row| row.0).collect());
        frame.values("process_id", || rows.iter().map(|row| row.1).collect());
        frame.options("step_id", || rows.iter().map(|row| self.scan.step_of(row.1)).collect());
        frame.values("time_ns", || rows.iter().map(|row| row.2).collect());
        frame.words("name", &texts.words(), || rows.iter().map(|row| Some(row.3)).collect());
        sink(self.schema, frame.finish()?)
    }

    pub(super) fn finish(mut self, sink: Sink<'_>) -> Result<(), TableError> {
        self.flush(sink)
    }
}
