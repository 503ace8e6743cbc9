//! Beginning of jobs and of their tasks: by a move into a cgroup, a fork, or a move from another job.

use proctrace_trace::{Spool, Writer};
use proctrace_wire::layout::{ATTACH_ZOMBIE, Attach, Fork, Head, SAMPLE_FINAL, Sample};
use proctrace_wire::{IntoBytes, Kind, Stream};

use crate::header::header;
use crate::job::Job;
use crate::jobs::Jobs;
use crate::mounts::through;
use crate::naming::{Found, JobCgroup, find};
use crate::outputs::{NodeError, Outputs};
use crate::serials::{Serials, renumber, renumber_child};
use crate::tasks::JobTask;

impl<O: Outputs> Jobs<O> {
    /// The job of this number, which begins now if there is none.
    fn job(&mut self, serial: u32, group: u32, time_ns: u64) -> Option<&mut Job> {
        if !self.jobs.contains_key(&group) {
            let name = self.named.remove(&serial);
            let job = match find(&self.patterns, &self.root, group, name.as_deref()) {
                Found::Job(cgroup) => self.begin(cgroup, time_ns),
                Found::Other => None,
            };
            self.jobs.insert(group, job);
        }
        self.jobs.get_mut(&group)?.as_mut()
    }

    fn begin(&mut self, cgroup: JobCgroup, time_ns: u64) -> Option<Job> {
        let earlier = self.before.of(cgroup.path.as_deref());
        let header = header(self.outputs.base(), &cgroup, time_ns);
        let (path, file) = match self.outputs.create(&cgroup, &header) {
            Ok(created) => created,
            Err(error) => {
                self.outputs.failed(&cgroup, NodeError::Create(error));
                return None;
            }
        };
        let spool = match Writer::new(file, &header).and_then(Spool::new) {
            Ok(spool) => spool,
            Err(source) => {
                // What is in it is not a trace.
                let _ = std::fs::remove_file(&path);
                self.outputs.failed(&cgroup, NodeError::Begin { path, source });
                return None;
            }
        };
        let since = (time_ns, self.moment());
        let mut job = Job::new(cgroup, path, spool, since, self.losses.clone());
        job.earlier = earlier;
        job.below_root = job
            .cgroup
            .path
            .as_ref()
            .and_then(|path| Some(path.strip_prefix(&self.root).ok()?.to_owned()));
        if let Some((own, table)) = self.mounts.table() {
            job.namespaces.insert(own, 0);
            for record in table {
                // An error shows with the next record.
                let _ = job.put(Stream::Lifecycle, time_ns, &through(record, 0));
            }
        }
        Some(job)
    }

    /// Begins to record a task in a job; returns it as it is known there.
    fn enter(&mut self, serial: u32, process: u32, group: u32, time_ns: u64) -> Option<JobTask> {
        let leader = self.tasks.get(process).filter(|leader| leader.group == group);
        let state = u16::from(b'R');
        let since_ns = if self.tasks.alive(serial).is_some() { time_ns } else { 0 };
        let Some(job) = self.job(serial, group, time_ns) else {
            self.tasks.insert(serial, JobTask { group, serial: 0, process: 0, state, since_ns });
            return None;
        };
        let own = job.next_serial();
        let process = match leader {
            Some(leader) if serial != process => leader.process,
            _ => own,
        };
        let task = JobTask { group, serial: own, process, state, since_ns };
        self.tasks.insert(serial, task);
        Some(task)
    }

    /// A task goes on in another job: for the one that it leaves, what it used is final.
    fn leave(&mut self, task: JobTask, attach: &Attach) {
        let Some(job) = self.recorded(task.group) else { return };
        job.live = job.live.saturating_sub(1);
        job.is_cut = true;
        let sample = Sample {
            head: Head {
                kind: Kind::Sample as u16,
                size: size_of::<Sample>() as u16,
                task: task.serial,
                time_ns: attach.head.time_ns,
            },
            process: task.process,
            tgid: attach.tgid,
            tid: attach.tid,
            state: u16::from(b'S'),
            bits: SAMPLE_FINAL,
            run_ns: attach.run_ns,
            utime_ns: attach.utime_ns,
            stime_ns: attach.stime_ns,
            nvcsw: attach.nvcsw,
            nivcsw: attach.nivcsw,
            minflt: attach.minflt,
            majflt: attach.majflt,
            rchar: attach.rchar,
            wchar: attach.wchar,
            read_bytes: attach.read_bytes,
            write_bytes: attach.write_bytes,
            run_delay_ns: attach.run_delay_ns,
            rss_pages: 0,
        };
        let written = job.put(Stream::Samples, attach.head.time_ns, sample.as_bytes());
        self.check(task.group, written);
    }

    pub(crate) fn take_attach(&mut self, time_ns: u64, record: &[u8], attach: &Attach) {
        let serial = attach.head.task;
        if let Some(before) = self.tasks.alive(serial) {
            if before.group == attach.group {
                return;
            }
            self.tasks.leave(serial);
            self.leave(before, attach);
        }
        if self.enter(serial, attach.process, attach.group, time_ns).is_some() {
            self.route(Stream::Lifecycle, time_ns, record, Kind::Attach, serial);
            self.look_at(serial, attach.tgid);
            // Its end will not be recorded.
            if attach.bits & ATTACH_ZOMBIE != 0
                && self.tasks.end(serial)
                && let Some(job) = self.recorded(attach.group)
            {
                job.live = job.live.saturating_sub(1);
            }
        }
    }

    /// Looks for the user of a process, and for the variables of the batch system in its environment.
    pub(crate) fn look_at(&mut self, serial: u32, tgid: i32) {
        let reads_variables = self.reads_variables;
        let Some(job) = self.job_of(serial) else { return };
        job.owner.look_at(tgid, job.below_root.as_deref());
        if reads_variables {
            job.variables.look_at(tgid);
        }
    }

    pub(crate) fn take_fork(&mut self, time_ns: u64, record: &[u8], fork: &Fork) {
        let forker = self.tasks.get(fork.head.task);
        let group = forker.map_or(fork.group, |forker| forker.group);
        let child = self.enter(fork.child, fork.child_process, group, time_ns);
        let Some(mut child) = child else { return };
        // The first thread of its process may have ended long ago.
        if let Some(forker) = forker.filter(|_| fork.is_thread()) {
            child.process = forker.process;
            self.tasks.insert(fork.child, child);
        }
        let mut copy = std::mem::take(&mut self.buffer);
        copy.clear();
        copy.extend_from_slice(record);
        let by = forker.map_or((0, 0), |forker| (forker.serial, forker.process));
        renumber(Kind::Fork, &mut copy, Serials { task: by.0, process: by.1, other: 0 });
        renumber_child(&mut copy, child.serial, child.process);
        self.put(group, Stream::Lifecycle, time_ns, &copy);
        self.buffer = copy;
    }
}
