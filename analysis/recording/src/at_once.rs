//! Work done by several threads at once, and by one where no thread can be started (`RLIMIT_NPROC`, `pids.max`).

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};

/// Does both, the first on a thread of its own; one after the other if it cannot be started.
pub fn both<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    let (to_do, done) = (Mutex::new(Some(first)), Mutex::new(None));
    let work = || {
        let first = to_do.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(first) = first {
            let result = first();
            *done.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    let second = with_helpers(1, work, second);
    let first = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(first) = first else { unreachable!("work was called, and did not panic") };
    (first, second)
}

/// Does something else while up to this number of threads do the work, and then joins them. The work is done without
/// those that cannot be started.
pub fn with_helpers<T>(
    threads: usize,
    work: impl Fn() + Sync,
    something_else: impl FnOnce() -> T,
) -> T {
    scope(|scope| {
        let start = |_| Builder::new().name("helper".into()).spawn_scoped(scope, &work).ok();
        let helpers: Vec<_> = (0..threads).map_while(start).collect();
        let done = something_else();
        work();
        for helper in helpers {
            helper.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once() {
        let (mut once, mut here) = (0, 0);
        let both = both(
            || {
                once += 1;
                "first"
            },
            || {
                here += 1;
                "second"
            },
        );
        assert_eq!((both, once, here), (("first", "second"), 1, 1));
    }

    #[test]
    #[should_panic(expected = "of the first")]
    fn a_panic_is_passed_on() {
        both(|| panic!("of the first"), || ());
    }
}
