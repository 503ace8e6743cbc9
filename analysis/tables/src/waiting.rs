//! The tables of times off the CPU and of signals.

use std::ops::Range;

use polars::prelude::*;
use proctrace_recording::Recording;
use proctrace_recording::waits::{SentSignal, Wait, Waker};
use proctrace_wire::{WaitFor, signal_name};

use crate::error::TableError;
use crate::frame::{Frame, Wanted, Words};
use crate::rows::{number, since};
use crate::schema::TableSchema;

/// Names of [`Waker`], by [`kind_of`].
const WAKERS: [&str; 5] = ["task", "outside", "interrupt", "none", "unknown"];

fn kind_of(waker: Waker) -> u32 {
    match waker {
        Waker::Task(_) => 0,
        Waker::Outside(_) => 1,
        Waker::Interrupt => 2,
        Waker::None => 3,
        Waker::Unknown => 4,
    }
}

/// The serial number and the pid of a waker.
fn who(recording: &Recording, waker: Waker) -> (Option<u32>, Option<i32>) {
    match waker {
        Waker::Task(task) => {
            let task = recording.tasks().get(task as usize);
            let process = task.and_then(|task| recording.processes().get(task.process()));
            (task.map(|task| task.serial), process.map(|process| process.pid))
        }
        Waker::Outside(pid) => (None, Some(pid)),
        Waker::Interrupt | Waker::None | Waker::Unknown => (None, None),
    }
}

/// Rows for a range of the times off the CPU.
pub(crate) fn waits(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
    range: Range<usize>,
) -> Result<DataFrame, TableError> {
    let rows: &[Wait] = &recording.waits().unwrap_or_default()[range];
    let mut frame = Frame::new(schema, wanted, rows.len());
    let task = |wait: &Wait| recording.tasks().get(wait.task as usize);
    let process =
        |wait: &Wait| task(wait).and_then(|task| recording.processes().get(task.process()));
    let (reasons, wakers) = (Words::new(WaitFor::ALL.map(WaitFor::name)), Words::new(WAKERS));
    let reason = |wait: &Wait| {
        let at = WaitFor::ALL.iter().position(|known| *known == wait.waits_for);
        at.and_then(|at| u32::try_from(at).ok())
    };
    frame.options("thread_id", || rows.iter().map(|w| task(w).map(|task| task.serial)).collect());
    frame.options("process_id", || {
        rows.iter().map(|w| process(w).map(|process| process.serial)).collect()
    });
    let step = |wait: &Wait| recording.steps().of_process(number(task(wait)?.process()));
    frame.options("step_id", || rows.iter().map(step).collect());
    frame.values("start_ns", || rows.iter().map(|w| since(recording, w.since_ns())).collect());
    frame.values("asleep_ns", || rows.iter().map(|w| w.woken_ns() - w.since_ns()).collect());
    frame.values("cpu_wait_ns", || rows.iter().map(|w| w.until_ns() - w.woken_ns()).collect());
    frame.words("waits_for", &reasons, || rows.iter().map(reason).collect());
    frame.words("woken_by", &wakers, || rows.iter().map(|w| Some(kind_of(w.waker()))).collect());
    frame.options("waker_thread_id", || rows.iter().map(|w| who(recording, w.waker()).0).collect());
    frame.options("waker_pid", || rows.iter().map(|w| who(recording, w.waker()).1).collect());
    frame.values("waker_ended", || rows.iter().map(|w| w.waker_ended()).collect());
    frame.finish()
}

/// All signals.
pub(crate) fn signals(
    recording: &Recording,
    schema: &'static TableSchema,
    wanted: &Wanted,
) -> Result<DataFrame, TableError> {
    let rows: &[SentSignal] = recording.signals().unwrap_or_default();
    let mut frame = Frame::new(schema, wanted, rows.len());
    let process = |sent: &SentSignal| recording.processes().get(sent.process as usize);
    let (names, senders) = (Words::new((0..=64).map(signal_name)), Words::new(WAKERS));
    let sender_names = Words::new(rows.iter().map(|sent| &sent.sender_name));
    frame.options("process_id", || {
        rows.iter().map(|sent| process(sent).map(|process| process.serial)).collect()
    });
    frame.options("step_id", || {
        rows.iter().map(|sent| recording.steps().of_process(sent.process)).collect()
    });
    frame.values("time_ns", || rows.iter().map(|sent| since(recording, sent.time_ns)).collect());
    frame.words("signal_name", &names, || rows.iter().map(|s| Some(u32::from(s.signal))).collect());
    frame.values("code", || rows.iter().map(|sent| sent.code).collect());
    frame.words("sent_by", &senders, || rows.iter().map(|s| Some(kind_of(s.sender))).collect());
    frame.options("sender_pid", || rows.iter().map(|s| who(recording, s.sender).1).collect());
    frame.words("sender_name", &sender_names, || {
        let known = rows.iter().enumerate().map(|(at, sent)| (at as u32, sent));
        known.map(|(at, sent)| (!sent.sender_name.is_empty()).then_some(at)).collect()
    });
    frame.finish()
}
