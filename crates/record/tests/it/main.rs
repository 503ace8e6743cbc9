//! Tests of launching and following commands. Those of signals are a program of their own (signals.rs).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod following;
mod header;
mod launching;
