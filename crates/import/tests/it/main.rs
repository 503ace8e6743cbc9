//! Tests of imported logs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod foreign;
mod options;
mod regressions;
