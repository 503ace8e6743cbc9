//! The eBPF source of records: loads the programs into the kernel and drains their buffers.
//!
//! ```no_run
//! use proctrace_probe::{EbpfOptions, Probe};
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
//! let mut probe = Probe::load(&options, &EbpfOptions::default())?; // every hook is attached from here on
//! let command = Command::new("/bin/true", ["true"], std::env::vars_os());
//! let finished = record(&mut probe, &signals, Some(&command), &options, &mut MySink)?;
//! println!("{} tasks, {:?}", finished.counts.tasks(), finished.payload);
//! # Ok(())
//! # }
//! ```
//!
//! This is the only crate that uses the kernel's BPF interfaces, and contains `unsafe` code for
//! them, each with its reason. It needs CAP_BPF and CAP_PERFMON, or root; without CAP_SYS_PTRACE it
//! records only what its user could trace.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(unsafe_code, reason = "system calls that no crate wraps; each says why it is sound")]

mod btf_extract;
mod caller;
mod capable;
mod compiled;
mod credentials;
mod detach;
pub mod doctor;
mod error;
mod hooks;
mod job_cgroups;
mod keeper;
mod kernel_types;
mod link;
mod loaded;
mod loader;
mod mapping;
mod object;
mod options;
mod perf_event;
mod preemption;
mod program_info;
mod rights;
mod ring;
mod seccomp;
mod source;
mod task_iterator;
mod tracefs;
mod verify;
mod who;

pub use caller::{Caller, is_in_initial_pid_namespace};
pub use credentials::Credentials;
pub use error::ProbeError;
pub use keeper::Keeper;
pub use loaded::{Attachments, Loaded, MAPS, Readable};
pub use loader::cgroup_id;
pub use object::{Probe, check_own_pids};
pub use options::{ENV_NAME_MAX, ENV_NAMES_MAX, EbpfOptions, LookupHook, OnFull, PIDS_MAX};
pub use program_info::{ProgramStatistics, program_statistics};
pub use seccomp::forbids_bpf;
pub use tracefs::Tracefs;
pub use who::{MapId, TaskRecords};
