//! Tests of the crates of the analysis together, by recordings with damage and with parts missing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod gantt;
mod hostile;
mod inspect;
mod page;
mod tables;
mod unknown;
