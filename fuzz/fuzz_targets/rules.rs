//! Target of the harness of the same name.

#![no_main]

#[path = "../harness/rules.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::run(data));
