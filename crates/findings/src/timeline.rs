//! A recording as a timeline: the items that viewers of traces show, one at a time.
//!
//! Times are in nanoseconds since the first record. Processes, tasks and program runs are numbered
//! from 0; these numbers are unique in a recording, unlike pids.

use crate::figure::Figures;
use proctrace_wire::Outcome;

/// Properties that all items of a timeline share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The command and its arguments; empty if no command was launched.
    pub command: Vec<String>,
    /// Its initial working directory.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine: "x86_64".
    pub machine: String,
    /// Version of the recorder.
    pub recorder: String,
    /// CLOCK_BOOTTIME of the first record.
    pub begin_boottime_ns: u64,
    /// The same time, since 1970.
    pub begin_unix_ns: u64,
    /// Time of the last record.
    pub length_ns: u64,
    /// The span of a distributed trace that the recording is a part of: its trace, 32 hexadecimal digits, and its own 16.
    pub span: Option<(String, String)>,
}

/// The items that are wanted, besides processes and their threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimelineParts {
    /// Program runs.
    pub runs: bool,
    /// The critical path.
    pub path: bool,
    /// Quantities over time.
    pub counters: bool,
    /// Times off the CPU.
    pub waits: bool,
    /// Chains of programs.
    pub stacks: bool,
    /// Phases between the marks of the payload.
    pub phases: bool,
}

/// One item. All processes come first, in order of birth, each followed by its threads.
#[derive(Debug, Clone, PartialEq)]
pub enum TimelineItem<'a> {
    /// A process.
    Process(TimelineProcess<'a>),
    /// A thread of the process before it, its first one included.
    Thread(TimelineThread),
    /// A program run, in order of time.
    Run(TimelineRun<'a>),
    /// A part of the critical path, in order of time.
    Step(TimelineStep<'a>),
    /// A phase, in order of time; none without marks.
    Phase(TimelinePhase<'a>),
    /// A time off the CPU.
    Wait(TimelineWait),
    /// A quantity over time.
    Counter(TimelineCounter<'a>),
    /// A chain of programs; the chain above it came before.
    Stack(TimelineStack<'a>),
}

/// The time from a mark of the payload to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelinePhase<'a> {
    /// The text of the mark, made unique.
    pub name: &'a str,
    /// Time of the mark.
    pub begin_ns: u64,
    /// Time of the next one, or of the last record.
    pub end_ns: u64,
}

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineProcess<'a> {
    /// Its number.
    pub process: u32,
    /// Its `process_id` in the tables of `query`.
    pub id: u32,
    /// Its pid.
    pub pid: i32,
    /// Pid of its parent, if that was recorded.
    pub parent_pid: Option<i32>,
    /// The task that created it, if that was recorded.
    pub forker: Option<TimelineForker>,
    /// The step that it belongs to.
    pub step: Option<&'a str>,
    /// The span of a distributed trace that it begins, as in [`Timeline::span`].
    pub span: Option<(String, String)>,
    /// The program that it ran last, or its forker's if it never called exec.
    pub program: Option<&'a str>,
    /// The category of that program.
    pub category: Option<&'a str>,
    /// Time of its birth.
    pub begin_ns: u64,
    /// Time of its end; `None` if it was alive at the end of the recording.
    pub end_ns: Option<u64>,
    /// Its outcome.
    pub outcome: Option<Outcome>,
    /// True if it left a core dump.
    pub dumped_core: bool,
    /// Its threads, the first one included.
    pub threads: Option<u64>,
    /// Figures of its usage, without those that timelines do not have.
    pub used: Box<Figures>,
}

/// The task that created a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineForker {
    /// Number of the forking process.
    pub process: u32,
    /// Number of the forking task.
    pub task: u32,
    /// True if that is the first task of its process.
    pub is_first: bool,
    /// Number of the program run in which it happened; `None` before the first one.
    pub run: Option<u32>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineThread {
    /// Its number among all tasks.
    pub task: u32,
    /// Number of its process.
    pub process: u32,
    /// Its thread id; `None` where no record contains it.
    pub tid: Option<i32>,
    /// True if it is the first task of its process.
    pub is_first: bool,
    /// Time of its birth.
    pub begin_ns: u64,
    /// Time of its end; `None` if it was alive at the end of the recording.
    pub end_ns: Option<u64>,
    /// CPU time.
    pub cpu_ns: Option<u64>,
}

/// Run of a program by a process from one exec to the next, or to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineRun<'a> {
    /// Its number.
    pub run: u32,
    /// Number of the process.
    pub process: u32,
    /// The program.
    pub program: Option<&'a str>,
    /// Time of the exec; 0 if it happened before.
    pub begin_ns: u64,
    /// Its end; `None` if the process was alive at the end of the recording.
    pub end_ns: Option<u64>,
    /// False for a program that was already running when the recording began.
    pub happened_here: bool,
    /// Outcome of the process, if this was its last program.
    pub outcome: Option<Outcome>,
    /// The executable as seen by the process; empty if not known.
    pub exe: &'a [u8],
    /// The `#!` interpreter, if there is one.
    pub interpreter: Option<&'a [u8]>,
    /// The working directory at the exec; empty if not known.
    pub cwd: &'a [u8],
    /// The arguments; `None` if they were not recorded.
    pub arguments: Option<&'a [Vec<u8>]>,
    /// True if arguments are missing at the end.
    pub arguments_cut: bool,
}

/// A part of the critical path.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineStep<'a> {
    /// Number of the process.
    pub process: u32,
    /// Its pid.
    pub pid: i32,
    /// Its program at the time.
    pub program: Option<&'a str>,
    /// Activity on the path: "running", "waiting for a CPU", "waiting for storage".
    pub doing: &'a str,
    /// Its begin.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// A time that a task spent off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineWait {
    /// Number of the task.
    pub task: u32,
    /// Number of its process.
    pub process: u32,
    /// Object of the wait: "a pipe".
    pub waits_for: &'static str,
    /// Time at which it left the CPU.
    pub begin_ns: u64,
    /// Time at which its sleep ended, and its wait for a CPU began; `begin_ns` if it did not sleep.
    pub woken_ns: u64,
    /// Time at which it ran again.
    pub end_ns: u64,
    /// Pid of the process that ended the sleep, if that was recorded.
    pub waker_pid: Option<i32>,
}

/// A quantity over time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineCounter<'a> {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values: "cores", "tasks", "1/s", "B", "B/s".
    pub unit: &'static str,
    /// Number of the process that it belongs to; `None` for a sum over all of them.
    pub process: Option<u32>,
    /// Times and values, from that time to the next, in order of time. Values that are not known
    /// are left out.
    pub values: &'a [(u64, f64)],
}

/// A chain of programs, each started by the one above it, and the processes at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineStack<'a> {
    /// The chain above, as the position of its item among the stacks.
    pub parent: Option<u32>,
    /// The last program of the chain.
    pub program: &'a str,
    /// Number of processes.
    pub processes: u64,
    /// Their CPU time.
    pub cpu_ns: Option<u64>,
    /// The sum of their lifetimes, for those alive at the end up to the last record.
    pub wall_ns: u64,
}
