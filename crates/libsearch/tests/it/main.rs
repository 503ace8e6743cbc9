//! Tests of the models of dynamic linkers, against real ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kinds;
mod root;
mod strace;
mod support;
