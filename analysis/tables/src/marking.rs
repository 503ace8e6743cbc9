//! The table of marks.

use polars::prelude::*;
use proctrace_recording::Recording;
use proctrace_recording::marks::{Mark, MarkedBy};

use crate::error::TableError;
use crate::frame::{Frame, Wanted, Words};
use crate::rows::{number, since};
use crate::schema::TableSchema;

/// Names of [`MarkedBy`], by number.
const SETTERS: [MarkedBy; 2] = [MarkedBy::Command, MarkedBy::Lookup];

/// All marks.
pub(crate) fn marks(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let rows: &[Mark] = &recording.marks().all;
    let mut frame = Frame::new(schema, wanted, rows.len());
    let serial = |at: usize| recording.processes().get(at).map(|process| process.serial);
    let until = |at: usize| since(recording, recording.phases().end_of_ns(at + 1));
    let numbers = || (0..rows.len()).map(|at| Some(number(at))).collect::<Vec<_>>();
    let by = |mark: &Mark| SETTERS.iter().position(|by| *by == mark.by).map(number);
    let program = |mark: &Mark| {
        let setter = recording.processes().get(recording.setter_of(mark))?;
        Some(number(setter.program()))
    };
    let texts = Words::new(rows.iter().map(|mark| &mark.text));
    let names = Words::new(rows.iter().map(|mark| &mark.name));
    let setters = Words::new(SETTERS.map(MarkedBy::name));
    let programs = Words::new(recording.programs().iter().map(|program| &*program.name));
    frame.values("mark", || (0..rows.len()).map(|at| number(at + 1)).collect());
    frame.values("time_ns", || rows.iter().map(|m| since(recording, m.time_ns)).collect());
    frame.values("until_ns", || (0..rows.len()).map(until).collect());
    frame.words("text", &texts, numbers);
    frame.words("phase", &names, numbers);
    frame.words("set_by", &setters, || rows.iter().map(by).collect());
    frame.options("process_id", || rows.iter().map(|m| serial(m.process as usize)).collect());
    frame.options("step_id", || {
        rows.iter().map(|m| recording.steps().of_process(m.process)).collect()
    });
    frame.options("setter_id", || {
        rows.iter().map(|mark| serial(recording.setter_of(mark))).collect()
    });
    frame.words("setter", &programs, || rows.iter().map(program).collect());
    frame.finish()
}
