//! Tests of the recorder that is built without the analysis.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod ordinary;
mod root;
