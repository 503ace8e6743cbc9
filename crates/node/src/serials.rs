//! Serials in records: where records refer to tasks, and replacing these serials by those of a job.

use std::mem::offset_of;

use proctrace_wire::Kind;
use proctrace_wire::layout::{
    Attach, Blind, ExecFixed, Exit, Fork, Head, Memory, PlaceFixed, Rename, Sample, Signal, Wait,
    WorkdirFixed,
};

/// Offset of the serial of the process in records of this kind, where there is one.
fn process_at(kind: Kind) -> Option<usize> {
    Some(match kind {
        Kind::Attach => offset_of!(Attach, process),
        Kind::Fork => offset_of!(Fork, process),
        Kind::Exec => offset_of!(ExecFixed, process),
        Kind::Exit => offset_of!(Exit, process),
        Kind::Rename => offset_of!(Rename, process),
        Kind::Sample => offset_of!(Sample, process),
        Kind::Blind => offset_of!(Blind, process),
        Kind::Memory => offset_of!(Memory, process),
        Kind::Workdir => offset_of!(WorkdirFixed, process),
        Kind::Place => offset_of!(PlaceFixed, process),
        Kind::Wait => offset_of!(Wait, process),
        Kind::Signal => offset_of!(Signal, process),
        Kind::ExecArgs
        | Kind::ExecFailed
        | Kind::LookupFailed
        | Kind::Tick
        | Kind::Env
        | Kind::Loss
        | Kind::LookupNamed
        | Kind::LookupAgain
        | Kind::Mounts
        | Kind::LookupTime
        | Kind::OpenedNamed
        | Kind::OpenedAgain
        | Kind::Moved
        | Kind::Written => return None,
    })
}

/// Offset of the serial of another task: who woke the task, or sent it a signal.
fn other_at(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Wait => Some(offset_of!(Wait, waker)),
        Kind::Signal => Some(offset_of!(Signal, sender)),
        _ => None,
    }
}

/// The serial of that other task; 0 if there is none.
pub(crate) fn other_of(kind: Kind, record: &[u8]) -> u32 {
    other_at(kind).and_then(|at| get(record, at)).unwrap_or(0)
}

/// The serials of a task in the trace of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serials {
    pub(crate) task: u32,
    pub(crate) process: u32,
    /// Serial of the other task that the record names; 0 if that is none of this job.
    pub(crate) other: u32,
}

/// Replaces the serials of a record about one task. A record that is too short for them is left as it is:
/// readers will refuse it.
pub(crate) fn renumber(kind: Kind, record: &mut [u8], serials: Serials) {
    put(record, offset_of!(Head, task), serials.task);
    if let Some(at) = process_at(kind) {
        put(record, at, serials.process);
    }
    if let Some(at) = other_at(kind) {
        put(record, at, serials.other);
    }
}

/// Replaces the serials of the new task in the record of its birth.
pub(crate) fn renumber_child(record: &mut [u8], child: u32, child_process: u32) {
    put(record, offset_of!(Fork, child), child);
    put(record, offset_of!(Fork, child_process), child_process);
}

fn get(record: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?))
}

fn put(record: &mut [u8], at: usize, serial: u32) {
    if let Some(place) = record.get_mut(at..at + 4) {
        place.copy_from_slice(&serial.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proctrace_wire::layout::{LAYOUTS, Layout};
    use proptest::prelude::*;

    use super::*;

    /// Fields that hold serials, as bpf/wire.h names them.
    const SERIALS: [&str; 5] = ["process", "child", "child_process", "waker", "sender"];

    fn layout_of(kind: Kind) -> Option<&'static Layout> {
        let c_name = match kind {
            Kind::Attach => "pt_attach",
            Kind::Fork => "pt_fork",
            Kind::Exec => "pt_exec",
            Kind::Exit => "pt_exit",
            Kind::Rename => "pt_rename",
            Kind::Sample => "pt_sample",
            Kind::Blind => "pt_blind",
            Kind::Memory => "pt_memory",
            Kind::Workdir => "pt_workdir",
            Kind::Place => "pt_place",
            Kind::Wait => "pt_wait",
            Kind::Signal => "pt_signal",
            Kind::ExecArgs => "pt_exec_args",
            Kind::Env => "pt_env",
            Kind::Tick => "pt_tick",
            Kind::Loss => "pt_loss",
            Kind::Mounts => "pt_mounts",
            Kind::LookupTime => "pt_lookup_time",
            Kind::ExecFailed | Kind::LookupFailed => "pt_miss",
            Kind::LookupNamed | Kind::OpenedNamed => "pt_named",
            Kind::LookupAgain | Kind::OpenedAgain => "pt_again",
            Kind::Moved => "pt_moved",
            Kind::Written => "pt_written",
        };
        LAYOUTS.iter().find(|layout| layout.c_name == c_name)
    }

    proptest! {
        /// Every field that holds a serial is replaced, and nothing else.
        #[test]
        fn only_serials_are_replaced(nth in 0..Kind::ALL.len(), filling in any::<u8>()) {
            let kind = Kind::ALL[nth];
            let layout = layout_of(kind).expect("every kind has a layout");
            let before = vec![filling; layout.size];
            let mut after = before.clone();
            let new = Serials { task: 0x0101_0101, process: 0x0202_0202, other: 0x0303_0303 };
            renumber(kind, &mut after, new);
            if kind == Kind::Fork {
                renumber_child(&mut after, 0x0404_0404, 0x0505_0505);
            }
            let mut expected = before;
            let mut fill = |at: usize, with: u8| expected[at..at + 4].fill(with);
            fill(offset_of!(Head, task), 1);
            for field in layout.fields.iter().filter(|field| SERIALS.contains(&field.name)) {
                fill(field.offset, match field.name {
                    "process" => 2,
                    "child" => 4,
                    "child_process" => 5,
                    _ => 3,
                });
            }
            prop_assert_eq!(after, expected);
        }

        /// Short records are no reason to panic.
        #[test]
        fn any_bytes_are_survived(nth in 0..Kind::ALL.len(), mut bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let kind = Kind::ALL[nth];
            let _ = other_of(kind, &bytes);
            renumber(kind, &mut bytes, Serials { task: 1, process: 2, other: 3 });
            renumber_child(&mut bytes, 4, 5);
        }
    }
}
