//! See the harness of the same name. The parser is compiled in here without the rest of its crate,
//! which would bring polars, by far the largest dependency, into each build with a sanitizer.

#![no_main]

#[path = "../harness/rules.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../../analysis/src/classify/pack.rs"]
mod pack;
#[allow(dead_code)]
#[path = "../../analysis/src/classify/pattern.rs"]
mod pattern;

/// The modules by the names that they have in their crate.
mod classify {
    pub(crate) use crate::{pack, pattern};
}

/// As in their crate, without what polars says.
mod error {
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum AnalysisError {
        #[error("{name}:{line}:{column}: {message}")]
        Rules { name: String, line: usize, column: usize, message: String },
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::run(data));
