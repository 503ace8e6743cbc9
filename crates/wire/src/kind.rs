//! The kinds of record, and the reasons for their loss.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{FromRepr, IntoStaticStr, VariantArray};

use crate::layout::{
    Again, Attach, Blind, EnvFixed, ExecArgsFixed, ExecFixed, Exit, Fork, Layout, LookupTime, Loss,
    Memory, MissFixed, MountsFixed, MovedFixed, Named, PlaceFixed, Rename, Sample, Signal, Tick,
    Wait, WorkdirFixed, WrittenFixed,
};

/// The kind of a record. The numbers are stored in files: never renumber.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    FromRepr,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum Kind {
    /// A task traced from now on that has no fork record: the launched command, or one that already
    /// existed.
    Attach = 1,
    /// fork, vfork, clone or clone3.
    Fork = 2,
    /// A successful exec.
    Exec = 3,
    /// The continuation of a long argv.
    ExecArgs = 4,
    /// A failed exec.
    ExecFailed = 5,
    /// The end of a task, with its accounting.
    Exit = 6,
    /// A failed path look-up, in traces of wire version 1.
    LookupFailed = 7,
    /// A task's new name.
    Rename = 8,
    /// One live task at one tick.
    Sample = 9,
    /// The end of a pass of samples.
    Tick = 10,
    /// The search variables of an environment.
    Env = 11,
    /// Records that were lost.
    Loss = 12,
    /// A task uses an interface that is not traced.
    Blind = 13,
    /// Memory of a process.
    Memory = 14,
    /// A failed path look-up, with a number.
    LookupNamed = 15,
    /// A repeated failed path look-up, by its number.
    LookupAgain = 16,
    /// The final working directory of a process that never called exec.
    Workdir = 17,
    /// The mount namespace and root of a process.
    Place = 18,
    /// A part of a mount table.
    Mounts = 19,
    /// Duration of a failed look-up.
    LookupTime = 20,
    /// A successful open, with a number.
    OpenedNamed = 21,
    /// A repeated successful open, by its number.
    OpenedAgain = 22,
    /// A time off the CPU.
    Wait = 23,
    /// A signal that usually ends a process.
    Signal = 24,
    /// A file or directory was renamed, or a file removed.
    Moved = 25,
    /// A descriptor was closed through which a file could be written.
    Written = 26,
}

impl Kind {
    /// Every kind, in order of its number.
    pub const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all of them");

    /// The kind with this number, if this version knows it.
    #[inline]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::from_repr(number)
    }

    /// The memory layout of the fixed part; its first field is the head.
    pub fn layout(self) -> Layout {
        match self {
            Self::Attach => Attach::LAYOUT,
            Self::Fork => Fork::LAYOUT,
            Self::Exec => ExecFixed::LAYOUT,
            Self::ExecArgs => ExecArgsFixed::LAYOUT,
            Self::ExecFailed | Self::LookupFailed => MissFixed::LAYOUT,
            Self::Exit => Exit::LAYOUT,
            Self::Rename => Rename::LAYOUT,
            Self::Sample => Sample::LAYOUT,
            Self::Tick => Tick::LAYOUT,
            Self::Env => EnvFixed::LAYOUT,
            Self::Loss => Loss::LAYOUT,
            Self::Blind => Blind::LAYOUT,
            Self::Memory => Memory::LAYOUT,
            Self::LookupNamed | Self::OpenedNamed => Named::LAYOUT,
            Self::LookupAgain | Self::OpenedAgain => Again::LAYOUT,
            Self::Workdir => WorkdirFixed::LAYOUT,
            Self::Place => PlaceFixed::LAYOUT,
            Self::Mounts => MountsFixed::LAYOUT,
            Self::LookupTime => LookupTime::LAYOUT,
            Self::Wait => Wait::LAYOUT,
            Self::Signal => Signal::LAYOUT,
            Self::Moved => MovedFixed::LAYOUT,
            Self::Written => WrittenFixed::LAYOUT,
        }
    }

    /// Says of a kind, by its name, what else is missing where its records were lost; empty where nothing is. A task
    /// whose birth is not known is not followed, and neither is what it starts.
    pub fn missing_with(name: &str) -> &'static str {
        if [Self::Fork.name(), Self::Attach.name()].contains(&name) {
            ", and all descendants"
        } else {
            ""
        }
    }

    /// The name used in `dump` and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason a record was lost.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    FromRepr,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum LossReason {
    /// The ring buffer was full.
    RingFull = 1,
    /// No memory to trace a task: it and its descendants are missing.
    Storage = 2,
    /// The kernel skipped a run of a program because it was already running.
    Recursion = 3,
    /// A line of an imported log was not understood.
    Unreadable = 4,
}

impl LossReason {
    /// Every reason, in order of its number.
    pub const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all of them");

    /// The reason with this number, if this version knows it.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::from_repr(number)
    }

    /// The name used in `dump` and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An interface that is not traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromRepr, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[repr(u32)]
pub enum BlindSpot {
    /// The task created an io_uring: opens through it involve no system call.
    IoUring = 1,
    /// The task was refused to trace another one, or to be traced, because the recorder does that by ptrace(2): a
    /// debugger does not work then.
    RefusedTracer = 2,
    /// The task was left to another tracer, such as a debugger of the payload, by a recorder that uses ptrace(2): it, and
    /// what it starts, is not recorded from then on.
    LetGo = 3,
}

impl BlindSpot {
    /// The blind spot with this number, if this version knows it.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::from_repr(number)
    }

    /// The name used in `dump` and in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_begins_with_a_head() {
        for kind in Kind::ALL {
            let fields = kind.layout().fields;
            assert_eq!(fields[0].name, "head", "{kind:?}");
            assert_eq!(fields[0].size, size_of::<crate::layout::Head>(), "{kind:?}");
        }
    }

    #[test]
    fn names_are_those_of_the_serialised_form() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for reason in LossReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }

    #[test]
    fn kinds_and_blind_spots_have_names() {
        assert_eq!(Kind::LookupFailed.to_string(), "lookup_failed");
        assert_eq!(Kind::missing_with("fork"), ", and all descendants");
        assert_eq!(Kind::missing_with("attach"), ", and all descendants");
        assert_eq!(Kind::missing_with("exit"), "");
        let spots = [1, 2, 3].map(|number| BlindSpot::from_number(number).unwrap().name());
        assert_eq!(spots, ["io_uring", "refused_tracer", "let_go"]);
        assert_eq!((BlindSpot::from_number(0), BlindSpot::from_number(4)), (None, None));
    }

    #[test]
    fn numbers_round_trip() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind as u16), Some(kind));
        }
        for reason in LossReason::ALL {
            assert_eq!(LossReason::from_number(reason as u16), Some(reason));
        }
        assert_eq!(Kind::from_number(0), None);
        assert_eq!(Kind::from_number(27), None);
        assert_eq!(LossReason::from_number(0), None);
        assert_eq!(LossReason::from_number(5), None);
    }
}
