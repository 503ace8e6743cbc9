//! A recording at a glance: the summary, the sums behind all tables of programs, the metrics that
//! gates compare, and what could not be seen.

pub(crate) mod blame;
pub(crate) mod blind_spots;
pub(crate) mod ends;
pub(crate) mod kernels;
pub(crate) mod lives;
pub(crate) mod lookups;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod passes;
pub(crate) mod path;
pub(crate) mod phases;
pub(crate) mod processes;
pub(crate) mod programs;
pub(crate) mod rule_uses;
pub(crate) mod stacks;
pub(crate) mod summary;
pub(crate) mod sums;
