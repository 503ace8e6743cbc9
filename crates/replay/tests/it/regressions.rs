//! Regression inputs: traces on which fuzzing failed (`cargo xtask fuzz replay`), or that were
//! constructed by hand.

#[path = "../../../../fuzz/harness/replay.rs"]
mod harness;
#[path = "../../../../fuzz/harness/regressions.rs"]
mod inputs;

#[test]
fn regressions_do_not_crash() {
    inputs::run("replay", harness::run);
}
