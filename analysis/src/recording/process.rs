//! What a recording is made of: processes, their tasks, what they ran, and what was counted.

use std::collections::HashMap;

use proctrace_replay::{CpuTime, scale};

use crate::recording::exit::{End, Ended, Exit};
use crate::recording::split::{Divided, Ticks};
use crate::recording::usage::Usage;

/// Records, as they were counted while reading.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) attaches: u64,
    pub(crate) forks: u64,
    pub(crate) execs: u64,
    pub(crate) execs_failed: u64,
    pub(crate) exits: u64,
    pub(crate) lookups_failed: u64,
    /// Of them, readlinks of what is there but no link: how realpath(3) asks.
    pub(crate) not_links: u64,
    /// The others by family, in the order of `Family::ALL`.
    pub(crate) by_family: [u64; 6],
    /// Execs and look-ups of tasks that neither fork nor attach announced.
    pub(crate) orphans: u64,
    /// Exits of such tasks.
    pub(crate) orphan_exits: u64,
    /// Latest word on what was lost, by kind, reason and CPU.
    pub(crate) losses: HashMap<(u16, u16, u32), u64>,
}

/// A program that a process ran, from one exec to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) time_ns: u64,
    /// Index of the process.
    pub(crate) process: u32,
    /// Number of the program.
    pub(crate) program: u32,
    /// Number of the shape of its command line.
    pub(crate) template: u32,
    /// False for what was running when the recording began.
    pub(crate) happened_here: bool,
    /// What the task had used before, in nanoseconds.
    pub(crate) before_run_ns: u64,
    pub(crate) before_user_ns: u64,
    pub(crate) before_system_ns: u64,
}

/// A reading of the memory of one process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryReading {
    pub(crate) process: usize,
    pub(crate) record: proctrace_wire::layout::Memory,
}

/// A thread of control.
#[derive(Debug, Clone)]
pub struct Task {
    /// Serial number in the recording.
    pub serial: u32,
    /// Its thread id, as the kernel gave it at its birth; None where no record tells it.
    pub tid: Option<i32>,
    /// Index of its process.
    pub process: usize,
    /// When it was made.
    pub born_ns: u64,
    /// When it ended, if it did.
    ended_ns: u64,
    ended: Ended,
    /// Whether its process existed before it.
    pub is_thread: bool,
    /// A leader that had exited before it was followed: no end will be told.
    pub zombie: bool,
    rare: Option<Box<Rare>>,
}

/// What is known of few tasks.
#[derive(Debug, Clone, Copy, Default)]
struct Rare {
    seen: Option<proctrace_wire::layout::Sample>,
    before: Option<Usage>,
}

impl Task {
    pub(crate) fn new(
        serial: u32,
        tid: i32,
        process: usize,
        born_ns: u64,
        is_thread: bool,
    ) -> Self {
        Self {
            serial,
            tid: Some(tid),
            process,
            born_ns,
            ended_ns: 0,
            ended: Ended::Not,
            is_thread,
            zombie: false,
            rare: None,
        }
    }

    /// How it ended; None if it was alive at the end.
    #[inline]
    pub fn end(&self) -> Option<End> {
        self.ended.record().map(|record| End { time_ns: self.ended_ns, record })
    }

    /// When it ended; None if it was alive at the end.
    #[inline]
    pub fn ended_ns(&self) -> Option<u64> {
        self.ended.is().then_some(self.ended_ns)
    }

    /// The last sample of a task that has not ended.
    pub fn seen(&self) -> Option<&proctrace_wire::layout::Sample> {
        self.rare.as_deref()?.seen.as_ref()
    }

    /// What it had used before it was followed; None for one that was followed from its birth.
    pub fn before(&self) -> Option<&Usage> {
        self.rare.as_deref()?.before.as_ref()
    }

    pub(crate) fn ends(&mut self, time_ns: u64, record: Exit) {
        self.ended_ns = time_ns;
        self.ended = Ended::new(record);
    }

    pub(crate) fn is_seen(&mut self, sample: proctrace_wire::layout::Sample) {
        self.rare.get_or_insert_default().seen = Some(sample);
    }

    pub(crate) fn has_used_before(&mut self, usage: Usage) {
        self.rare.get_or_insert_default().before = Some(usage);
    }

    /// What it used while it was followed: in the end, or as last seen.
    pub fn used(&self) -> Usage {
        let used = match (self.ended.record(), self.seen()) {
            (Some(record), _) => Usage::from(&record),
            (None, Some(seen)) => Usage::from(seen),
            (None, None) => return Usage::default(),
        };
        match self.before() {
            Some(before) => used.since(before),
            None => used,
        }
    }
}

/// The tasks of a process, by index: most have one, which takes no memory of its own.
#[derive(Debug, Clone, Default)]
pub struct TaskList(Few);

#[derive(Debug, Clone, Default)]
enum Few {
    #[default]
    None,
    One([usize; 1]),
    More(Box<More>),
}

#[derive(Debug, Clone)]
struct More(Vec<usize>);

impl TaskList {
    pub(crate) fn push(&mut self, task: usize) {
        self.0 = match std::mem::take(&mut self.0) {
            Few::None => Few::One([task]),
            Few::One([first]) => Few::More(Box::new(More(vec![first, task]))),
            Few::More(mut tasks) => {
                tasks.0.push(task);
                Few::More(tasks)
            }
        };
    }
}

