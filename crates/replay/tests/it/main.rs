//! Tests of the joined records of a trace.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod reading;
mod regressions;
