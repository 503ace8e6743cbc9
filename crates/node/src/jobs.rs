//! The sink of a recording of many jobs: gives each record to its job.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashMapExt};
use proctrace_record::{CgroupPattern, Sink};
use proctrace_trace::LossCount;
use proctrace_wire::layout::{LOSS_ANY_CPU, Loss, Tick, WORKDIR_JOB};
use proctrace_wire::{Frames, Kind, LossReason, Record, Stream};

use crate::before::Before;
use crate::job::{FLUSHES_AT_LEAST, Job, Losses, States};
use crate::mounts::{OwnMounts, through};
use crate::outputs::Outputs;
use crate::serials::{Serials, other_of, renumber};
use crate::tasks::Tasks;
use crate::usage::Moment;

/// Records of tasks that are not known yet, until the next flush.
const HELD_BYTES_MAX: usize = 4 << 20;

/// A record of a task that is not known yet.
struct Held {
    stream: Stream,
    time_ns: u64,
    record: Vec<u8>,
    was_tried: bool,
}

/// Writes one trace for each job.
pub struct Jobs<O> {
    pub(crate) outputs: O,
    pub(crate) patterns: Vec<CgroupPattern>,
    pub(crate) root: PathBuf,
    /// Number of flushes for which a cgroup may be without processes before its job counts as ended.
    pub(crate) idle_flushes_max: u32,
    /// True if the variables of batch systems are looked for.
    pub(crate) reads_variables: bool,
    /// By number; None for cgroups that are no jobs.
    pub(crate) jobs: BTreeMap<u32, Option<Job>>,
    pub(crate) tasks: Tasks,
    pub(crate) mounts: OwnMounts,
    pub(crate) before: Before,
    pub(crate) losses: Losses,
    /// The names of the cgroups of tasks that are attached next, by serial.
    pub(crate) named: HashMap<u32, Vec<u8>>,
    held: Vec<Held>,
    held_bytes: usize,
    pub(crate) bytes: u64,
    pub(crate) buffer: Vec<u8>,
}

impl<O: Outputs> Jobs<O> {
    /// Records the jobs in the cgroups below `root` that the patterns name. A job ends when its cgroup is
    /// removed, or has had no process for `grace_s` seconds.
    pub fn new(outputs: O, patterns: Vec<CgroupPattern>, root: &Path, grace_s: u32) -> Self {
        Self {
            outputs,
            before: Before::now(&patterns, root),
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

    /// The job of this cgroup, if it is recorded.
    pub(crate) fn recorded(&mut self, group: u32) -> Option<&mut Job> {
        self.jobs.get_mut(&group)?.as_mut()
    }

    /// The job to which a task belongs.
    pub(crate) fn job_of(&mut self, serial: u32) -> Option<&mut Job> {
        let task = self.tasks.get(serial)?;
        self.recorded(task.group)
    }

    pub(crate) fn moment(&self) -> Moment {
        let (user_ns, system_ns, _) = self.outputs.used();
        Moment { user_ns, system_ns, bytes: self.bytes }
    }

    /// Jobs that are recorded at the moment.
    pub fn running(&self) -> usize {
        self.jobs.values().flatten().count()
    }

    /// Passes a record on to the job of its task.
    pub(crate) fn route(
        &mut self,
        stream: Stream,
        time_ns: u64,
        record: &[u8],
        kind: Kind,
        serial: u32,
    ) {
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

    pub(crate) fn put(&mut self, group: u32, stream: Stream, time_ns: u64, record: &[u8]) {
        let Some(job) = self.recorded(group) else { return };
        job.last_ns = job.last_ns.max(time_ns);
        let written = job.put(stream, time_ns, record);
        self.bytes += record.len() as u64;
        self.check(group, written);
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
        if let Some(job) = self.recorded(task.group) {
            // Its table follows if it is new.
            job.namespaces.entry(namespace).or_insert(task.serial);
        }
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
            let Some(job) = self.recorded(group) else { continue };
            // A job that has ended, and waits for its last records.
            if states.tasks == 0 {
                continue;
            }
            let written = job.tick(tick, states);
            self.check(group, written);
        }
    }

    fn take_loss(&mut self, loss: &Loss) {
        let (Some(kind), Some(reason)) = (
            kind_of(loss.kind),
            LossReason::ALL.into_iter().find(|reason| *reason as u16 == loss.reason),
        ) else {
            return;
        };
        let cpu = Some(loss.cpu).filter(|cpu| *cpu != LOSS_ANY_CPU);
        let count = LossCount { kind, reason, cpu, count: loss.count };
        self.losses.insert((loss.kind, loss.reason, loss.cpu), count);
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
                    && let Some(job) = self.recorded(task.group)
                {
                    job.live = job.live.saturating_sub(1);
                }
            }
            Kind::Sample => {
                self.route(stream, time_ns, record, kind, serial);
                if let Ok(Record::Sample(sample)) = Record::decode(frame) {
                    self.tasks.set_state(serial, sample.state);
                }
                if let Some(job) = self.job_of(serial) {
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
                    && let Some(job) = self.job_of(serial)
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
        self.before.ready();
        let running = self.running();
        self.outputs.ready(running);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.retry_held();
        let groups: Vec<u32> = self.jobs.keys().copied().collect();
        for group in groups {
            if let Some(job) = self.recorded(group) {
                let written = job.flush();
                self.check(group, written);
            }
        }
        self.tasks.forget_ended();
        self.end_jobs();
        self.named.clear();
        self.before.watched(&self.patterns, &self.root);
        Ok(())
    }
}

impl<O> std::fmt::Debug for Jobs<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
