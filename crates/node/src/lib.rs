//! One recorder for all jobs of a node: the records of each job in a trace of its own.
//!
//! The BPF programs record every process in the cgroup of a job, and say with its first record which job
//! that is. [`Jobs`] is the sink of that recording: it keeps the job of each live task, opens a trace with
//! the first task of a job, gives its tasks serials of their own, and ends the trace when the cgroup is
//! gone. What it remembers is bounded by the tasks that are alive, not by what has happened.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod before;
mod births;
mod ends;
mod header;
mod job;
mod jobs;
mod mounts;
mod naming;
mod outputs;
mod owner;
mod queue;
mod serials;
mod tasks;
mod usage;
mod variables;

pub use jobs::Jobs;
pub use naming::{JobCgroup, file_name};
pub use outputs::{Ended, NodeError, Outputs};
pub use queue::{Queue, Summarized, cgroup_of};
pub use variables::RECORDED_VARIABLES;
