//! Budgets, limits, selectors and metrics that once failed in fuzzing (`cargo xtask fuzz budget`),
//! or that were constructed as edge cases.

#[path = "../../../../fuzz/harness/budget.rs"]
mod harness;
#[path = "../../../../fuzz/harness/regressions.rs"]
mod inputs;

#[test]
fn regressions_do_not_crash() {
    inputs::run("budget", harness::run);
}
