//! Regression inputs: files on which fuzzing failed (`cargo xtask fuzz trace-reader`), or that were
//! constructed by hand.

#[path = "../../../../fuzz/harness/trace_reader.rs"]
mod harness;
#[path = "../../../../fuzz/harness/regressions.rs"]
mod inputs;

#[test]
fn regressions_do_not_crash() {
    inputs::run("trace-reader", harness::run);
}
