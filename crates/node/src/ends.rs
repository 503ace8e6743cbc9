//! End of jobs: by their cgroup, with the recording, or because they cannot be written.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use proctrace_trace::{Ended as TraceEnded, WriteError};

use crate::job::{FLUSHES_AT_LEAST, Job};
use crate::jobs::Jobs;
use crate::outputs::{Ended, NodeError, Outputs};
use crate::usage::share;

/// Maximum number of cgroups that are known before those beside the jobs are looked up again.
const OTHERS_MAX: usize = 4096;

impl<O: Outputs> Jobs<O> {
    /// Ends the traces of all jobs that are still running.
    pub fn finish(mut self) -> O {
        for (_, job) in std::mem::take(&mut self.jobs) {
            if let Some(job) = job {
                let ended = match job.live {
                    0 => TraceEnded::TreeExited,
                    _ => TraceEnded::Interrupted,
                };
                self.end(job, ended);
            }
        }
        self.outputs
    }

    pub(crate) fn end(&mut self, job: Job, ended: TraceEnded) {
        let (_, _, maxrss_bytes) = self.outputs.used();
        let recorder = share(job.from, self.moment(), job.bytes, maxrss_bytes);
        let ended = if job.is_cut { TraceEnded::Interrupted } else { ended };
        let mut told = Ended {
            cgroup: job.cgroup.clone(),
            trace: job.path.clone(),
            bytes: 0,
            processes: job.counts.processes,
            threads: job.counts.threads,
            wall_ns: job.last_ns.saturating_sub(job.started_ns),
            lost: job.losses(&self.losses).iter().map(|loss| loss.count).sum(),
        };
        match job.finish(ended, &self.losses, recorder, |uid| self.outputs.user_name(uid)) {
            Ok(bytes) => {
                told.bytes = bytes;
                self.outputs.ended(told);
            }
            Err(source) => {
                let error = NodeError::Write { path: told.trace, source };
                self.outputs.failed(&told.cgroup, error);
            }
        }
    }

    /// Gives up a job that cannot be written.
    pub(crate) fn check(&mut self, group: u32, written: Result<(), WriteError>) {
        let Err(error) = written else { return };
        let Some(Some(job)) = self.jobs.insert(group, None) else { return };
        let cgroup = job.cgroup.clone();
        let path = job.path.clone();
        // The writing thread knows the reason.
        let source = job
            .finish(TraceEnded::Interrupted, &self.losses, Default::default(), |_| None)
            .err()
            .unwrap_or(error);
        self.outputs.failed(&cgroup, NodeError::Write { path, source });
    }

    /// Ends the jobs whose cgroups are gone or have been empty for long enough.
    pub(crate) fn end_jobs(&mut self) {
        let mut over = Vec::new();
        for (group, job) in &mut self.jobs {
            let Some(job) = job else { continue };
            // Another cgroup may have got its name.
            let is_it = |path: &PathBuf| path.metadata().is_ok_and(|it| it.ino() as u32 == *group);
            let is_gone = || !job.cgroup.path.as_ref().is_some_and(is_it);
            if job.live > 0 {
                // Whoever left the cgroup alive is not waited for once it is gone.
                match is_gone() {
                    true => job.idle_flushes += 1,
                    false => job.idle_flushes = 0,
                }
            } else {
                job.idle_flushes += 1;
            }
            let is_over = job.idle_flushes >= self.idle_flushes_max
                || (job.live == 0 && job.idle_flushes >= FLUSHES_AT_LEAST && is_gone());
            if is_over {
                over.push(*group);
            }
        }
        for group in over {
            if let Some(Some(mut job)) = self.jobs.remove(&group) {
                if job.live > 0 {
                    // What is left of it does not become another job.
                    job.is_cut = true;
                    self.jobs.insert(group, None);
                } else {
                    self.tasks.forget_job(group);
                }
                self.end(job, TraceEnded::TreeExited);
            }
        }
        if self.jobs.len() > OTHERS_MAX {
            let alive: BTreeSet<u32> = self.tasks.all_alive().map(|task| task.group).collect();
            self.jobs.retain(|group, job| job.is_some() || alive.contains(group));
        }
    }
}
