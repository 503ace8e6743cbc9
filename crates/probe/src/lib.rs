//! How records come to be: the BPF programs, the samples, and the payload they follow.
//!
//! ```no_run
//! use proctrace_probe::{Command, Options, Probe, record};
//! # use proctrace_probe::Sink;
//! # struct MySink;
//! # impl Sink for MySink {
//! #     fn push(&mut self, _: proctrace_wire::Stream, _: u64, _: &[u8]) -> std::io::Result<()> { Ok(()) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::default();
//! let probe = Probe::load(&options)?; // every hook is attached from here on
//! let command = Command::new("/bin/true", ["true"], std::env::vars_os());
//! let finished = record(probe, Some(&command), &options, &mut MySink)?;
//! println!("{} tasks, {:?}", finished.counts.tasks(), finished.payload);
//! # Ok(())
//! # }
//! ```
//!
//! This is the only crate that talks to the kernel's BPF, and the only one with `unsafe` code,
//! each with its reason. It needs CAP_BPF and CAP_PERFMON, or root;
//! without CAP_SYS_PTRACE it records only what its user could trace.

#![expect(unsafe_code, reason = "system calls that no crate wraps; each says why it is sound")]

mod btf_extract;
mod cgroup;
mod clock;
mod command;
mod count;
mod detach;
pub mod doctor;

mod error;
mod events;
mod hooks;
mod launch;
mod loss;
mod mapping;
mod memory;
mod object;
mod options;
mod pace;
mod perf_event;
mod preemption;
mod program_info;
mod rights;
mod ring;
mod session;
mod snapshot;
mod task_iterator;
mod tracefs;

pub use cgroup::{CgroupUsage, OwnCgroup};
pub use clock::{boot_ns, unix_ns};
pub use command::{Command, Identity, ResolveError, find_program};
pub use count::Counts;
pub use error::ProbeError;
pub use hooks::Hook;
pub use loss::LossCount;
pub use object::Probe;
pub use options::{
    ENV_NAME_MAX, ENV_NAMES_MAX, LookupHook, Misses, OnFull, Options, PIDS_MAX, Scope, Wait,
};
pub use pace::Interval;
pub use program_info::Program;
pub use session::{Alive, Ended, Finished, Outcome, Payload, Sink, record};
