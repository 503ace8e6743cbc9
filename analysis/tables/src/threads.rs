//! Threads of the engine: it must be able to start its own, and reads deep queries on a stack that is large enough.

use std::io;
use std::num::NonZero;
use std::sync::mpsc::channel;
use std::thread::{Builder, available_parallelism, scope};

/// Stack for reading and answering a query of [`PARTS_MAX`](crate::size::PARTS_MAX) parts. Only what is used of it takes memory. With the
/// parts of polars that are not optimized (Cargo.toml), 2,400 levels fit.
const STACK_BYTES: usize = 256 << 20;

/// Starts as many threads at once as the engine does on its first use, where it panics if it cannot (`RLIMIT_NPROC`,
/// `pids.max`).
///
/// # Errors
/// If one of them cannot be started.
pub(crate) fn can_start() -> io::Result<()> {
    scope(|scope| {
        let mut waiting = Vec::new();
        for _ in 0..available_parallelism().map_or(1, NonZero::get) {
            let (until, ended) = channel::<()>();
            Builder::new().spawn_scoped(scope, move || ended.recv().is_err())?;
            waiting.push(until);
        }
        Ok(())
    })
}

/// Does something with a query of an allowed size, on a stack that is large enough for it.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    can_start()?;
    scope(|scope| {
        let thread = Builder::new().name("proctrace-query".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
