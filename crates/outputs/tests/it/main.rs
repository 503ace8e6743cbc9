//! Tests of the files that are written: for any user, where others have planted something, and that nothing else writes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod everywhere;
mod ordinary;
mod root;
