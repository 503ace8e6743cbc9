//! The elements of a recording: processes, their tasks, and the programs they ran.

use proctrace_lineage::ends_process;
use proctrace_replay::CpuTime;
use proctrace_wire::layout::{self, EXIT_AUTOREAP};

/// A program run: from one exec of a process to the next.
#[derive(Debug, Clone)]
pub struct ProgramRun {
    pub time_ns: u64,
    /// Index of the process.
    pub process: u32,
    /// Number of the program.
    pub program: u32,
    /// Number of its command line's template.
    pub template: u32,
    /// False for the program that was already running when the recording began.
    pub happened_here: bool,
    /// CPU time and ticks of the task before it.
    pub before: Before,
}

/// CPU time, and its ticks in user and kernel mode, in nanoseconds: nearly always small.
#[derive(Debug, Clone)]
pub enum Before {
    Little([u32; 3]),
    Much(Box<[u64; 3]>),
}

impl Before {
    pub fn new(run_ns: u64, user_ns: u64, system_ns: u64) -> Self {
        let all = [run_ns, user_ns, system_ns];
        let little = || {
            let [run_ns, user_ns, system_ns] = all.map(u32::try_from);
            Some([run_ns.ok()?, user_ns.ok()?, system_ns.ok()?])
        };
        little().map_or_else(|| Self::Much(Box::new(all)), Self::Little)
    }

    /// The CPU time, and the tick time in user and kernel mode.
    pub fn all(&self) -> [u64; 3] {
        match self {
            Self::Little(all) => all.map(u64::from),
            Self::Much(all) => **all,
        }
    }
}

/// A memory reading of one process.
#[derive(Debug, Clone, Copy)]
pub struct MemoryReading {
    pub process: usize,
    pub record: layout::Memory,
}

/// CPU time of a process that is accounted elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// CPU time of its tasks before they were followed.
    pub before_ns: u64,
    /// CPU time of children it had already waited for before it was followed.
    pub(crate) waited_before_ns: u64,
    /// CPU time that the kernel may have left out when the process was waited for: the last time
    /// slices of tasks that were released before they had left their CPU.
    pub(crate) tail_ns: u64,
    /// CPU time of all children it had waited for by its end.
    pub waited_ns: u64,
}

/// An optional index in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SmallIndex(u32);

impl SmallIndex {
    const NONE: Self = Self(u32::MAX);

    fn of(index: Option<usize>) -> Self {
        index.and_then(|index| u32::try_from(index).ok()).map_or(Self::NONE, Self)
    }

    #[inline]
    fn number(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }

    #[inline]
    fn get(self) -> Option<usize> {
        self.number().map(|number| number as usize)
    }
}

impl From<Option<u32>> for SmallIndex {
    fn from(number: Option<u32>) -> Self {
        number.map_or(Self::NONE, Self)
    }
}

/// Data of a process that was there before the recording began.
#[derive(Debug, Clone, Copy)]
struct Earlier {
    /// Time of its creation, if known.
    started_ns: Option<u64>,
}

/// Data that only few processes have.
#[derive(Debug, Clone, Default)]
struct RareOfProcess {
    waits: Waits,
    role: Option<u32>,
    earlier: Option<Earlier>,
    /// Indices of its tasks except the first two.
    threads: Vec<u32>,
    /// If that is not its parent.
    reaper: Option<u32>,
    /// Program of its forker, if that has not called exec.
    spawned_by: Option<u32>,
    /// The end of one that lived for long.
    ended_ns: u64,
}