impl std::ops::Deref for TaskList {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        match &self.0 {
            Few::None => &[],
            Few::One(task) => task,
            Few::More(tasks) => &tasks.0,
        }
    }
}

impl<'a> IntoIterator for &'a TaskList {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// CPU time of a process that is counted elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Of its tasks, before they were followed.
    pub(crate) before_ns: u64,
    /// Of children it had waited for before.
    pub(crate) waited_before_ns: u64,
    /// What the kernel may have left out when it was waited for: last slices of tasks that were
    /// released before they had left their CPU.
    pub(crate) tail_ns: u64,
    /// Of all children it had waited for at its end.
    pub(crate) waited_ns: u64,
}

/// An index, or none, in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u32);

impl Place {
    const NONE: Self = Self(u32::MAX);

    fn of(index: Option<usize>) -> Self {
        index.and_then(|index| u32::try_from(index).ok()).map_or(Self::NONE, Self)
    }

    fn get(self) -> Option<usize> {
        (self != Self::NONE).then_some(self.0 as usize)
    }
}

/// A thread group.
#[derive(Debug, Clone)]
pub struct Process {
    /// Serial number of the task that founded it.
    pub serial: u32,
    /// Its pid.
    pub pid: i32,
    /// Index of the process that is its parent; None for the command, or where it is not known.
    pub parent: Option<usize>,
    reaper: Place,
    spawned_by: Place,
    /// What the forker was running at the time, as an index of the recording's runs.
    pub(crate) spawned_in: Option<u32>,
    forked_by_thread: Place,
    /// The run it is in at its end: its own last, or that of its forker if it never called exec.
    pub(crate) run: Option<u32>,
    /// Number of its role, where something tells: an argument, its working directory, its name.
    pub(crate) role: Option<u32>,
    /// How many forks away from the command.
    pub depth: u32,
    /// When it was made.
    pub born_ns: u64,
    /// When its last task ended; None if one was alive at the end.
    pub ended_ns: Option<u64>,
    /// Its status as wait(2) gives it, if it ended.
    pub status: Option<u32>,
    /// Number of what it ran last.
    pub program: usize,
    /// Successful execs.
    pub execs: u32,
    /// Its tasks, by index.
    pub tasks: TaskList,
    /// CPU time of its tasks while they were followed. The total is exact; user and system time are
    /// estimated from ticks that are pooled where it has few of its own (see `split`).
    pub cpu: CpuTime,
    /// The ticks that hit its tasks while they were followed.
    pub ticks: Ticks,
    waits: Option<Box<Waits>>,
    /// Whether its parent ignored SIGCHLD, so that no one waited for it.
    pub autoreaped: bool,
    /// Peak RSS of what it ran last.
    pub maxrss_bytes: u64,
}

impl Process {
    /// One that has neither run nor used anything yet.
    pub(crate) fn new(
        serial: u32,
        pid: i32,
        born_ns: u64,
        (parent, depth): (Option<usize>, u32),
        program: usize,
    ) -> Self {
        Self {
            serial,
            pid,
            parent,
            reaper: Place::NONE,
            spawned_by: Place::NONE,
            spawned_in: None,
            forked_by_thread: Place::NONE,
            run: None,
            role: None,
            depth,
            born_ns,
            ended_ns: None,
            status: None,
            program,
            execs: 0,
            tasks: TaskList::default(),
            cpu: CpuTime::default(),
            ticks: Ticks::default(),
            waits: None,
            autoreaped: false,
            maxrss_bytes: 0,
        }
    }

    /// Index of the process that was its parent when it ended, and so the one that can wait for it:
    /// its parent, or one that has adopted it (a subreaper). None if that is not of the recording.
    pub fn reaper(&self) -> Option<usize> {
        self.reaper.get()
    }

    pub(crate) fn set_reaper(&mut self, reaper: Option<usize>) {
        self.reaper = Place::of(reaper);
    }

    /// What the forker was running at the time.
    pub fn spawned_by(&self) -> Option<usize> {
        self.spawned_by.get()
    }

    pub(crate) fn set_spawned_by(&mut self, program: Option<usize>) {
        self.spawned_by = Place::of(program);
    }

    /// Index of the task that made it, if that was not the main thread of its process.
    pub(crate) fn forked_by_thread(&self) -> Option<usize> {
        self.forked_by_thread.get()
    }

    pub(crate) fn set_forked_by_thread(&mut self, task: Option<usize>) {
        self.forked_by_thread = Place::of(task);
    }

    /// What it used before it was followed, and what it was told of others; nothing of most.
    pub(crate) fn waits(&self) -> Waits {
        self.waits.as_deref().copied().unwrap_or_default()
    }

    pub(crate) fn change_waits(&mut self, change: impl FnOnce(&mut Waits)) {
        let mut waits = self.waits();
        change(&mut waits);
        if waits != self.waits() {
            self.waits = Some(Box::new(waits));
        }
    }

    /// CPU time of children it has waited for; None unless it ended.
    pub fn waited_ns(&self) -> Option<u64> {
        self.status.map(|_| self.waits().waited_ns)
    }

    /// Its CPU time as the kernel divides it for this process alone: what wait(2) and
    /// /proc/PID/stat say, which is biased for processes that few ticks hit.
    pub fn told(&self) -> CpuTime {
        scale(self.cpu.total_ns(), self.ticks.user_ns, self.ticks.system_ns)
    }

    /// Its CPU time, as a part of groups.
    pub(crate) fn divided(&self) -> Divided {
        Divided { cpu: self.cpu, ticks: self.ticks }
    }
}
