//! One job of the node: its trace while it is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use proctrace_record::Counts;
use proctrace_trace::{Ended, LossCount, OfNode, RecorderUsage, Spool, Trailer, WriteError};
use proctrace_wire::layout::{Head, LOSS_ANY_CPU, Loss, Tick};
use proctrace_wire::{Frames, IntoBytes, Kind, Stream};

use crate::before::Earlier;
use crate::naming::JobCgroup;
use crate::owner::Owner;
use crate::usage::Moment;
use crate::variables::Variables;

/// All losses of the node so far: by kind, reason and CPU.
pub(crate) type Losses = BTreeMap<(u16, u16, u32), LossCount>;

/// Flushes after the last task of a job before its trace ends: until then, look-ups may come.
pub(crate) const FLUSHES_AT_LEAST: u32 = 2;

/// A job whose records are being written.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) cgroup: JobCgroup,
    /// The trace.
    pub(crate) path: PathBuf,
    spool: Spool<File>,
    pub(crate) counts: Counts,
    last_serial: u32,
    /// Tasks that are alive.
    pub(crate) live: u64,
    /// True if a task went on in another job, or was left behind.
    pub(crate) is_cut: bool,
    pub(crate) started_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) bytes: u64,
    /// Usage of the recorder when the job began.
    pub(crate) from: Moment,
    /// The node's losses before.
    before: Losses,
    /// Its mount namespaces, each with a process in it.
    pub(crate) namespaces: BTreeMap<u32, u32>,
    pub(crate) variables: Variables,
    pub(crate) owner: Owner,
    /// Its cgroup below the mount point.
    pub(crate) below_root: Option<PathBuf>,
    pub(crate) earlier: Earlier,
    /// Number of flushes since its last task ended.
    pub(crate) idle_flushes: u32,
    /// Samples since its last tick.
    pub(crate) sampled: u32,
}

/// Tasks of a job by their states, at a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct States {
    pub(crate) tasks: u32,
    pub(crate) running: u32,
    pub(crate) uninterruptible: u32,
    pub(crate) stopped: u32,
    pub(crate) dead: u32,
}

impl States {
    pub(crate) fn add(&mut self, state: u16) {
        self.tasks += 1;
        match u8::try_from(state).unwrap_or(b'?') {
            b'R' => self.running += 1,
            b'D' => self.uninterruptible += 1,
            b'T' | b't' => self.stopped += 1,
            b'Z' | b'X' => self.dead += 1,
            _ => {}
        }
    }
}

impl Job {
    pub(crate) fn new(
        cgroup: JobCgroup,
        path: PathBuf,
        spool: Spool<File>,
        (started_ns, from): (u64, Moment),
        before: Losses,
    ) -> Self {
        Self {
            cgroup,
            path,
            spool,
            counts: Counts::default(),
            last_serial: 0,
            live: 0,
            is_cut: false,
            started_ns,
            last_ns: started_ns,
            bytes: 0,
            from,
            before,
            namespaces: BTreeMap::new(),
            variables: Variables::default(),
            owner: Owner::default(),
            below_root: None,
            earlier: Earlier::default(),
            idle_flushes: 0,
            sampled: 0,
        }
    }

    /// The serial of the next task.
    pub(crate) fn next_serial(&mut self) -> u32 {
        self.last_serial = self.last_serial.wrapping_add(1);
        self.live += 1;
        self.idle_flushes = 0;
        self.last_serial
    }

    /// Writes a record.
    pub(crate) fn put(
        &mut self,
        stream: Stream,
        time_ns: u64,
        record: &[u8],
    ) -> Result<(), WriteError> {
        if let Some(Ok(frame)) = Frames::new(record).next() {
            self.counts.add(frame);
        }
        self.bytes += record.len() as u64;
        self.spool.push(stream, time_ns, record)
    }

    /// Ends a pass over the tasks of the node.
    pub(crate) fn tick(&mut self, of_node: Tick, states: States) -> Result<(), WriteError> {
        let States { tasks, running, uninterruptible, stopped, dead } = states;
        let awake = running + uninterruptible + stopped + dead;
        let tick = Tick {
            tasks,
            running,
            sleeping: tasks.saturating_sub(awake),
            uninterruptible,
            stopped,
            dead,
            sampled: std::mem::take(&mut self.sampled),
            ..of_node
        };
        self.put(Stream::Samples, tick.head.time_ns, tick.as_bytes())
    }

    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.spool.flush()
    }

    /// Losses of the node since the job began: whose records they were is not known.
    pub(crate) fn losses(&self, now: &Losses) -> Vec<LossCount> {
        now.iter()
            .filter_map(|(key, loss)| {
                let before = self.before.get(key).map_or(0, |loss| loss.count);
                let count = loss.count.checked_sub(before).filter(|count| *count > 0)?;
                Some(LossCount { count, ..*loss })
            })
            .collect()
    }

    /// Ends the trace; returns its size. `name_of` knows the names of users.
    pub(crate) fn finish(
        mut self,
        ended: Ended,
        now: &Losses,
        recorder: RecorderUsage,
        name_of: impl FnOnce(u32) -> Option<String>,
    ) -> Result<u64, WriteError> {
        let losses = self.losses(now);
        for loss in &losses {
            let record = Loss {
                head: Head { kind: Kind::Loss as u16, size: 32, task: 0, time_ns: self.last_ns },
                kind: loss.kind as u16,
                reason: loss.reason as u16,
                cpu: loss.cpu.unwrap_or(LOSS_ANY_CPU),
                count: loss.count,
            };
            self.put(Stream::Lifecycle, self.last_ns, record.as_bytes())?;
        }
        let trailer = Trailer {
            ended_ns: self.last_ns,
            ended,
            payload: None,
            tasks: self.counts.tasks(),
            records: self.counts.by_name(),
            losses,
            cgroup: None,
            machine: None,
            recorder,
            programs: Vec::new(),
            held_up: None,
            job: self.variables.of(),
            of_node: Some(OfNode {
                uid: self.owner.uid(),
                user: self.owner.uid().and_then(name_of),
                began_before: self.earlier.began_before,
                before_cpu_ns: self.earlier.cpu_ns,
            }),
        };
        let (_, bytes) = self.spool.finish(&trailer)?;
        Ok(bytes)
    }
}