/// A thread group. There are millions of them, so every field is as small as possible.
#[derive(Debug, Clone)]
pub struct Process {
    /// Serial number of its first task.
    pub serial: u32,
    /// Its pid.
    pub pid: i32,
    parent: SmallIndex,
    spawned_in: SmallIndex,
    run: SmallIndex,
    program: u32,
    /// Successful execs.
    pub execs: u32,
    first_task: SmallIndex,
    second_task: SmallIndex,
    maxrss_pages: u32,
    /// Time at which it began to be followed: at its birth, unless it [was there
    /// before](Self::was_there).
    pub born_ns: u64,
    /// Time from then to the end of its last task, or [`ALIVE`](Self::ALIVE) or [`LONG`](Self::LONG).
    life_ns: u32,
    /// The kernel's `exit_code` has no more bits.
    status: u16,
    flags: u8,
    /// True if its parent ignored SIGCHLD, so that nobody waited for it.
    pub autoreaped: bool,
    /// CPU time of its tasks while they were followed. The total is exact; user and system time are
    /// estimated from ticks, which are pooled where the process has few of its own (see `split`).
    pub cpu: CpuTime,
    rare: Option<Box<RareOfProcess>>,
}

impl Process {
    /// Instead of a lifetime: a task was alive at the end.
    const ALIVE: u32 = u32::MAX;
    /// The time of the end is kept apart.
    const LONG: u32 = u32::MAX - 1;
    /// Flag: its end has told a status.
    const HAS_STATUS: u8 = 1;
    /// Flag: its parent was there when it ended.
    const REAPER_IS_PARENT: u8 = 2;

    /// A process that has neither run nor used anything yet.
    pub fn new(serial: u32, pid: i32, born_ns: u64, parent: Option<usize>, program: usize) -> Self {
        Self {
            serial,
            pid,
            parent: SmallIndex::of(parent),
            spawned_in: SmallIndex::NONE,
            run: SmallIndex::NONE,
            program: u32::try_from(program).unwrap_or(u32::MAX),
            execs: 0,
            first_task: SmallIndex::NONE,
            second_task: SmallIndex::NONE,
            maxrss_pages: 0,
            born_ns,
            life_ns: Self::ALIVE,
            status: 0,
            flags: 0,
            autoreaped: false,
            cpu: CpuTime::default(),
            rare: None,
        }
    }

    /// Index of its parent process; `None` for the command, or where it is not known.
    #[inline]
    pub fn parent(&self) -> Option<usize> {
        self.parent.get()
    }

    /// True if nothing in the recording created it: the command itself, or a process that was there before.
    #[inline]
    pub fn is_root(&self) -> bool {
        self.parent().is_none()
            && self.spawned_in().is_none()
            && self.spawned_by_program().is_none()
    }

    /// Index of the process that was its parent when it ended, and which can therefore wait for it:
    /// its original parent, or one that has adopted it (a subreaper). `None` if that process was
    /// not recorded.
    #[inline]
    pub fn reaper(&self) -> Option<usize> {
        if self.flags & Self::REAPER_IS_PARENT != 0 {
            return self.parent();
        }
        self.rare.as_deref()?.reaper.map(|reaper| reaper as usize)
    }

    pub(crate) fn set_reaper(&mut self, reaper: Option<usize>) {
        let is_parent = reaper.is_some() && reaper == self.parent();
        self.flags &= !Self::REAPER_IS_PARENT;
        self.flags |= if is_parent { Self::REAPER_IS_PARENT } else { 0 };
        let other = reaper.filter(|_| !is_parent).and_then(|reaper| u32::try_from(reaper).ok());
        self.set_rare(other, |rare| &mut rare.reaper);
    }

    /// The program that a forker which has not called exec was running at the time.
    pub(crate) fn spawned_by_program(&self) -> Option<usize> {
        self.rare.as_deref()?.spawned_by.map(|program| program as usize)
    }

    pub(crate) fn set_spawned_by(&mut self, program: Option<usize>) {
        let program = program.and_then(|program| u32::try_from(program).ok());
        self.set_rare(program, |rare| &mut rare.spawned_by);
    }

    /// The program run of the forker at the time, as an index into the recording's runs.
    #[inline]
    pub fn spawned_in(&self) -> Option<u32> {
        self.spawned_in.number()
    }

    pub(crate) fn set_spawned_in(&mut self, run: Option<u32>) {
        self.spawned_in = run.into();
    }

