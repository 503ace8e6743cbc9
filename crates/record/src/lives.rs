//! Live processes, their births and origins: what is said about processes that are left behind.

use std::collections::HashMap;
use std::sync::Arc;

use proctrace_wire::{Frame, Kind, Record, mark_of_path};

/// Processes that are kept: as many as most machines can have at once by default.
const ALIVE_MAX: usize = 1 << 16;
/// Bytes of a command line that are kept.
const LINE_BYTES_MAX: usize = 200;
/// Marks that are kept, as in the analysis.
const MARKS_MAX: usize = 10_000;

/// Data of a process from its birth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its command line, or that of its forker if it executed nothing itself; None if it is not known.
    pub command: Option<String>,
    /// The phase in which it was born.
    pub phase: Phase,
}

/// A phase of the payload: the time from a mark to the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Phase {
    /// There are no marks, or the birth is not known.
    #[default]
    Unknown,
    /// The phase before the first mark.
    BeforeMarks,
    /// The phase of the mark of this text.
    Of(String),
}

/// The process that ended last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Straggler {
    /// Its pid, in the initial pid namespace.
    pub pid: i32,
    /// CLOCK_BOOTTIME at its end.
    pub ended_ns: u64,
    /// Origin of the process.
    pub origin: Origin,
}

#[derive(Debug)]
struct Life {
    pid: i32,
    born_ns: u64,
    line: Option<Arc<str>>,
}

/// The processes that are alive by the records so far, and the marks.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// Live processes by serial.
    alive: HashMap<u32, Life>,
    last: Option<(Life, u64)>,
    /// Time and text, in order of arrival.
    marks: Vec<(u64, Arc<str>)>,
    /// Look-ups that are marks, by number.
    numbered: HashMap<u32, Arc<str>>,
}

impl Lives {
    /// Takes note of a record; most are none of its business.
    #[inline]
    pub(crate) fn see(&mut self, frame: Frame<'_>) {
        let is = |kinds: &[Kind]| kinds.iter().any(|kind| frame.head.kind == *kind as u16);
        if let Some(again) = frame.lookup_again() {
            if !self.numbered.is_empty()
                && let Some(text) = self.numbered.get(&again.number).cloned()
            {
                self.mark(again.head.time_ns, text);
            }
        } else if is(&[Kind::Attach, Kind::Fork, Kind::Exec, Kind::Exit])
            || is(&[Kind::LookupFailed, Kind::LookupNamed])
        {
            self.take(frame);
        }
    }

    fn take(&mut self, frame: Frame<'_>) {
        match Record::decode(frame) {
            Ok(Record::Attach(attach)) if !attach.is_thread() => {
                let life = Life { pid: attach.tgid, born_ns: attach.start_ns, line: None };
                self.born(attach.process, life);
            }
            Ok(Record::Fork(fork)) if !fork.is_thread() => {
                let line = self.alive.get(&fork.process).and_then(|forker| forker.line.clone());
                let life = Life { pid: fork.child_tgid, born_ns: fork.head.time_ns, line };
                self.born(fork.child_process, life);
            }
            Ok(Record::Exec(exec)) => {
                if let Some(text) = exec.mark() {
                    self.mark(exec.fixed.head.time_ns, text_of(&text));
                }
                if let Some(life) = self.alive.get_mut(&exec.fixed.process) {
                    life.line = exec.line(LINE_BYTES_MAX).map(Arc::from);
                }
            }
            Ok(Record::Exit(exit)) if exit.is_process() => {
                let Some(life) = self.alive.remove(&exit.process) else { return };
                // Records of different CPUs may come in another order than they were made.
                let ended_ns = exit.head.time_ns;
                if self.last.as_ref().is_none_or(|(_, last_ns)| *last_ns <= ended_ns) {
                    self.last = Some((life, ended_ns));
                }
            }
            Ok(Record::LookupFailed(miss, path)) => {
                if let Some(text) = mark_of_path(path) {
                    self.mark(miss.head.time_ns, text_of(text));
                }
            }
            Ok(Record::LookupNamed(named, path)) => {
                let Some(text) = mark_of_path(path).map(text_of) else { return };
                if named.number != 0 && self.numbered.len() < MARKS_MAX {
                    self.numbered.insert(named.number, Arc::clone(&text));
                }
                self.mark(named.head.time_ns, text);
            }
            _ => {}
        }
    }

    fn born(&mut self, serial: u32, life: Life) {
        if self.alive.len() < ALIVE_MAX {
            self.alive.insert(serial, life);
        }
    }

