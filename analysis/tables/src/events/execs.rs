//! The table of execs.

use proctrace_classify::fast::FastMap;
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;
use proctrace_wire::layout::EXEC_BEFORE;

use super::{Scan, Sink, Texts};
use crate::error::TableError;
use crate::frame::Frame;
use crate::rows::{category_of, number};
use crate::schema::TableSchema;

/// Successful execs.
pub(super) struct Execs<'s> {
    scan: &'s Scan<'s>,
    schema: &'static TableSchema,
    /// Runs by process and time: records are in file order, and an argv may span several.
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
    pub(super) fn new(schema: &'static TableSchema, scan: &'s Scan<'s>) -> Self {
        let runs = scan.recording.runs().iter().enumerate();
        let run_of = runs.map(|(at, run)| ((run.process, run.time_ns), number(at))).collect();
        Self { scan, schema, run_of, rows: Vec::new(), texts: Texts::default() }
    }

    pub(super) fn add(
        &mut self,
        exec: &proctrace_replay::Exec,
        sink: Sink<'_>,
    ) -> Result<(), TableError> {
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

    fn flush(&mut self, sink: Sink<'_>) -> Result<(), TableError> {
        let (rows, texts) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.texts));
        let texts = texts.words();
        let (scan, recording) = (self.scan, self.scan.recording);
        let run = |row: &ExecRow| recording.runs().get(row.run? as usize);
        let start = |row: &ExecRow| recording.starts().unwrap_or_default().get(row.run? as usize);
        let knows = recording.knows();
        let mut frame = Frame::new(self.schema, scan.wanted, rows.len());
        frame.options("exec_id", || rows.iter().map(|row| row.run).collect());
        frame.values("process_id", || rows.iter().map(|row| row.process).collect());
        frame
            .options("step_id", || rows.iter().map(|row| self.scan.step_of(row.process)).collect());
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

    pub(super) fn finish(mut self, sink: Sink<'_>) -> Result<(), TableError> {
        self.flush(sink)
    }
}
