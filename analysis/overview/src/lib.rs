//! A recording at a glance: the summary, the sums behind all tables of programs, the critical path, what could not be
//! seen, and what else several views share.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(missing_docs, reason = "fields are named after what they hold, with their unit")]

pub mod blame;
pub mod blind_spots;
pub mod details;
pub mod disk;
pub mod ends;
pub mod events;
pub mod figures;
pub mod kernels;
mod last_miss;
pub mod lives;
pub mod lookups;
pub mod memory;
pub mod nearest;
pub mod options;
pub mod outcomes;
pub mod passes;
pub mod path;
pub mod path_findings;
pub mod phases;
pub mod processes;
pub mod programs;
pub mod requested;
pub mod requests;
pub mod rule_uses;
pub mod senders;
pub mod stacks;
pub mod step_early;
pub mod step_files;
pub mod step_needs;
pub mod step_order;
pub mod step_path;
#[cfg(test)]
mod step_scenes;
pub mod steps;
pub mod summary;
pub mod sums;
