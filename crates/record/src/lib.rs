//! Code shared by all sources of records: launching a command, following it, and ending.
//!
//! A [`Source`] says how records come to be; [`record`] does everything else. This example plays no
//! records at all, so it needs no privileges:
//!
//! ```
//! use proctrace_record::replaying::Replaying;
//! use proctrace_record::{Command, Options, Signals, record};
//! # use proctrace_record::Sink;
//! # struct MySink;
//! # impl Sink for MySink {
//! #     fn push(&mut self, _: proctrace_wire::Stream, _: u64, _: &[u8]) -> std::io::Result<()> { Ok(()) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let signals = Signals::block()?; // before any thread is started
//! let mut source = Replaying::default();
//! let command = Command::new("/bin/true", ["true"], std::env::vars_os());
//! let options = Options::default();
//! let finished = record(&mut source, &signals, Some(&command), &options, &mut MySink)?;
//! println!("{:?}, {:?}", finished.ended, finished.payload);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here knows where records come from. It has `unsafe` code, each with its reason: starting a
//! process and waiting for it as a recorder must is beyond the crates that wrap system calls.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(unsafe_code, reason = "system calls that no crate wraps; each says why it is sound")]

mod alarm;
mod cgroup;
mod cgroup_pattern;
mod clock;
mod command;
mod count;
mod dispositions;
mod environment;
mod error;
mod finish;
mod follow;
mod header;
mod intake;
mod launch;
mod lives;
mod machine;
mod memory;
mod mounts;
mod options;
mod pace;
mod processor;
mod reap;
mod recording;
pub mod replaying;
mod samples;
mod session;
mod signals;
mod sink;
mod snapshot;
mod source;
mod timers;
mod usage;

pub use cgroup::{OwnCgroup, cgroup_root};
pub use cgroup_pattern::{CgroupDirectory, CgroupPattern, JOB_CGROUPS, PatternError};
pub use clock::{boot_ns, nanoseconds, unix_ns};
pub use command::{Command, Fate, Identity, ResolveError, Stage, find_program};
pub use count::Counts;
pub use environment::{job_variables, variables};
pub use error::RecordError;
pub use finish::{Alive, Finished};
pub use header::{header, memory_bytes, tick_ns};
pub use intake::Intake;
pub use lives::{Origin, Phase, Straggler};
pub use options::{Misses, Options, Scope, TIME_ONE_IN, WAITS_MIN, Wait};
pub use pace::Interval;
pub use processor::processor;
pub use reap::reap;
pub use recording::record;
pub use signals::{Signals, forget_file_limit};
pub use sink::Sink;
pub use source::{Hold, Pass, Preparation, Source, SourceError, TaskCounts, Waker};
pub use usage::{resident_bytes, usage};
