//! Regression inputs: pairs of a caller and a task on which fuzzing failed (`cargo xtask fuzz rights`), or that were
//! constructed by hand, and any others.

#[path = "../../../fuzz/harness/rights.rs"]
mod harness;
#[path = "../../../fuzz/harness/regressions.rs"]
mod regressions;

use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn regressions_do_not_crash() {
    regressions::run("rights", harness::run);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn any_pair_agrees_with_the_kernel(bytes in vec(any::<u8>(), 0..300)) {
        harness::run(&bytes);
    }
}
