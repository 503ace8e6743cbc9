//! Any bytes as a request to the broker: refused with a reason, or within its limits.

use proctrace_broker::{Request, Which};

pub(crate) fn run(data: &[u8]) {
    match Request::read(data) {
        Ok(request) => {
            assert!(request.ring_bytes.is_power_of_two());
            assert!((4096..=1 << 30).contains(&request.ring_bytes));
            assert!(request.env_names.len() <= 32 && request.misses.len() <= data.len());
            assert!(!matches!(&request.scope, Which::Pids(pids) if pids.len() > 1024));
            // What is passed on is what was checked.
            let again = serde_json::to_vec(&request).expect("it has no maps");
            assert_eq!(Request::read(&again).as_ref(), Ok(&request));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
