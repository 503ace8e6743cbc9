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
