//! What did not make it into a recording.

use proctrace_wire::{Kind, LossReason};

/// A number of lost records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossCount {
    /// Of what kind.
    pub kind: Kind,
    /// Why.
    pub reason: LossReason,
    /// On which CPU, where known.
    pub cpu: Option<u32>,
    /// How many.
    pub count: u64,
}

impl From<LossCount> for proctrace_trace::LossCount {
    /// As a trailer names it.
    fn from(loss: LossCount) -> Self {
        Self {
            kind: loss.kind.name().to_owned(),
            reason: loss.reason.name().to_owned(),
            cpu: loss.cpu,
            count: loss.count,
        }
    }
}
