//! Traces on which fuzzing failed once (`cargo xtask fuzz replay`), or that were made to be awkward.

#[path = "../../../fuzz/harness/replay.rs"]
mod harness;
#[path = "../../../fuzz/harness/regressions.rs"]
mod regressions;

#[test]
fn regressions_do_not_crash() {
    regressions::run("replay", harness::run);
}
