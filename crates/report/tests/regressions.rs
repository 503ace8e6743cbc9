//! Names on which fuzzing failed once (`cargo xtask fuzz escapes`), or that were made to be awkward.

#[path = "../../../fuzz/harness/escapes.rs"]
mod harness;
#[path = "../../../fuzz/harness/regressions.rs"]
mod regressions;

#[test]
fn regressions_do_not_crash() {
    regressions::run("escapes", harness::run);
}
