//! Tests of summaries, lakes and the questions about them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compact;
mod damaged;
mod fleet;
mod privacy;
mod summary;
