//! Names that once failed in fuzzing (`cargo xtask fuzz escapes`), or that were constructed as edge
//! cases.

#[path = "../../../../fuzz/harness/escapes.rs"]
mod harness;
#[path = "../../../../fuzz/harness/regressions.rs"]
mod inputs;

#[test]
fn regressions_do_not_crash() {
    inputs::run("escapes", harness::run);
}
