//! One step of a process of a plan, and the line that instructs the actor.

/// Placeholder for the work directory in the texts of a plan.
pub(crate) const WORK: &str = "@work@";

/// Identifies a node of a plan: the steps of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

/// The file that a process executes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// The actor, under this name.
    Own(String),
    /// The machine's own program of this name.
    System(String),
}

impl Program {
    /// The name of the program.
    pub(crate) fn name(&self) -> &str {
        match self {
            Program::Own(name) | Program::System(name) => name,
        }
    }
}

/// An exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exec {
    /// The file.
    pub(crate) program: Program,
    /// The arguments after argv\[0\].
    pub(crate) arguments: Vec<String>,
    /// The node of the process, if it is an actor; for a shell, that of the actors it starts.
    pub(crate) node: Option<NodeId>,
    /// The processes that a shell starts: they cannot be derived from the shell text, so its author
    /// declares them.
    pub(crate) starts: Vec<Started>,
}

/// Processes that a shell starts, one exec each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    /// The program that they execute.
    pub(crate) program: Program,
    /// Number of starts.
    pub(crate) times: u64,
    /// The node of each, if it is an actor.
    pub(crate) node: Option<NodeId>,
}

/// Actions of an event besides computing. Zero means none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventBody {
    /// Reads of 64 KiB from /dev/zero.
    pub(crate) kernel_reads: u64,
    /// Pages of the common heap to write to, in KiB.
    pub(crate) dirty_kib: u64,
    /// Read from `input`, one process or thread at a time.
    pub(crate) input_kib: u64,
    /// Written to `output`, one process or thread at a time.
    pub(crate) output_kib: u64,
    /// Sent to the writer.
    pub(crate) send_kib: u64,
    /// Compression of what is written or sent; 0 for none.
    pub(crate) level: u64,
    /// Path to read from.
    pub(crate) input: String,
    /// Path to write to.
    pub(crate) output: String,
}

/// One step. Rounds are iterations of a loop in which each depends on the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Compute in user mode.
    User(u64),
    /// Work in the kernel: reads of 64 KiB from /dev/zero.
    Kernel(u64),
    /// System calls that do almost nothing.
    Calls(u64),
    /// Allocate and fill this many MiB.
    Memory(u64),
    /// Write to each page of this many KiB of that memory.
    Dirty(u64),
    /// Load a library by searching for it.
    Load(String),
    /// Open nonexistent files in this directory.
    Miss(String, u64),
    /// Append this many KiB to a file.
    Write(String, u64),
    /// Read a file.
    Read(String),
    /// Make a directory.
    MakeDirectory(String),
    /// Change the working directory.
    Enter(String),
    /// Set an environment variable.
    Environment(String, String),
    /// Threads: total number, number at a time, rounds of each.
    Threads(u64, u64, u64),
    /// Limit the number of concurrent children from here on.
    Jobs(u64),
    /// Fork a child that does not exec.
    Fork(NodeId),
    /// Fork children that exit immediately: total number, number at a time.
    Forks(u64, u64),
    /// Fork a child that executes this.
    Spawn(Exec),
    /// posix_spawn this: total number, number at a time.
    Spawns(u64, u64, Exec),
    /// Start this as a child of a child that exits immediately.
    Detach(Exec),
    /// Wait for all children.
    Wait,
    /// Define an event, from here on.
    Event(EventBody),
    /// Create a queue of events, given their rounds, that later children and threads share.
    Queue(Vec<u64>),
    /// Process these events.
    OwnEvents(Vec<u64>),
    /// Process events of the queue until it is empty.
    TakeEvents,
    /// The same in this many threads.
    ThreadEvents(u64),
    /// Append the number of processed events to this log, in the format of AthenaMP.
    FinishEvents(String),
    /// Create the channel to a writer.
    Channel,
    /// Close it in this process, leaving it to the children.
    HangUp,
    /// Write the data received through the channel to this file, with this compression level (0:
    /// none).
    Drain(String, u64),
}

