//! Budgets, limits, selectors and figures on which fuzzing failed once (`cargo xtask fuzz budget`), or that were made to be awkward.

#[path = "../../../fuzz/harness/budget.rs"]
mod harness;
#[path = "../../../fuzz/harness/regressions.rs"]
mod regressions;

#[test]
fn regressions_do_not_crash() {
    regressions::run("budget", harness::run);
}
