//! Interface for what the recorder of a node does with the traces of its jobs.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use proctrace_trace::{Header, WriteError};
use thiserror::Error;

use crate::naming::JobCgroup;

/// Destination of the traces of jobs.
pub trait Outputs {
    /// What the headers of all jobs have in common.
    fn base(&self) -> &Header;

    /// Creates the file of that trace.
    ///
    /// # Errors
    /// When it cannot be created. The job is then not recorded.
    fn create(&mut self, cgroup: &JobCgroup, header: &Header) -> io::Result<(PathBuf, File)>;

    /// The recording has begun, with so many jobs that were there already.
    fn ready(&mut self, jobs: usize);

    /// The name of a user, if the node knows one.
    fn user_name(&self, uid: u32) -> Option<String>;

    /// User and system time that the recorder has used so far, and its peak RSS in bytes.
    fn used(&self) -> (u64, u64, u64);

    /// The trace of a job is complete.
    fn ended(&mut self, job: Ended);

    /// The recording of a job failed; the node's goes on.
    fn failed(&mut self, job: &JobCgroup, error: NodeError);
}

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its cgroup.
    pub cgroup: JobCgroup,
    /// Its trace.
    pub trace: PathBuf,
    /// Bytes of it.
    pub bytes: u64,
    /// Processes.
    pub processes: u64,
    /// Threads besides the first of each process.
    pub threads: u64,
    /// From its first record to its last.
    pub wall_ns: u64,
    /// Records that the node lost meanwhile.
    pub lost: u64,
}

/// Reason why a job is not recorded, or not to its end.
#[derive(Debug, Error)]
pub enum NodeError {
    /// Its trace could not be created.
    #[error("cannot create its trace")]
    Create(#[source] io::Error),
    /// Its trace could not be begun, and was removed.
    #[error("cannot write {}", path.display())]
    Begin {
        /// The trace.
        path: PathBuf,
        /// The cause.
        source: WriteError,
    },
    /// Its trace could not be continued: it has what happened until then.
    #[error("cannot write {}", path.display())]
    Write {
        /// The trace.
        path: PathBuf,
        /// The cause.
        source: WriteError,
    },
}
