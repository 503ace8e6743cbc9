//! Any bytes as a request to the broker: refused with a reason, or within its limits. The same as a map of user ids, by
//! which the rights of a client are decided.

use proctrace_broker::{HookChoice, Request, Which, is_root_by};

pub(crate) fn run(data: &[u8]) {
    let map = String::from_utf8_lossy(data);
    for uid in [0, 1, 1000, u32::MAX] {
        // Nobody is root by a map that has no line for that.
        let may_be = map.lines().any(|line| line.split_whitespace().count() >= 3);
        assert!(!is_root_by(&map, uid) || may_be);
    }
    match Request::read(data) {
        Ok(request) => {
            assert!(request.ring_bytes.is_power_of_two());
            assert!((4096..=1 << 30).contains(&request.ring_bytes));
            assert!(!request.block_when_full && request.lookup_hook == HookChoice::Auto);
            assert!(request.env_names.len() <= 32 && request.misses.len() <= data.len());
            assert!(!matches!(&request.scope, Which::Pids(pids) if pids.len() > 1024));
            // What is passed on is what was checked.
            let again = serde_json::to_vec(&request).expect("it has no maps");
            assert_eq!(Request::read(&again).as_ref(), Ok(&request));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
