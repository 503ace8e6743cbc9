//! A thread of control: when it lived, and what it used.

use proctrace_replay::Usage;
use proctrace_wire::layout;

use crate::exit::{End, Exit};
use crate::split::Ticks;
use crate::stored_usage::StoredUsage;

/// A thread of control. There are millions of them, so every field is as small as most tasks allow.
#[derive(Debug, Clone)]
pub struct Task {
    /// Serial number in the recording.
    pub serial: u32,
    /// 0 for none.
    tid: i32,
    process: u32,
    /// Time of its birth.
    pub born_ns: u64,
    known: StoredUsage,
    /// True if its process existed before it.
    pub is_thread: bool,
    /// True if it was created by a fork during the recording.
    pub forked: bool,
    /// A leader that had exited before it was followed: its end will not be recorded.
    pub zombie: bool,
}

impl Task {
    pub fn new(serial: u32, tid: i32, process: usize, born_ns: u64, is_thread: bool) -> Self {
        Self {
            serial,
            tid,
            process: u32::try_from(process).unwrap_or(u32::MAX),
            born_ns,
            known: StoredUsage::default(),
            is_thread,
            forked: false,
            zombie: false,
        }
    }

    /// Its thread id as assigned by the kernel at birth; `None` where no record contains it.
    pub fn tid(&self) -> Option<i32> {
        (self.tid != 0).then_some(self.tid)
    }

    pub(crate) fn set_tid(&mut self, tid: i32) {
        self.tid = tid;
    }

    /// Index of its process.
    #[inline]
    pub fn process(&self) -> usize {
        self.process as usize
    }

    /// Its end; `None` if it was alive at the end.
    #[inline]
    pub fn end(&self) -> Option<End> {
        let (time_ns, record) = (self.ended_ns()?, self.known.exit()?);
        Some(End { time_ns, record })
    }

    /// Time of its end; `None` if it was alive at the end.
    #[inline]
    pub fn ended_ns(&self) -> Option<u64> {
        self.known.ended_ns(self.born_ns)
    }

    /// See [`Exit::tail_ns`]; 0 for a task that was alive at the end.
    pub(crate) fn tail_ns(&self) -> u64 {
        self.known.tail_ns()
    }

    /// The last sample of a task that has not ended.
    pub fn seen(&self) -> Option<&layout::Sample> {
        self.known.rare()?.seen.as_ref()
    }

    /// Usage before it was followed; `None` for a task followed from its birth.
    pub fn before(&self) -> Option<&Usage> {
        self.known.rare()?.before.as_ref()
    }

    pub fn ends(&mut self, time_ns: u64, record: Exit) {
        self.known.ends(self.born_ns, End { time_ns, record });
    }

    pub(crate) fn is_seen(&mut self, sample: layout::Sample) {
        self.known.rare_mut(self.born_ns).seen = Some(sample);
    }

    pub(crate) fn has_used_before(&mut self, usage: Usage) {
        self.known.rare_mut(self.born_ns).before = Some(usage);
    }

    /// CPU time and ticks of [`used`](Self::used), for callers that iterate over millions of tasks.
    #[inline]
    pub fn cpu_used(&self) -> (u64, Ticks) {
        if let Some(cpu) = self.known.tiny_cpu() {
            return cpu;
        }
        let used = self.used();
        (used.run_ns, used.ticks())
    }

    /// Of [`used`](Self::used) the bytes read and written by system calls, and written to storage; for the same callers.
    #[inline]
    pub(crate) fn bytes_used(&self) -> [u64; 3] {
        if let Some(bytes) = self.known.tiny_bytes() {
            return bytes;
        }
        let used = self.used();
        [used.rchar, used.wchar, used.write_bytes]
    }

    /// Usage while it was followed: until its end, or until its last sample.
    #[inline]
    pub fn used(&self) -> Usage {
        let used = match (self.known.exit(), self.seen()) {
            (Some(record), _) => record.used,
            (None, Some(seen)) => Usage::from(seen),
            (None, None) => return Usage::default(),
        };
        match self.before() {
            Some(before) => used.since(*before),
            None => used,
        }
    }
}
