//! A recording as a stream of events: in order of time, joined, ready to print or to analyse.
//!
//! The trace file holds three streams of records, each in its order of arrival, and some things
//! in pieces: a long argv in several records, an environment once for all who share it, a failed
//! look-up in full once and then by number. [`Replay`] puts them together.
//!
//! ```no_run
//! let mut replay = proctrace_replay::Replay::open("job.ptrace")?;
//! while let Some(event) = replay.next() {
//!     println!("{}", event.to_json());
//! }
//! # Ok::<(), proctrace_trace::ReadError>(())
//! ```
//!
//! What needs no order, like counting, can be had faster with [`records`], and failed look-ups,
//! of which there are most, with [`lookups()`].

mod assemble;
mod cputime;
mod cursor;
mod event;
mod json;
mod lookups;
mod replay;

pub use assemble::{Assembler, variables};
pub use cputime::{CpuTime, scale};
pub use cursor::{Decoded, lookups, records};
pub use event::{Body, Environment, Event, Exec, Exit, Fork, Miss, Sample, Workdir};
pub use lookups::Lookup;
pub use replay::{Replay, Summary};
