//! A recording at a glance: the summary, the sums that all tables of programs rest on, the figures that
//! gates compare, what could not be seen.

pub(crate) mod blind_spots;
pub(crate) mod ends;
pub(crate) mod lives;
pub(crate) mod lookups;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod processes;
pub(crate) mod programs;
pub(crate) mod rule_uses;
pub(crate) mod summary;
pub(crate) mod sums;
