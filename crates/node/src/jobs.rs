//! The sink of a recording of many jobs: gives each record to its job.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashMapExt};
use proctrace_record::{CgroupPattern, Sink};
use proctrace_trace::{self as trace, Header, LossCount, Spool, WriteError, Writer};
use proctrace_wire::layout::{
    ATTACH_ZOMBIE, Attach, Head, SAMPLE_FINAL, Sample, Tick, WORKDIR_JOB,
};
use proctrace_wire::{Frames, IntoBytes, Kind, LossReason, Record, Stream};
use thiserror::Error;

use crate::job::{Job, Losses, States};
use crate::mounts::{OwnMounts, through};
use crate::naming::{Found, JobCgroup, find};
use crate::serials::{Serials, other_of, renumber, renumber_child};
use crate::tasks::{Task, Tasks};
use crate::usage::{Moment, share};

/// Records of tasks that are not known yet, until the next flush.
const HELD_BYTES_MAX: usize = 4 << 20;
/// Flushes after the last task of a job before its trace ends: until then, look-ups may come.
const FLUSHES_AT_LEAST: u32 = 2;
/// Cgroups beside the jobs are looked up again after so many.
const OTHERS_MAX: usize = 4096;

/// What happens with the traces of jobs.
pub trait Outputs {
    /// The header of the trace of a job that begins now.
    fn header(&mut self, cgroup: &JobCgroup, started_ns: u64) -> Header;

    /// Creates the file of that trace.
    ///
    /// # Errors
    /// When it cannot be created. The job is then not recorded.
    fn create(&mut self, cgroup: &JobCgroup, header: &Header) -> io::Result<(PathBuf, File)>;

