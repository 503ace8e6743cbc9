//! Target of the harness of the same name, in which the parser is compiled without the rest of its
//! crate, to avoid building polars, by far the largest dependency, with each sanitizer.

#![no_main]

#[path = "../harness/rules.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../../analysis/src/classify/pack.rs"]
mod pack;
#[allow(dead_code)]
#[path = "../../analysis/src/classify/pattern.rs"]
mod pattern;

/// The modules under the names they have in their crate.
mod classify {
    pub(crate) use crate::{pack, pattern};
}

/// As in their crate, without the polars error.
mod error {
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum AnalysisError {
        #[error("{name}:{line}:{column}: {message}")]
        Rules { name: String, line: usize, column: usize, message: String },
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::run(data));
