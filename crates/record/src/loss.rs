//! The records lost by a recording.

use proctrace_wire::{Kind, LossReason};

/// A number of lost records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossCount {
    /// The kind of record.
    pub kind: Kind,
    /// Why.
    pub reason: LossReason,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// How many.
    pub count: u64,
}

impl From<LossCount> for proctrace_trace::LossCount {
    /// Converts it to the form of a trailer.
    fn from(loss: LossCount) -> Self {
        Self {
            kind: loss.kind.name().to_owned(),
            reason: loss.reason.name().to_owned(),
            cpu: loss.cpu,
            count: loss.count,
        }
    }
}
