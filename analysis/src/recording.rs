//! A recording as tables, ready to be analysed.

use std::collections::HashMap;

use proctrace_replay::CpuTime;
use proctrace_trace::{Damage, Header, Trailer};

use crate::bins::Bins;
use crate::blind::Blindness;
use crate::classify::{Classification, Program};
use crate::fast::FastMap;
use crate::loading::Start;
use crate::tracks::Track;
use crate::usage::Usage;
use crate::watch::Watch;

/// What one trace holds, read once.
#[derive(Debug)]
pub struct Recording {
    /// Where and how it was made.
    pub header: Header,
    /// How it ended; None if it was cut short.
    pub trailer: Option<Trailer>,
    /// What had to be passed over.
    pub damage: Vec<Damage>,
    /// Records that make no sense.
    pub undecodable: u64,
    /// Everything that ran, by number.
    pub programs: Vec<Program>,
    /// How they were told apart.
    pub(crate) classification: Classification,
    /// Processes in order of their birth.
    pub processes: Vec<Process>,
    /// Tasks in order of their birth.
    pub tasks: Vec<Task>,
    /// Every exec, in order of time.
    pub(crate) runs: Vec<Run>,
    /// What each run looked up in vain, while it was loading and in all.
    pub(crate) starts: Vec<Start>,
    /// Shapes of command lines, by number.
    pub(crate) templates: Vec<String>,
    /// Roles of processes, by number.
    pub(crate) roles: Vec<String>,
    /// Names of categories, by number.
    pub(crate) categories: Vec<String>,
    /// The category of each program.
    pub(crate) category_of: Vec<usize>,
    pub(crate) counts: Counts,
    /// Directories that were searched in vain, by number.
    pub(crate) directories: Vec<Vec<u8>>,
    /// Failed look-ups by process, directory and errno.
    pub(crate) misses: FastMap<Miss, u32>,
    pub(crate) bins: Bins,
    /// The processes that used most, over time.
    pub(crate) tracks: Vec<Track>,
    /// What samplers of /proc would not have seen.
    pub(crate) watch: Watch,
    /// Every pass of samples.
    pub(crate) ticks: Vec<proctrace_wire::layout::Tick>,
    /// What could not be seen.
    pub(crate) blind: Blindness,
    /// Looks at the memory of processes, in order of time.
    pub(crate) looks: Vec<Look>,
    /// Most tasks running or runnable in a sample.
    pub(crate) peak_running: Option<u64>,
    /// First and last time of a record.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

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

/// Where a failed look-up is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Miss {
    pub(crate) process: u32,
    pub(crate) directory: u32,
    pub(crate) errno: u16,
    /// Position in `Family::ALL`; beyond it for calls of no family.
    pub(crate) family: u8,
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

/// A look at the memory of one process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) process: usize,
    pub(crate) record: proctrace_wire::layout::Memory,
}

/// A thread of control.
#[derive(Debug, Clone)]
pub struct Task {
    /// Serial number in the recording.
    pub serial: u32,
    /// Index of its process.
    pub process: usize,
    /// When it was made.
    pub born_ns: u64,
    /// How it ended; None if it was alive at the end.
    pub end: Option<End>,
    /// The last sample of a task that has not ended.
    pub seen: Option<Box<proctrace_wire::layout::Sample>>,
    /// Whether its process existed before it.
    pub is_thread: bool,
    /// What it had used before it was followed; None for one that was followed from its birth.
    pub before: Option<Box<Usage>>,
    /// A leader that had exited before it was followed: no end will be told.
    pub zombie: bool,
}

impl Task {
    /// What it used while it was followed: in the end, or as last seen.
    pub fn used(&self) -> Usage {
        let before = self.before.as_deref().copied().unwrap_or_default();
        match (&self.end, &self.seen) {
            (Some(end), _) => Usage::from(&end.record).since(&before),
            (None, Some(seen)) => Usage::from(&**seen).since(&before),
            (None, None) => Usage::default(),
        }
    }
}

/// The end of a task.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// When.
    pub time_ns: u64,
    /// CPU time, exact; split as the kernel does for a single task.
    pub cpu: CpuTime,
    /// What else its record says.
    pub record: Exit,
}

