//! A recording as a stream of events: in time order, joined, ready to print or to analyse.
//!
//! The trace file contains three streams of records, each in its order of arrival, and some data in
//! parts: a long argv in several records, an environment once for all execs that share it, a failed
//! look-up in full once and then by number. [`Replay`] joins them.
//!
//! ```no_run
//! let mut replay = proctrace_replay::Replay::open("job.ptrace")?;
//! while let Some(event) = replay.next() {
//! println!("{}", event.to_json());
//! }
//! # Ok::<(), proctrace_trace::ReadError>(())
//! ```
//!
//! Where order does not matter, as for counting, [`records`] is faster, and [`lookups()`] for
//! failed look-ups, which are the most frequent records.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod assemble;
mod cputime;
mod cursor;
mod event;
mod json;
mod lookups;
mod mounts;
mod replay;
pub mod ticks;
mod usage;

pub use assemble::{Assembler, variables};
pub use cputime::{CpuTime, scale};
pub use cursor::{Decoded, FileAct, lookups, opens, records, records_of, timed_lookups};
pub use event::{
    Body, Environment, Event, Exec, Exit, Miss, Moved, Place, Sample, TimedMiss, Workdir, Written,
};
pub use json::KEYS_OF;
pub use lookups::{Lookup, Lookups};
pub use mounts::{Mount, MountTable};
pub use replay::{Replay, Summary};
pub use usage::Usage;
