//! Tests of payloads: of what scenarios declare, and of runs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod running;
mod scenarios;
