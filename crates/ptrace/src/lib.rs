//! The ptrace source of records: for users who may not load BPF programs.
//!
//! A process of its own, the tracer, is attached to every task of the payload and writes records to
//! memory that it shares with the recorder. It needs no privileges. Births, execs and ends of tasks
//! stop the task concerned; failed look-ups are seen by means of a seccomp filter, which stops a task
//! at every look-up. docs/decisions/0053-ptrace-source.md explains why it is built like this, and what
//! it costs.
//!
//! ```no_run
//! use proctrace_ptrace::{PtraceOptions, Traced};
//! use proctrace_record::{Command, Options, Signals, record};
//! # use proctrace_record::Sink;
//! # struct MySink;
//! # impl Sink for MySink {
//! #     fn push(&mut self, _: proctrace_wire::Stream, _: u64, _: &[u8]) -> std::io::Result<()> { Ok(()) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let signals = Signals::block()?; // before any thread is started
//! let options = Options::default();
//! let mut source = Traced::start(&options, &PtraceOptions::default())?;
//! let command = Command::new("/bin/true", ["true"], std::env::vars_os());
//! let finished = record(&mut source, &signals, Some(&command), &options, &mut MySink)?;
//! println!("{} tasks, {:?}", finished.counts.tasks(), finished.payload);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(unsafe_code, reason = "system calls that no crate wraps; each says why it is sound")]

mod arch;
mod doctor;
mod error;
mod filter;
mod listener;
mod options;
mod process;
mod procfs;
mod records;
mod ring;
mod sampling;
mod shared;
mod source;
mod sys;
mod tracer;

pub use doctor::may_trace;
pub use error::PtraceError;
pub use options::PtraceOptions;
pub use source::Traced;
