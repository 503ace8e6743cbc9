//! Regression inputs: requests on which fuzzing failed (`cargo xtask fuzz broker`), or that were constructed by
//! hand, and any others.

#[path = "../../../fuzz/harness/broker.rs"]
mod harness;
#[path = "../../../fuzz/harness/regressions.rs"]
mod regressions;

use proctrace_broker::Request;
use proctrace_probe::EbpfOptions;
use proctrace_record::Options;
use proptest::prelude::*;

#[test]
fn regressions_do_not_crash() {
    regressions::run("broker", harness::run);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>) {
        harness::run(&bytes);
    }

    #[test]
    fn a_damaged_request_is_read(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let request =
            Request::of(&Options::default(), &EbpfOptions::default(), None, "make".to_owned());
        let mut bytes = serde_json::to_vec(&request).expect("it has no maps");
        let at = at.index(bytes.len());
        bytes[at] = byte;
        harness::run(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        harness::run(&bytes);
    }
}