    fn mark(&mut self, time_ns: u64, text: Arc<str>) {
        if self.marks.len() < MARKS_MAX {
            self.marks.push((time_ns, text));
        }
    }

    /// Origin of a process that is alive, by its serial.
    pub(crate) fn origin(&self, serial: u32) -> Origin {
        self.alive.get(&serial).map_or_else(Origin::default, |life| self.origin_of(life))
    }

    /// The process that ended last.
    pub(crate) fn last(&self) -> Option<Straggler> {
        let (life, ended_ns) = self.last.as_ref()?;
        Some(Straggler { pid: life.pid, ended_ns: *ended_ns, origin: self.origin_of(life) })
    }

    fn origin_of(&self, life: &Life) -> Origin {
        // A mark by look-up that comes right after a fork has the time of that fork.
        let before = self.marks.iter().filter(|(time_ns, _)| *time_ns < life.born_ns);
        let phase = match before.max_by_key(|(time_ns, _)| *time_ns) {
            Some((_, text)) => Phase::Of(text.to_string()),
            None if self.marks.is_empty() => Phase::Unknown,
            None => Phase::BeforeMarks,
        };
        Origin { command: life.line.as_deref().map(str::to_owned), phase }
    }
}

fn text_of(bytes: &[u8]) -> Arc<str> {
    proctrace_wire::escape::to_text(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::layout::{Again, EXIT_PROCESS, Exit, Fork, Head, Named};
    use proctrace_wire::{Frames, IntoBytes, MARK_PATH};
    use zerocopy::FromZeros;

    fn see(lives: &mut Lives, kind: Kind, time_ns: u64, mut bytes: Vec<u8>) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let size = u16::try_from(bytes.len()).unwrap();
        let head = Head { kind: kind as u16, size, task: 1, time_ns };
        bytes[..size_of::<Head>()].copy_from_slice(head.as_bytes());
        Frames::new(&bytes).flatten().for_each(|frame| lives.see(frame));
    }

    fn fork(lives: &mut Lives, time_ns: u64, child: u32) {
        let mut fork = Fork::new_zeroed();
        (fork.child, fork.child_process, fork.child_tgid) = (child, child, child as i32 + 100);
        see(lives, Kind::Fork, time_ns, fork.as_bytes().to_vec());
    }

    fn exit(lives: &mut Lives, time_ns: u64, process: u32) {
        let mut exit = Exit::new_zeroed();
        (exit.process, exit.bits) = (process, EXIT_PROCESS);
        see(lives, Kind::Exit, time_ns, exit.as_bytes().to_vec());
    }

    fn look_up(lives: &mut Lives, time_ns: u64, number: u32, text: &str) {
        let mut named = Named::new_zeroed();
        let path = [MARK_PATH, text.as_bytes()].concat();
        (named.number, named.path_bytes) = (number, path.len() as u16);
        see(lives, Kind::LookupNamed, time_ns, [named.as_bytes(), &path].concat());
    }

    #[test]
    fn a_process_belongs_to_the_phase_of_its_birth() {
        let mut lives = Lives::default();
        fork(&mut lives, 5, 2);
        assert_eq!(lives.origin(2).phase, Phase::Unknown);
        look_up(&mut lives, 10, 7, "a");
        fork(&mut lives, 20, 3);
        // With the time of the fork, as it came right after it.
        look_up(&mut lives, 20, 8, "b");
        fork(&mut lives, 25, 4);
        see(
            &mut lives,
            Kind::LookupAgain,
            30,
            Again { number: 7, ..Again::new_zeroed() }.as_bytes().to_vec(),
        );
        fork(&mut lives, 31, 5);
        assert_eq!(lives.origin(2).phase, Phase::BeforeMarks);
        for (serial, phase) in [(3, "a"), (4, "b"), (5, "a")] {
            assert_eq!(lives.origin(serial).phase, Phase::Of(phase.to_owned()), "{serial}");
        }
        assert_eq!(lives.origin(9), Origin::default());
    }

    #[test]
    fn the_last_to_end_is_known_in_whatever_order_the_records_come() {
        let mut lives = Lives::default();
        assert_eq!(lives.last(), None);
        for serial in 2..5 {
            fork(&mut lives, 1, serial);
        }
        for (time_ns, serial) in [(10, 2), (30, 3), (20, 4)] {
            exit(&mut lives, time_ns, serial);
        }
        let last = lives.last().unwrap();
        assert_eq!((last.pid, last.ended_ns), (103, 30));
        assert!(lives.alive.is_empty());
    }
}
