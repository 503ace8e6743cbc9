//! Notes on a slice besides its times: debug annotations.

use proctrace_findings::{Figure, Outcome, TimelineProcess, TimelineRun};

use super::fields::{annotation, event, interned};
use crate::proto::Message;
use crate::text;

/// An annotation. Names are interned under the position in [`NAMES`] plus 1; those of figures follow.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note {
    ProcessId,
    Pid,
    ParentPid,
    ChildPid,
    WakerPid,
    Category,
    Exit,
    Signal,
    DumpedCore,
    Threads,
    Arguments,
    Directory,
    Executable,
    Interpreter,
    BeforeRecording,
    Doing,
}

const NAMES: [&str; 16] = [
    "process_id",
    "pid",
    "parent_pid",
    "child_pid",
    "waker_pid",
    "category",
    "exit_code",
    "signal",
    "dumped_core",
    "threads",
    "arguments",
    "directory",
    "executable",
    "interpreter",
    "began_before_recording",
    "doing",
];

/// Writes the names of all annotations.
pub(super) fn intern(data: &mut Message) {
    let names = NAMES.into_iter().chain(Figure::ALL.map(Figure::name));
    for (iid, name) in (1..).zip(names) {
        data.message(interned::ANNOTATION_NAMES, |entry| {
            entry.uint(interned::IID, iid);
            entry.text(interned::NAME, name);
        });
    }
}

/// A value of an annotation.
pub(super) trait Value {
    fn write(&self, annotation: &mut Message);
}

impl Value for u64 {
    fn write(&self, annotation: &mut Message) {
        annotation.uint(annotation::UINT, *self);
    }
}

impl Value for i64 {
    fn write(&self, annotation: &mut Message) {
        annotation.int(annotation::INT, *self);
    }
}

impl Value for bool {
    fn write(&self, annotation: &mut Message) {
        annotation.flag(annotation::BOOL, *self);
    }
}

impl Value for &str {
    fn write(&self, annotation: &mut Message) {
        annotation.text(annotation::STRING, &text::visible(self));
    }
}

impl Value for Vec<String> {
    fn write(&self, annotation: &mut Message) {
        for item in self {
            annotation.message(annotation::ARRAY, |entry| item.as_str().write(entry));
        }
    }
}

/// Adds annotations to an event.
pub(super) trait Notes {
    fn note(&mut self, note: Note, value: impl Value);

    /// Notes a figure; nothing if it is not known.
    fn figure(&mut self, figure: Figure, value: Option<u64>);

    /// Notes a value; nothing if it is not known.
    fn note_known(&mut self, note: Note, value: Option<impl Value>) {
        if let Some(value) = value {
            self.note(note, value);
        }
    }
}

impl Notes for Message {
    fn note(&mut self, note: Note, value: impl Value) {
        self.message(event::ANNOTATION, |annotation| {
            annotation.uint(annotation::NAME_IID, note as u64 + 1);
            value.write(annotation);
        });
    }

    fn figure(&mut self, figure: Figure, value: Option<u64>) {
        let Some(value) = value else { return };
        self.message(event::ANNOTATION, |annotation| {
            annotation.uint(annotation::NAME_IID, (NAMES.len() + figure as usize) as u64 + 1);
            value.write(annotation);
        });
    }
}

pub(super) fn of_process(event: &mut Message, of: &TimelineProcess<'_>) {
    event.note(Note::ProcessId, u64::from(of.id));
    event.note(Note::Pid, i64::from(of.pid));
    event.note_known(Note::ParentPid, of.parent_pid.map(i64::from));
    event.note_known(Note::Category, of.category);
    outcome(event, of.outcome);
    if of.dumped_core {
        event.note(Note::DumpedCore, true);
    }
    for (figure, value) in of.used.in_timelines() {
        event.figure(figure, value);
    }
    event.note_known(Note::Threads, of.threads);
}

pub(super) fn of_run(event: &mut Message, run: &TimelineRun<'_>) {
    event.note_known(Note::Arguments, text::arguments(run));
    event.note_known(Note::Directory, text::known(run.cwd).as_deref());
    event.note_known(Note::Executable, text::known(run.exe).as_deref());
    event.note_known(Note::Interpreter, run.interpreter.map(text::bytes).as_deref());
    outcome(event, run.outcome);
    if !run.happened_here {
        event.note(Note::BeforeRecording, true);
    }
}

fn outcome(event: &mut Message, outcome: Option<Outcome>) {
    match outcome {
        Some(Outcome::Code(code)) => event.note(Note::Exit, i64::from(code)),
        Some(signal @ Outcome::Signal(_)) => event.note(Note::Signal, &*signal.name()),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_has_its_name() {
        assert_eq!(NAMES[Note::Doing as usize], "doing");
        assert_eq!(NAMES.len(), Note::Doing as usize + 1);
        assert_eq!(NAMES[Note::ProcessId as usize], "process_id");
        assert_eq!(NAMES[Note::Threads as usize], "threads");
        assert_eq!(NAMES[Note::Directory as usize], "directory");
    }
}