    /// Its program run at its end: its own last one, or its forker's if it never called exec.
    #[inline]
    pub fn run(&self) -> Option<u32> {
        self.run.number()
    }

    pub(crate) fn set_run(&mut self, run: Option<u32>) {
        self.run = run.into();
    }

    /// Number of its role, if determined from an argument, its working directory or its name.
    pub fn role(&self) -> Option<u32> {
        self.rare.as_deref()?.role
    }

    pub fn set_role(&mut self, role: Option<u32>) {
        self.set_rare(role, |rare| &mut rare.role);
    }

    /// Number of the program it ran last.
    #[inline]
    pub fn program(&self) -> usize {
        self.program as usize
    }

    pub fn set_program(&mut self, program: u32) {
        self.program = program;
    }

    /// Time at which its last task ended; `None` if one was alive at the end.
    #[inline]
    pub fn ended_ns(&self) -> Option<u64> {
        match self.life_ns {
            Self::ALIVE => None,
            Self::LONG => self.rare.as_deref().map(|rare| rare.ended_ns),
            life_ns => Some(self.born_ns + u64::from(life_ns)),
        }
    }

    pub(crate) fn set_ended_ns(&mut self, ended_ns: Option<u64>) {
        let Some(ended_ns) = ended_ns else {
            self.life_ns = Self::ALIVE;
            return;
        };
        // In a broken trace, a process may end before its birth.
        let life_ns = ended_ns.checked_sub(self.born_ns).and_then(|it| u32::try_from(it).ok());
        self.life_ns = life_ns.filter(|life_ns| *life_ns < Self::LONG).unwrap_or(Self::LONG);
        if self.life_ns == Self::LONG {
            self.rare.get_or_insert_default().ended_ns = ended_ns;
        }
    }

    /// Sets something that few have.
    fn set_rare<T>(&mut self, value: Option<T>, of: fn(&mut RareOfProcess) -> &mut Option<T>) {
        if value.is_some() || self.rare.is_some() {
            *of(self.rare.get_or_insert_default()) = value;
        }
    }

    /// True if it was there before the recording began, and so was not created during it.
    #[inline]
    pub fn was_there(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.earlier.is_some())
    }

    /// Called for a process that was there before the recording began, with the time of its birth if known.
    pub(crate) fn started_earlier(&mut self, started_ns: Option<u64>) {
        self.rare.get_or_insert_default().earlier = Some(Earlier { started_ns });
    }

    /// Time of its creation, possibly before the recording began; `None` if that is not known.
    #[inline]
    pub fn started_ns(&self) -> Option<u64> {
        match self.rare.as_deref().and_then(|rare| rare.earlier) {
            Some(earlier) => earlier.started_ns,
            None => Some(self.born_ns),
        }
    }

    /// Its lifetime from its birth, if it ended and its birth is known.
    #[inline]
    pub fn life_ns(&self) -> Option<u64> {
        Some(self.ended_ns()?.saturating_sub(self.started_ns()?))
    }

    /// Its wait(2) status, if it ended.
    pub fn status(&self) -> Option<u32> {
        (self.flags & Self::HAS_STATUS != 0).then_some(self.status.into())
    }

    /// Applies the end of one of its tasks; returns false if that is not its own.
    pub(crate) fn ends(&mut self, exit: &layout::Exit) -> bool {
        if !ends_process(exit, self.ended_ns()) {
            return false;
        }
        self.set_ended_ns(Some(exit.head.time_ns));
        self.status = exit.status as u16;
        self.flags |= Self::HAS_STATUS;
        self.autoreaped = exit.bits & EXIT_AUTOREAP != 0;
        let waited_ns = exit.waited_utime_ns.saturating_add(exit.waited_stime_ns);
        self.change_waits(|waits| waits.waited_ns = waited_ns);
        self.set_maxrss_pages(exit.maxrss_pages);
        true
    }

    /// Peak RSS of the program it ran last, in pages of the recorded machine; at most 2^32 - 1.
    pub fn maxrss_pages(&self) -> u64 {
        self.maxrss_pages.into()
    }

    pub(crate) fn set_maxrss_pages(&mut self, pages: u64) {
        self.maxrss_pages = u32::try_from(pages).unwrap_or(u32::MAX);
    }

    /// Its tasks, by index: the first task, then its other threads.
    #[inline]
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = usize> + Clone + '_ {
        let threads = self.rare.as_deref().map_or(&[][..], |rare| &rare.threads);
        let (first, second) = (self.first_task.get(), self.second_task.get());
        Tasks { first, second, threads: threads.iter() }
    }

    pub fn add_task(&mut self, task: usize) {
        if self.first_task == SmallIndex::NONE {
            self.first_task = SmallIndex::of(Some(task));
        } else if self.second_task == SmallIndex::NONE {
            self.second_task = SmallIndex::of(Some(task));
        } else if let Ok(task) = u32::try_from(task) {
            self.rare.get_or_insert_default().threads.push(task);
        }
    }

    /// CPU time used before it was followed, and that of children it waited for; zero for most.
    #[inline]
    pub fn waits(&self) -> Waits {
        self.rare.as_deref().map(|rare| rare.waits).unwrap_or_default()
    }

    pub(crate) fn change_waits(&mut self, change: impl FnOnce(&mut Waits)) {
        let mut waits = self.waits();
        change(&mut waits);
        if waits != self.waits() {
            self.rare.get_or_insert_default().waits = waits;
        }
    }

    /// CPU time of the children it waited for; `None` unless it ended.
    pub fn waited_ns(&self) -> Option<u64> {
        self.status().map(|_| self.waits().waited_ns)
    }
}

