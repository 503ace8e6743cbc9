//! The traces of the jobs of a node: where they are, and what becomes of them.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proctrace_node::{Ended, JobCgroup, NodeError, Outputs, Queue, Summarized, file_name};
use proctrace_outputs::{Access, OutputError, Outputs as Writing};
use proctrace_record::usage;
use proctrace_report::number::{bytes, count, counted, time};
use proctrace_trace::Header;
use proctrace_wire::escape::to_text;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::notify;
use crate::args::RecordArgs;
use crate::summaries::Summaries;
use crate::users::Account;
use crate::{live, say};

/// A directory of traces, one for each job.
pub(super) struct Files {
    directory: PathBuf,
    /// Held as long as traces are written and summarized.
    _lock: File,
    /// Part that the headers of all jobs have in common.
    base: Header,
    quiet: bool,
    jobs: u64,
    failed: u64,
    summaries: Option<Queue>,
}

/// Result of recording a node.
pub(super) struct Done {
    jobs: u64,
    failed: u64,
    directory: PathBuf,
    summarized: Option<Summarized>,
}

impl Done {
    /// Returns whether every job was recorded, and summarized if that was asked for.
    pub(super) fn is_complete(&self) -> bool {
        if self.summarized.is_some_and(|summarized| summarized.failed > 0) {
            return false;
        }
        self.failed == 0
    }
}

impl Files {
    /// Prepares the directory: traces can be read by their owner only, because arguments contain secrets.
    pub(super) fn create(
        directory: &Path,
        base: Header,
        args: &RecordArgs,
        summaries: &dyn Summaries,
    ) -> Result<Self> {
        let made = of_root().create_directory(directory, Access::Owner);
        made.with_context(|| format!("cannot create {}", directory.display()))?;
        let lock = lock(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
            base,
            quiet: args.quiet,
            jobs: 0,
            failed: 0,
            summaries: summaries.of_jobs(directory, args.quiet)?,
        })
    }

    /// Waits until all summaries are written.
    pub(super) fn finish(self) -> Done {
        Done {
            jobs: self.jobs,
            failed: self.failed,
            directory: self.directory,
            summarized: self.summaries.map(Queue::finish),
        }
    }

    fn tell(&self, job: &Ended) {
        if !self.quiet {
            say::note(&format!(
                "{}: {}, {}, {} · {} lost · {} ({})",
                to_text(job.cgroup.name.as_bytes()),
                counted(job.processes, "process", "processes"),
                counted(job.threads, "thread", "threads"),
                time(job.wall_ns),
                count(job.lost),
                job.trace.display(),
                bytes(job.bytes),
            ));
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = counted(self.jobs, "job", "jobs");
        write!(f, "{jobs} recorded in {}", self.directory.display())?;
        if let Some(summarized) = self.summarized {
            write!(f, ", {} summarized", count(summarized.made))?;
        }
        match self.failed {
            0 => Ok(()),
            failed => write!(f, "; {} not recorded to the end", count(failed)),
        }
    }
}

impl Outputs for Files {
    fn base(&self) -> &Header {
        &self.base
    }

    fn create(&mut self, cgroup: &JobCgroup, header: &Header) -> io::Result<(PathBuf, File)> {
        const TRIES: u64 = 100;
        // Opened for each job: it may be another one meanwhile, on a disk that was mounted anew.
        let directory = of_root().directory(&self.directory)?;
        let mut nth = 0;
        loop {
            let started_unix_ns = header.started_unix_ns + nth * 1_000_000;
            let name = file_name(&cgroup.name, started_unix_ns);
            match directory.create_new(&name, Access::Owner) {
                Ok(file) => {
                    live::hold(&file);
                    return Ok((self.directory.join(name), file));
                }
                Err(OutputError::Io(error))
                    if error.kind() == io::ErrorKind::AlreadyExists && nth < TRIES =>
                {
                    nth += 1
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn ready(&mut self, jobs: usize) {
        let running = counted(jobs as u64, "running job", "running jobs");
        let status = format!("recording {running} and those to come");
        if !self.quiet {
            say::note(&format!("{status}; press Ctrl-C to stop"));
        }
        if let Err(error) = notify::ready(&status) {
            say::error(&anyhow::Error::new(error).context("cannot tell systemd"));
        }
    }

    fn user_name(&self, uid: u32) -> Option<String> {
        let user = Account::numbered(nix::unistd::Uid::from_raw(uid)).ok().flatten();
        user.map(|user| user.name)
    }

    fn used(&self) -> (u64, u64, u64) {
        let used = usage(0);
        (used.user_ns, used.system_ns, used.maxrss_bytes)
    }

    fn ended(&mut self, job: Ended) {
        self.jobs += 1;
        self.tell(&job);
        if let Some(summaries) = &self.summaries {
            summaries.add(job.trace, Some(job.cgroup.name));
        }
    }

    fn failed(&mut self, job: &JobCgroup, error: NodeError) {
        self.failed += 1;
        let name = to_text(job.name.as_bytes()).into_owned();
        let what = match error {
            NodeError::Create(_) | NodeError::Begin { .. } => format!("{name} is not recorded"),
            NodeError::Write { .. } => {
                format!("the recording of {name} ends here; the job goes on")
            }
        };
        say::error(&anyhow::Error::new(error).context(what));
    }
}

/// Traces of the jobs of all users are for root alone, whoever called sudo.
fn of_root() -> Writing {
    Writing::of_this_process()
}

/// Two recorders with one directory would both summarize what is left in it.
fn lock(directory: &Path) -> Result<File> {
    let lock =
        File::open(directory).with_context(|| format!("cannot open {}", directory.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            bail!("another recorder writes to {}: name another directory", directory.display())
        }
        // Not every file system has locks, and recording is more important.
        _ => Ok(lock),
    }
}
