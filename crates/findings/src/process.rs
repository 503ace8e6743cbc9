//! Everything that a recording knows of one process, and of all processes that ran a program.

use serde::Serialize;

use crate::figure::Figures;

/// The answer to "who was it?".
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// One process.
    Process(Box<ProcessDetails>),
    /// All processes that ran a program.
    Program(Box<ProgramDetails>),
    /// Several processes that had the same pid, of which one must be chosen.
    Candidates(Vec<Candidate>),
}

/// A process as others refer to it. A pid may be used again; a serial never is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Relative {
    /// Its serial number in the recording.
    pub serial: u32,
    /// Its pid.
    pub pid: i32,
    /// The last program it ran.
    pub program: String,
}

/// One of several processes with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The process.
    #[serde(flatten)]
    pub process: Relative,
    /// Time of its birth, since the start of the recording.
    pub born_ns: u64,
    /// Time of its end; None if it was alive at the end of the recording.
    pub ended_ns: Option<u64>,
    /// Its last command line, with `#` for numbers.
    pub command: String,
}

/// A step that a process belongs to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OwnStep {
    /// Name of the step.
    pub step: String,
    /// Name of its group.
    pub group: String,
    /// True if it is the first process of the step.
    pub begins_it: bool,
    /// Wall time of the step.
    pub wall_ns: u64,
    /// CPU time of all processes of the step, those of its parts included.
    pub cpu_ns: Option<u64>,
    /// Number of these processes.
    pub processes: u64,
}

/// A process. Times are since the start of the recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessDetails {
    /// The process.
    #[serde(flatten)]
    pub process: Relative,
    /// Its role among processes that run the same program, if there is one.
    pub role: Option<String>,
    /// Time of its birth, or when it was first seen.
    pub born_ns: u64,
    /// True if its birth was recorded; if not, it existed before the recording, or is the command.
    pub birth_recorded: bool,
    /// Time of its end; None if it was alive at the end of the recording, or left to a debugger
    /// before.
    pub ended_ns: Option<u64>,
    /// True if its recorder left it to a debugger of the command, and saw nothing of it from then on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub let_go: bool,
    /// Its lifetime, if it ended.
    pub life_ns: Option<u64>,
    /// Its outcome: "exit 0", "SIGKILL".
    pub outcome: Option<String>,
    /// True if it left a core dump.
    pub core_dump: bool,
    /// Sender of the signal that ended it, in words.
    pub sent_by: Option<String>,
    /// The signals it got that usually end a process.
    pub signals: Vec<ReceivedSignal>,
    /// True if its parent ended before it.
    pub outlived_parent: bool,
    /// The process that had adopted it by its end, if that is one of the recording.
    pub adopted_by: Option<Relative>,
    /// Steps that it belongs to, innermost first.
    pub steps: Vec<OwnStep>,
    /// Its ancestors, parent first.
    pub parents: Vec<Relative>,
    /// Commands that it executed, in order of time.
    pub commands: Vec<Command>,
    /// The command line of its forker, if it never called exec.
    pub forked_from: Option<String>,
    /// The last working directory of a process that never called exec, if it changed it.
    pub directory: Option<String>,
    /// Figures of its usage.
    pub usage: Figures,
    /// Its threads, without the first.
    pub threads: Option<u64>,
    /// Its children by command, the most expensive first.
    pub children: Vec<ChildGroup>,
    /// Number of its children, their children, and so on.
    pub descendants: Option<u64>,
    /// CPU time of these.
    pub descendants_cpu_ns: Option<u64>,
    /// Failed look-ups by directory, the most frequent first.
    pub missed_directories: Vec<MissedName>,
    /// Failed look-ups and failed execs by path, the most frequent first.
    pub missed_paths: Vec<MissedName>,
    /// Failed look-ups by which its parent searched for its program before it started it, in order of
    /// time.
    pub searched_by_parent: Vec<MissedName>,
    /// Times off the CPU by reason, the longest in total first; None if they were not recorded.
    pub waits: Option<Vec<WaitGroup>>,
    /// Its part of the critical path; None if that is not known.
    pub path: Option<PathShare>,
    /// Readings of its memory, in order of time.
    pub memory: Vec<MemoryAt>,
    /// Length of the recording.
    pub recorded_ns: u64,
    /// Names of what is not known of the above, and the reason.
    pub not_known: Option<String>,
}

/// A signal that usually ends a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceivedSignal {
    /// Time at which it was sent.
    pub time_ns: u64,
    /// Its name.
    pub signal: String,
    /// Sender of the signal, in words.
    pub sent_by: String,
}

/// A successful exec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Time of the exec.
    pub time_ns: u64,
    /// Time for which the program ran, if its end is known.
    pub ran_ns: Option<u64>,
    /// The name under which it is counted.
    pub program: Option<String>,
    /// True if the exec happened during the recording.
    pub recorded: bool,
    /// The executable.
    pub exe: String,
    /// The `#!` interpreter.
    pub interpreter: Option<String>,
    /// The arguments; None if they were not recorded.
    pub arguments: Option<Vec<String>>,
    /// True if arguments are missing.
    pub arguments_cut: bool,
    /// The working directory.
    pub directory: String,
    /// The variables of its environment that were recorded: name and value.
    pub environment: Option<Vec<(String, String)>>,
}