macro_rules! kept_of_exit {
    ($($(#[$doc:meta])+ $field:ident: $type:ty,)+) => {
        /// What is kept of an exit record: there is one for each of a million tasks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Exit {
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl From<&proctrace_wire::layout::Exit> for Exit {
            fn from(record: &proctrace_wire::layout::Exit) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }
    };
}

kept_of_exit! {
    /// Status as wait(2) gives it.
    status: u32,
    /// EXIT_* bits.
    bits: u32,
    /// Real parent when it exited.
    parent_tgid: i32,
    /// Successful opens.
    opens: u32,
    /// Failed look-ups, counted independently of their records.
    lookups_failed: u32,
    /// Failed execs, counted independently of their records.
    execs_failed: u32,
    /// Times it was moved to another CPU; 0 in traces before wire version 3.
    migrations: u32,
    /// CPU time, exact.
    run_ns: u64,
    /// CPU time when it began to exit, short of the last slice.
    run_at_exit_ns: u64,
    /// User time by ticks.
    utime_ns: u64,
    /// System time by ticks.
    stime_ns: u64,
    /// Voluntary context switches.
    nvcsw: u64,
    /// Involuntary context switches.
    nivcsw: u64,
    /// Minor faults.
    minflt: u64,
    /// Major faults.
    majflt: u64,
    /// Bytes read by system calls.
    rchar: u64,
    /// Bytes written by system calls.
    wchar: u64,
    /// Bytes read from storage.
    read_bytes: u64,
    /// Bytes written to storage.
    write_bytes: u64,
    /// Time spent runnable without a CPU.
    run_delay_ns: u64,
    /// Peak RSS of the task's own address space.
    maxrss_pages: u64,
    /// User time of children waited for.
    waited_utime_ns: u64,
    /// System time of children waited for.
    waited_stime_ns: u64,
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
    /// Index of the process that was its parent when it ended, and so the one that can wait for it:
    /// its parent, or one that has adopted it (a subreaper). None if that is not of the recording.
    pub reaper: Option<usize>,
    /// What the forker was running at the time.
    pub spawned_by: Option<usize>,
    /// The same as an index of the recording's runs.
    pub(crate) spawned_in: Option<u32>,
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
    /// Pid of its parent when it ended.
    pub(crate) last_parent_pid: Option<i32>,
    /// Number of what it ran last.
    pub program: usize,
    /// Successful execs.
    pub execs: u32,
    /// Its tasks, by index.
    pub tasks: Vec<usize>,
    /// CPU time of its tasks while they were followed, exact; split as the kernel does for the
    /// group.
    pub cpu: CpuTime,
    /// CPU time of its tasks before.
    pub before_ns: u64,
    /// CPU time of children it had waited for before.
    pub waited_before_ns: u64,
    /// CPU time that the kernel may have left out when it was waited for: last slices of tasks that
    /// were released before they had left their CPU.
    pub tail_ns: u64,
    /// CPU time of children it has waited for; None unless it ended.
    pub waited_ns: Option<u64>,
    /// Whether its parent ignored SIGCHLD, so that no one waited for it.
    pub autoreaped: bool,
    /// Peak RSS of what it ran last.
    pub maxrss_bytes: u64,
}

impl Recording {
    /// What a process ran last, or its forker if it never called exec.
    pub fn program_of(&self, process: &Process) -> &Program {
        &self.programs[process.program]
    }

    /// Number of the category a process counts in.
    pub(crate) fn category_of(&self, process: &Process) -> usize {
        self.category_of.get(process.program).copied().unwrap_or(0)
    }

    /// What a process is among others that run the same, if anything tells.
    pub fn role_of(&self, process: &Process) -> Option<&str> {
        self.roles.get(process.role? as usize).map(String::as_str)
    }

    /// The shape of the command line that a process ran last.
    pub fn template_of(&self, process: &Process) -> Option<&str> {
        let run = self.runs.get(process.run? as usize)?;
        self.templates.get(run.template as usize).map(String::as_str)
    }

    /// The shape of the command line that started a process.
    pub fn spawner_template_of(&self, process: &Process) -> Option<&str> {
        let run = self.runs.get(process.spawned_in? as usize)?;
        self.templates.get(run.template as usize).map(String::as_str)
    }

    /// The command, where one was launched.
    pub fn root(&self) -> Option<&Process> {
        if self.header.command.is_empty() { None } else { self.processes.first() }
    }

    /// From the first record to the command's exit, or to the last record.
    pub fn wall_ns(&self) -> u64 {
        let end = self
            .trailer
            .as_ref()
            .and_then(|trailer| trailer.payload.as_ref())
            .map(|payload| payload.exited_ns)
            .or_else(|| self.root().and_then(|root| root.ended_ns));
        end.unwrap_or(self.last_ns).saturating_sub(self.first_ns)
    }

    /// From the first record to the last.
    pub fn recorded_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}
