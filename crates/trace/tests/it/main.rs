//! Tests of trace files: whole, damaged, hostile, of earlier versions, and while they grow.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accidents;
mod common;
mod follow;
mod formats;
mod opening;
mod regressions;