/// Children with the same command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChildGroup {
    /// Their last command line, with `#` for numbers.
    pub command: String,
    /// Number of children.
    pub processes: u64,
    /// Number of them that did not exit with 0.
    pub failed: u64,
    /// Number of their descendants.
    pub descendants: u64,
    /// CPU time of them and their descendants.
    pub cpu_ns: Option<u64>,
    /// The longest life among those that ended.
    pub longest_ns: Option<u64>,
    /// The serial of the first.
    pub first_serial: u32,
    /// The pid of the first.
    pub first_pid: i32,
}

/// A directory or a path that was looked up in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissedName {
    /// The directory or path.
    pub name: String,
    /// The call family: "open", "stat".
    pub family: String,
    /// The symbolic error: "ENOENT".
    pub errno: String,
    /// Number of failed look-ups.
    pub count: u64,
}

/// Times off the CPU for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitGroup {
    /// Object of the waits, in words: "a child".
    pub waits_for: &'static str,
    /// Number of waits.
    pub count: u64,
    /// Time asleep, in total.
    pub asleep_ns: u64,
    /// Time ready to run after that, in total.
    pub for_cpu_ns: u64,
    /// The longest, with the time for a CPU.
    pub longest_ns: u64,
    /// Time at which the longest began.
    pub longest_since_ns: u64,
    /// Process that ended the longest, if that is one of the recording.
    pub longest_ended_by: Option<Relative>,
    /// Enders of the waits in words, the most frequent first, with the number of times.
    pub ended_by: Vec<(String, u64)>,
}

/// The part of the critical path that is one process's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PathShare {
    /// Time on the path in total.
    pub path_ns: u64,
    /// The part of it in which it ran.
    pub running_ns: u64,
    /// The part in which it waited for a CPU.
    pub waiting_for_cpu_ns: u64,
    /// The part in which it waited for something that no task of the recording did.
    pub waiting_ns: u64,
    /// Its stretches on the path, in order of time.
    pub stretches: Vec<PathStretch>,
}

/// A stretch of the critical path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathStretch {
    /// Time at which it began.
    pub begin_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Activity of the process, in words.
    pub doing: String,
}

/// A reading of a process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryAt {
    /// Time of the reading.
    pub time_ns: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory; a page shared by n processes counts for 1/n.
    pub pss_bytes: u64,
    /// Memory that is not shared; None if the source does not know it.
    pub uss_bytes: Option<u64>,
    /// Swapped-out memory.
    pub swap_bytes: u64,
}

/// All processes whose last program was the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProgramDetails {
    /// Its name.
    pub program: String,
    /// The categories it is counted in.
    pub categories: Vec<String>,
    /// Processes whose last program it was.
    pub processes: u64,
    /// The part of these that never called exec.
    pub forked: u64,
    /// Number of its execs; None if execs are not known.
    pub execs: Option<u64>,
    /// Processes that ran it and went on to another program.
    pub went_on: u64,
    /// Most of them that were alive at the same time.
    pub most_alive: u64,
    /// Threads of these processes, without the first of each.
    pub threads: u64,
    /// Birth of the first, since the start of the recording.
    pub first_ns: Option<u64>,
    /// End of the last, or of the recording.
    pub last_ns: Option<u64>,
    /// Programs that start them, the most frequent first: program and number of processes.
    pub started_by: Vec<(String, u64)>,
    /// Outcomes of the processes, the most frequent first, with the number of processes.
    pub outcomes: Vec<(String, u64)>,
    /// Their command lines with `#` for numbers, the most expensive first.
    pub commands: Vec<ChildGroup>,
    /// Usage of all of them; the peak RSS is the largest.
    pub usage: Figures,
    /// Quantities per process, each with its distribution.
    pub spreads: Vec<Spread>,
    /// Processes that lived longest, the longest first.
    pub slowest: Vec<Slow>,
    /// Names of what is not known of the above, and the reason.
    pub not_known: Option<String>,
}

/// The distribution of a quantity over processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// A stable name, with its unit: "life_ns".
    pub name: &'static str,
    /// Number of processes that have it.
    pub n: u64,
    /// The smallest.
    pub least: u64,
    /// The median.
    pub median: u64,
    /// The value that nine of ten do not exceed.
    pub ninety_percent: u64,
    /// The largest.
    pub most: u64,
}

/// One of the processes of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slow {
    /// The process.
    #[serde(flatten)]
    pub process: Candidate,
    /// Its lifetime, up to the end of the recording if it was alive then.
    pub life_ns: u64,
    /// Its CPU time.
    pub cpu_ns: Option<u64>,
    /// Its outcome.
    pub outcome: Option<String>,
}
