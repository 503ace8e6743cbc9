//! Tests of the models of dynamic linkers, against real ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod kinds;
mod musl;
mod secure;
mod strace;
mod support;
