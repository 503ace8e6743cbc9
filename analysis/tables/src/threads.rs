//! Threads of the engine: it must be able to start its own, and reads deep queries on a stack that is large enough.

use std::io;
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread::{Builder, available_parallelism, scope};

/// Stack for reading and answering a query of [`PARTS_MAX`](crate::size::PARTS_MAX) parts. Only what is used of it takes
/// memory. With the parts of polars that are not optimized (Cargo.toml), 2,400 levels fit.
const STACK_BYTES: usize = 256 << 20;

/// Threads beside those of the engine: for a query, one that watches how much memory is taken, and one to spare.
const OTHERS: usize = 3;

/// Maximum number of times that other threads are let run until those that have ended are gone.
const YIELDS_MAX: usize = 1_000;

/// Set once it is known that the engine can start its threads, of which there is one pool for the whole process.
static CAN_START: OnceLock<()> = OnceLock::new();

/// Starts as many threads at once as the engine does on its first use, where it panics if it cannot (`RLIMIT_NPROC`,
/// `pids.max`), and a few more.
///
/// # Errors
/// If one of them cannot be started.
pub(crate) fn can_start() -> io::Result<()> {
    if CAN_START.get().is_none() {
        let configured = std::env::var("POLARS_MAX_THREADS").ok().and_then(|it| it.parse().ok());
        let cores = || available_parallelism().map_or(4, NonZero::get);
        start(configured.unwrap_or_else(cores).saturating_add(OTHERS))?;
        let _ = CAN_START.set(());
    }
    Ok(())
}

/// Starts threads that end again when all have been started.
fn start(threads: usize) -> io::Result<()> {
    let before = alive();
    let mut started = Vec::new();
    let mut refused = None;
    for _ in 0..threads {
        let (until, ended) = channel::<()>();
        match Builder::new().spawn(move || ended.recv().is_err()) {
            Ok(thread) => started.push((until, thread)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    for (until, thread) in started {
        drop(until);
        // It cannot panic.
        let _ = thread.join();
    }
    // A thread counts until it is gone, which is shortly after it was joined (release_task() in kernel/exit.c).
    let _ = (0..YIELDS_MAX).find(|_| {
        std::thread::yield_now();
        alive() <= before
    });
    refused.map_or(Ok(()), Err)
}

/// Number of threads of this process; 0 if that is not known.
fn alive() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
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