impl Step {
    /// The line for the actor, with tab-separated fields. `path_of` returns the path of a program.
    pub(crate) fn line(&self, path_of: &dyn Fn(&Program) -> String) -> String {
        let exec = |exec: &Exec| -> Vec<String> {
            let path = path_of(&exec.program);
            // A shell has its path as argv[0], as with a runner; the actor has its name.
            let own = matches!(exec.program, Program::Own(_));
            let name = if own { exec.program.name().to_owned() } else { path.clone() };
            [path, name].into_iter().chain(exec.arguments.iter().cloned()).collect()
        };
        let node = |node: Option<NodeId>| node.map_or("-".to_owned(), |NodeId(id)| id.to_string());
        let numbers = |name: &str, numbers: &[u64]| {
            fields(name, &numbers.iter().map(u64::to_string).collect::<Vec<_>>())
        };
        match self {
            Step::User(rounds) => numbers("user", &[*rounds]),
            Step::Kernel(reads) => numbers("kernel", &[*reads]),
            Step::Calls(calls) => numbers("calls", &[*calls]),
            Step::Memory(mib) => numbers("memory", &[*mib]),
            Step::Dirty(kib) => numbers("dirty", &[*kib]),
            Step::Load(library) => fields("load", &[library]),
            Step::Miss(directory, count) => fields("miss", &[directory, &count.to_string()]),
            Step::Write(path, kib) => fields("write", &[path, &kib.to_string()]),
            Step::Read(path) => fields("read", &[path]),
            Step::MakeDirectory(path) => fields("mkdir", &[path]),
            Step::Enter(path) => fields("chdir", &[path]),
            Step::Environment(name, value) => fields("env", &[name, value]),
            Step::Threads(count, at_once, rounds) => {
                numbers("threads", &[*count, *at_once, *rounds])
            }
            Step::Jobs(most) => numbers("jobs", &[*most]),
            Step::Fork(NodeId(id)) => fields("fork", &[id.to_string()]),
            Step::Forks(count, at_once) => numbers("forks", &[*count, *at_once]),
            Step::Spawn(what) => fields("spawn", &[vec![node(what.node)], exec(what)].concat()),
            Step::Spawns(count, at_once, what) => {
                let counts = vec![count.to_string(), at_once.to_string()];
                fields("spawns", &[counts, exec(what)].concat())
            }
            Step::Detach(what) => fields("detach", &[vec![node(what.node)], exec(what)].concat()),
            Step::Wait => "wait".into(),
            Step::Event(body) => fields("event", &settings(body)),
            Step::Queue(rounds) => numbers("queue", rounds),
            Step::OwnEvents(rounds) => numbers("own-events", rounds),
            Step::TakeEvents => "take-events".into(),
            Step::ThreadEvents(threads) => numbers("thread-events", &[*threads]),
            Step::FinishEvents(log) => fields("finish-events", &[log]),
            Step::Channel => "channel".into(),
            Step::HangUp => "hang-up".into(),
            Step::Drain(path, level) => fields("drain", &[path, &level.to_string()]),
        }
    }
}

fn fields<S: AsRef<str>>(name: &str, values: &[S]) -> String {
    values.iter().fold(name.to_owned(), |line, value| line + "\t" + value.as_ref())
}

fn settings(body: &EventBody) -> Vec<String> {
    let numbers = [
        ("kernel", body.kernel_reads),
        ("dirty", body.dirty_kib),
        ("input_kib", body.input_kib),
        ("output_kib", body.output_kib),
        ("send_kib", body.send_kib),
        ("level", body.level),
    ];
    let mut settings: Vec<String> =
        numbers.iter().map(|(name, value)| format!("{name}={value}")).collect();
    settings.push(format!("input={}", body.input));
    settings.push(format!("output={}", body.output));
    settings
}
