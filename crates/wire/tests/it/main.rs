//! Tests of the layout of records, and of their decoder.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod layout;
mod regressions;
