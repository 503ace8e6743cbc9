//! A recording at a glance: the summary, the figures that gates compare, what could not be seen.

pub(crate) mod blind_spots;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod rule_uses;
pub(crate) mod summary;
pub(crate) mod tables;