/// The tasks of a process, by index.
#[derive(Clone)]
struct Tasks<'a> {
    first: Option<usize>,
    second: Option<usize>,
    threads: std::slice::Iter<'a, u32>,
}

impl Iterator for Tasks<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let first = self.first.take().or_else(|| self.second.take());
        first.or_else(|| self.threads.next().map(|task| *task as usize))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let inline = usize::from(self.first.is_some()) + usize::from(self.second.is_some());
        let len = inline + self.threads.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Tasks<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Also before its birth: traces may be broken.
        #[test]
        fn an_end_is_kept_however_long_it_took(
            born_ns: u64,
            ends in proptest::collection::vec(
                proptest::option::of(prop_oneof![
                    any::<u64>(),
                    (0_u64..10).prop_map(|near| u64::from(u32::MAX) - 5 + near),
                ]),
                1..4,
            ),
        ) {
            let mut process = Process::new(1, 1, born_ns, Some(0), 0);
            for end in ends {
                let ended_ns = end.map(|life_ns| born_ns.wrapping_add(life_ns));
                process.set_ended_ns(ended_ns);
                prop_assert_eq!(process.ended_ns(), ended_ns);
            }
        }
    }

    #[test]
    fn few_have_more_than_the_usual() {
        let mut process = Process::new(2, 2, 10, Some(3), 0);
        process.set_reaper(Some(3));
        process.set_spawned_by(None);
        process.set_role(None);
        process.set_ended_ns(Some(20));
        assert!(process.rare.is_none());
        assert_eq!(process.reaper(), Some(3));
        process.set_reaper(Some(0));
        assert_eq!((process.reaper(), process.parent()), (Some(0), Some(3)));
        process.set_spawned_by(Some(8));
        process.set_role(Some(9));
        assert_eq!((process.spawned_by_program(), process.role()), (Some(8), Some(9)));
        assert_eq!(process.ended_ns(), Some(20));
        process.set_reaper(None);
        assert_eq!((process.reaper(), process.is_root()), (None, false));
        // Without a parent, nobody could wait for it.
        let mut root = Process::new(1, 1, 0, None, 0);
        root.set_reaper(None);
        assert_eq!((root.reaper(), root.is_root()), (None, true));
    }
}
