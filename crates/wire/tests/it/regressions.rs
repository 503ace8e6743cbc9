//! Regression inputs: records on which fuzzing failed (`cargo xtask fuzz record-decoder`), or that
//! were constructed by hand.

#[path = "../../../../fuzz/harness/record_decoder.rs"]
mod harness;
#[path = "../../../../fuzz/harness/regressions.rs"]
mod inputs;

#[test]
fn regressions_do_not_crash() {
    inputs::run("record-decoder", harness::run);
}
