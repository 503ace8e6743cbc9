//! Inputs on which a parser once failed, or that were constructed as edge cases, for tests of
//! ordinary builds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// Runs a harness on all inputs of a target.
pub(crate) fn run(target: &str, harness: impl Fn(&[u8])) {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let inputs = manifest
        .ancestors()
        .map(|directory| directory.join("fuzz/regressions").join(target))
        .find(|directory| directory.is_dir())
        .unwrap_or_else(|| panic!("there are no inputs for {target}"));
    let mut run = 0;
    for entry in std::fs::read_dir(inputs).expect("it is a directory") {
        let path = entry.expect("it can be read").path();
        let bytes = std::fs::read(&path).expect("it is a file");
        let outcome = catch_unwind(AssertUnwindSafe(|| harness(&bytes)));
        assert!(outcome.is_ok(), "{target} fails on {}", path.display());
        run += 1;
    }
    assert!(run > 0, "there are no inputs for {target}");
}