    /// The recording has begun, with so many jobs that were there already.
    fn ready(&mut self, jobs: usize);

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

/// Why a job is not recorded, or not to its end.
#[derive(Debug, Error)]
pub enum NodeError {
    /// Its trace could not be created.
    #[error("cannot create its trace")]
    Create(#[source] io::Error),
    /// Its trace could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The trace.
        path: PathBuf,
        /// Why.
        source: WriteError,
    },
}

/// A record of a task that is not known yet.
struct Held {
    stream: Stream,
    time_ns: u64,
    record: Vec<u8>,
    was_tried: bool,
}

/// Writes one trace for each job.
pub struct Jobs<O> {
    outputs: O,
    patterns: Vec<CgroupPattern>,
    root: PathBuf,
    /// How many flushes a cgroup may be without processes before its job counts as ended.
    idle_flushes_max: u32,
    /// Whether to look for the variables of batch systems.
    reads_variables: bool,
    /// By number; None for cgroups that are no jobs.
    jobs: BTreeMap<u32, Option<Job>>,
    tasks: Tasks,
    mounts: OwnMounts,
    losses: Losses,
    /// The names of the cgroups of tasks that are attached next, by serial.
    named: HashMap<u32, Vec<u8>>,
    held: Vec<Held>,
    held_bytes: usize,
    bytes: u64,
    buffer: Vec<u8>,
}

impl<O: Outputs> Jobs<O> {
    /// Records the jobs in the cgroups below `root` that the patterns name. A job ends when its cgroup is
    /// removed, or has had no process for `grace_s` seconds.
    pub fn new(outputs: O, patterns: Vec<CgroupPattern>, root: &Path, grace_s: u32) -> Self {
        Self {
            outputs,
            patterns,
            root: root.to_owned(),
            idle_flushes_max: grace_s.max(FLUSHES_AT_LEAST),
            reads_variables: true,
            jobs: BTreeMap::new(),
            tasks: Tasks::default(),
            mounts: OwnMounts::default(),
            losses: Losses::new(),
            named: HashMap::new(),
            held: Vec::new(),
            held_bytes: 0,
            bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// Does not look at the environments of processes.
    #[must_use]
    pub fn without_variables(mut self) -> Self {
        self.reads_variables = false;
        self
    }

    /// Ends the traces of all jobs that are still running.
    pub fn finish(mut self) -> O {
        for (_, job) in std::mem::take(&mut self.jobs) {
            if let Some(job) = job {
                let ended = match job.live {
                    0 => trace::Ended::TreeExited,
                    _ => trace::Ended::Interrupted,
                };
                self.end(job, ended);
            }
        }
        self.outputs
    }

    /// Jobs that are recorded at the moment.
    pub fn running(&self) -> usize {
        self.jobs.values().flatten().count()
    }

    fn moment(&self) -> Moment {
        let (user_ns, system_ns, _) = self.outputs.used();
        Moment { user_ns, system_ns, bytes: self.bytes }
    }

    fn end(&mut self, job: Job, ended: trace::Ended) {
        let (_, _, maxrss_bytes) = self.outputs.used();
        let recorder = share(job.from, self.moment(), job.bytes, maxrss_bytes);
        let ended = if job.is_cut { trace::Ended::Interrupted } else { ended };
        let mut told = Ended {
            cgroup: job.cgroup.clone(),
            trace: job.path.clone(),
            bytes: 0,
            processes: job.counts.processes,
            threads: job.counts.threads,
            wall_ns: job.last_ns.saturating_sub(job.started_ns),
            lost: job.losses(&self.losses).iter().map(|loss| loss.count).sum(),
        };
        match job.finish(ended, &self.losses, recorder) {
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
        let header = self.outputs.header(&cgroup, time_ns);
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
                self.outputs.failed(&cgroup, NodeError::Write { path, source });
                return None;
            }
        };
        let since = (time_ns, self.moment());
        let mut job = Job::new(cgroup, path, spool, since, self.losses.clone());
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
    fn enter(&mut self, serial: u32, process: u32, group: u32, time_ns: u64) -> Option<Task> {
        let leader = self.tasks.get(process).filter(|leader| leader.group == group);
        let state = u16::from(b'R');
        let since_ns = if self.tasks.alive(serial).is_some() { time_ns } else { 0 };
        let Some(job) = self.job(serial, group, time_ns) else {
            self.tasks.insert(serial, Task { group, serial: 0, process: 0, state, since_ns });
            return None;
        };
        let own = job.next_serial();
        let process = match leader {
            Some(leader) if serial != process => leader.process,
            _ => own,
        };
        let task = Task { group, serial: own, process, state, since_ns };
        self.tasks.insert(serial, task);
        Some(task)
    }

    /// A task goes on in another job: for the one that it leaves, what it used is final.
    fn leave(&mut self, task: Task, attach: &Attach) {
        let Some(Some(job)) = self.jobs.get_mut(&task.group) else { return };
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

    fn take_attach(&mut self, time_ns: u64, record: &[u8], attach: &Attach) {
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
                && let Some(Some(job)) = self.jobs.get_mut(&attach.group)
            {
                job.live = job.live.saturating_sub(1);
            }
        }
    }

    /// Looks for the variables of the batch system in the environment of a process.
    fn look_at(&mut self, serial: u32, tgid: i32) {
        if self.reads_variables
            && let Some(task) = self.tasks.get(serial)
            && let Some(Some(job)) = self.jobs.get_mut(&task.group)
        {
            job.variables.look_at(tgid);
        }
    }

    fn take_fork(&mut self, time_ns: u64, record: &[u8], fork: &proctrace_wire::layout::Fork) {
        let forker = self.tasks.get(fork.head.task);
        let group = forker.map_or(fork.group, |forker| forker.group);
        let child = self.enter(fork.child, fork.child_process, group, time_ns);
        let Some(mut child) = child else { return };
        // The first thread of its process may have ended long ago.
        if let Some(forker) = forker.filter(|_| fork.child != fork.child_process) {
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

    /// Passes a record on to the job of its task.
    fn route(&mut self, stream: Stream, time_ns: u64, record: &[u8], kind: Kind, serial: u32) {
        let found = match stream {
            // In the order of moves between jobs.
            Stream::Lifecycle => self.tasks.get(serial),
            Stream::Lookups | Stream::Samples | Stream::Waits => self.tasks.at(serial, time_ns),
        };
        let Some(task) = found else {
            self.hold(stream, time_ns, record);
            return;
        };
        if !matches!(self.jobs.get(&task.group), Some(Some(_))) {
            return;
        }
        let other = match other_of(kind, record) {
            0 => 0,
            other => match self.tasks.get(other) {
                Some(other) if other.group == task.group => other.serial,
                _ => 0,
            },
        };
        let mut copy = std::mem::take(&mut self.buffer);
        copy.clear();
        copy.extend_from_slice(record);
        renumber(kind, &mut copy, Serials { task: task.serial, process: task.process, other });
        self.put(task.group, stream, time_ns, &copy);
        self.buffer = copy;
    }

    fn put(&mut self, group: u32, stream: Stream, time_ns: u64, record: &[u8]) {
        let Some(Some(job)) = self.jobs.get_mut(&group) else { return };
        job.last_ns = job.last_ns.max(time_ns);
        self.bytes += record.len() as u64;
        let written = job.put(stream, time_ns, record);
        self.check(group, written);
    }

    /// Gives up a job that cannot be written.
    fn check(&mut self, group: u32, written: Result<(), WriteError>) {
        let Err(error) = written else { return };
        let Some(Some(job)) = self.jobs.insert(group, None) else { return };
        let cgroup = job.cgroup.clone();
        let path = job.path.clone();
        // The writing thread knows the reason.
        let source = job
            .finish(trace::Ended::Interrupted, &self.losses, Default::default())
            .err()
            .unwrap_or(error);
        self.outputs.failed(&cgroup, NodeError::Write { path, source });
    }

    /// Keeps a record until the birth of its task arrives: the rings are read one after the other.
    fn hold(&mut self, stream: Stream, time_ns: u64, record: &[u8]) {
        if self.held_bytes + record.len() <= HELD_BYTES_MAX {
            self.held_bytes += record.len();
            self.held.push(Held { stream, time_ns, record: record.to_vec(), was_tried: false });
        }
    }

    fn retry_held(&mut self) {
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            let Held { stream, time_ns, record, was_tried } = held;
            let Some(Ok(frame)) = Frames::new(&record).next() else { continue };
            if self.tasks.get(frame.head.task).is_some() {
                // It never fails.
                let _ = self.push(stream, time_ns, &record);
            } else if !was_tried {
                self.held_bytes += record.len();
                self.held.push(Held { stream, time_ns, record, was_tried: true });
            }
        }
    }

    fn take_mounts(&mut self, time_ns: u64, record: &[u8]) {
        let Some(namespace) = self.mounts.keep(record) else { return };
        let users: Vec<(u32, u32)> = self
            .jobs
            .iter()
            .filter_map(|(group, job)| Some((*group, *job.as_ref()?.namespaces.get(&namespace)?)))
            .collect();
        for (group, task) in users {
            self.put(group, Stream::Lifecycle, time_ns, &through(record, task));
        }
    }

    /// A process is in a namespace that may be new to its job.
    fn take_place(&mut self, namespace: u32, serial: u32) {
        let Some(task) = self.tasks.get(serial) else { return };
        let Some(Some(job)) = self.jobs.get_mut(&task.group) else { return };
        if job.namespaces.contains_key(&namespace) {
            return;
        }
        // Its table follows.
        job.namespaces.insert(namespace, task.serial);
    }

    fn take_tick(&mut self, tick: Tick) {
        let mut states: HashMap<u32, States> = HashMap::new();
        for task in self.tasks.all_alive() {
            states.entry(task.group).or_default().add(task.state);
        }
        let groups: Vec<u32> =
            self.jobs.iter().filter(|(_, job)| job.is_some()).map(|(group, _)| *group).collect();
        for group in groups {
            let states = states.get(&group).copied().unwrap_or_default();
            let Some(Some(job)) = self.jobs.get_mut(&group) else { continue };
            // A job that has ended, and waits for its last records.
            if states.tasks == 0 {
                continue;
            }
            let written = job.tick(tick, states);
            self.check(group, written);
        }
    }

    fn take_loss(&mut self, loss: &proctrace_wire::layout::Loss) {
        let (Some(kind), Some(reason)) = (
            kind_of(loss.kind),
            LossReason::ALL.into_iter().find(|reason| *reason as u16 == loss.reason),
        ) else {
            return;
        };
        let cpu = Some(loss.cpu).filter(|cpu| *cpu != proctrace_wire::layout::LOSS_ANY_CPU);
        let count = LossCount { kind, reason, cpu, count: loss.count };
        self.losses.insert((loss.kind, loss.reason, loss.cpu), count);
    }

    /// Ends the jobs whose cgroups are gone or have been empty for long enough.
    fn end_jobs(&mut self) {
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
                self.end(job, trace::Ended::TreeExited);
            }
        }
        if self.jobs.len() > OTHERS_MAX {
            let alive: std::collections::BTreeSet<u32> =
                self.tasks.all_alive().map(|task| task.group).collect();
            self.jobs.retain(|group, job| job.is_some() || alive.contains(group));
        }
    }
}

fn kind_of(number: u16) -> Option<Kind> {
    // They are numbered from 1.
    let kind = *Kind::ALL.get(usize::from(number).checked_sub(1)?)?;
    (kind as u16 == number).then_some(kind)
}

impl<O: Outputs> Sink for Jobs<O> {
    /// Never fails: a job that cannot be written is given up, and the others go on.
    fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> io::Result<()> {
        let Some(Ok(frame)) = Frames::new(record).next() else { return Ok(()) };
        let Some(kind) = kind_of(frame.head.kind) else { return Ok(()) };
        let serial = frame.head.task;
        match kind {
            Kind::Attach | Kind::Fork | Kind::Mounts | Kind::Tick | Kind::Loss => {
                match Record::decode(frame) {
                    Ok(Record::Attach(attach)) => self.take_attach(time_ns, record, &attach),
                    Ok(Record::Fork(fork)) => self.take_fork(time_ns, record, &fork),
                    Ok(Record::Mounts(..)) => self.take_mounts(time_ns, record),
                    Ok(Record::Tick(tick)) => self.take_tick(tick),
                    Ok(Record::Loss(loss)) => self.take_loss(&loss),
                    _ => {}
                }
            }
            Kind::Exit => {
                self.route(stream, time_ns, record, kind, serial);
                let ended = self.tasks.alive(serial);
                if let Some(task) = ended
                    && self.tasks.end(serial)
                    && let Some(Some(job)) = self.jobs.get_mut(&task.group)
                {
                    job.live = job.live.saturating_sub(1);
                }
            }
            Kind::Sample => {
                self.route(stream, time_ns, record, kind, serial);
                if let Ok(Record::Sample(sample)) = Record::decode(frame) {
                    self.tasks.set_state(serial, sample.state);
                }
                if let Some(task) = self.tasks.get(serial)
                    && let Some(Some(job)) = self.jobs.get_mut(&task.group)
                {
                    job.sampled += 1;
                }
            }
            Kind::Exec => {
                self.route(stream, time_ns, record, kind, serial);
                if let Ok(Record::Exec(exec)) = Record::decode(frame) {
                    self.look_at(serial, exec.fixed.tgid);
                }
            }
            Kind::Place => {
                self.route(stream, time_ns, record, kind, serial);
                if let Ok(Record::Place(place, _)) = Record::decode(frame) {
                    self.take_place(place.mount_namespace, serial);
                }
            }
            Kind::Env => {
                self.route(stream, time_ns, record, kind, serial);
                if self.reads_variables
                    && let Ok(Record::Env(_, environment)) = Record::decode(frame)
                    && let Some(task) = self.tasks.get(serial)
                    && let Some(Some(job)) = self.jobs.get_mut(&task.group)
                {
                    job.variables.take_recorded(environment);
                }
            }
            Kind::Workdir => match Record::decode(frame) {
                Ok(Record::Workdir(workdir, name)) if workdir.bits & WORKDIR_JOB != 0 => {
                    self.named.insert(serial, name.to_vec());
                }
                _ => self.route(stream, time_ns, record, kind, serial),
            },
            _ => self.route(stream, time_ns, record, kind, serial),
        }
        Ok(())
    }

    fn ready(&mut self, _processes: u64) {
        let running = self.running();
        self.outputs.ready(running);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.retry_held();
        let groups: Vec<u32> = self.jobs.keys().copied().collect();
        for group in groups {
            if let Some(Some(job)) = self.jobs.get_mut(&group) {
                let written = job.flush();
                self.check(group, written);
            }
        }
        self.tasks.forget_ended();
        self.end_jobs();
        self.named.clear();
        Ok(())
    }
}

impl<O> std::fmt::Debug for Jobs<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
