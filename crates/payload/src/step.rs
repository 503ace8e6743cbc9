//! One thing that a process of a plan does, and the line that tells the actor to do it.

/// Stands for the work directory in every text of a plan, until it is known.
pub(crate) const WORK: &str = "@work@";

/// Names a node of a plan: the steps of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

/// What file a process executes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// The actor, under this name.
    Own(String),
    /// The machine's own program of this name.
    System(String),
}

impl Program {
    /// The name it is known by.
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
    /// What comes after argv\[0\].
    pub(crate) arguments: Vec<String>,
    /// What the process does, if it is an actor; for a shell, what the actors it starts do.
    pub(crate) node: Option<NodeId>,
    /// What a shell starts: the plan cannot read shell text, so whoever wrote that says it.
    pub(crate) starts: Vec<Started>,
}

/// Processes that a shell makes, one exec each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    /// What they execute.
    pub(crate) program: Program,
    /// How many.
    pub(crate) times: u64,
    /// What each does, if it is an actor.
    pub(crate) node: Option<NodeId>,
}

/// What an event does beside computing. Zero means that it does not.
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

/// One step. Rounds are of a loop in which each needs the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Compute in user mode.
    User(u64),
    /// Work in the kernel: reads of 64 KiB from /dev/zero.
    Kernel(u64),
    /// System calls that do next to nothing.
    Calls(u64),
    /// Allocate so many MiB and fill them.
    Memory(u64),
    /// Write to each page of so many KiB of that.
    Dirty(u64),
    /// Load a library, which the loader searches for.
    Load(String),
    /// Open files that are not there, in this directory.
    Miss(String, u64),
    /// Append so many KiB to a file.
    Write(String, u64),
    /// Read a file.
    Read(String),
    /// Make a directory.
    MakeDirectory(String),
    /// Make it the working directory.
    Enter(String),
    /// Set a variable of the environment.
    Environment(String, String),
    /// Threads, so many of them at a time, so many rounds each.
    Threads(u64, u64, u64),
    /// Have at most so many children at a time from here on.
    Jobs(u64),
    /// Fork a child that does not exec.
    Fork(NodeId),
    /// Fork so many children that exit at once, so many at a time.
    Forks(u64, u64),
    /// Fork a child that executes this.
    Spawn(Exec),
    /// posix_spawn this so often, so many at a time.
    Spawns(u64, u64, Exec),
    /// Start this as a child of a child that exits at once.
    Detach(Exec),
    /// Wait for all children.
    Wait,
    /// What an event is, from here on.
    Event(EventBody),
    /// Rounds of each event of a queue that later children and threads share.
    Queue(Vec<u64>),
    /// Process these events.
    OwnEvents(Vec<u64>),
    /// Process events of the queue until it is empty.
    TakeEvents,
    /// The same in so many threads.
    ThreadEvents(u64),
    /// Append to this log how many events there were, as AthenaMP says it.
    FinishEvents(String),
    /// Make the channel to a writer.
    Channel,
    /// Leave it to the children.
    HangUp,
    /// Write to this file what comes through the channel, compressing it to this level (0: not).
    Drain(String, u64),
}

impl Step {
    /// The line for the actor: fields with tabs between them. `path_of` says where a program is.
    pub(crate) fn line(&self, path_of: &dyn Fn(&Program) -> String) -> String {
        let exec = |exec: &Exec| -> Vec<String> {
            let path = path_of(&exec.program);
            // A shell is called by its path, as a runner does; the actor by its name.
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
