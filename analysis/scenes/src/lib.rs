//! Synthetic recordings for tests with arithmetically known results: records are written as by the
//! recorder, into a trace that is read like any other.

#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "only tests use it")]

mod paths;

use std::collections::HashMap;

use proctrace_trace::{Ended, Header, Outcome, PayloadUsage, RecorderUsage, Trailer, Writer};
use proctrace_wire::layout::{
    self, ATTACH_ROOT, Attach, EXIT_PROCESS, EnvFixed, ExecFixed, Exit, Fork, Head, Tick,
};
use proctrace_wire::{IntoBytes, Kind, Stream};
use zerocopy::FromZeros;

use proctrace_classify::Rules;
use proctrace_recording::Recording;

/// A millisecond, in nanoseconds.
pub const MS: u64 = 1_000_000;
/// A second, in nanoseconds.
pub const S: u64 = 1_000 * MS;
/// 2^20, so that it is a whole number of pages.
pub const MB: u64 = 1 << 20;
/// Begin of every recording: clocks do not begin at 0.
pub const BEGIN_NS: u64 = 1_000 * S;

/// The pid of a task, distinct from every serial number.
pub fn pid_of(task: u32) -> i32 {
    1_000 + i32::try_from(task).unwrap()
}

/// A recording under construction. Times are in nanoseconds since its beginning, tasks are serial
/// numbers; the command is task 1 and begins at 0.
pub struct Scene {
    header: Header,
    streams: [(Vec<u8>, u64); 4],
    /// Process, parent and end of each task.
    tasks: HashMap<u32, TaskState>,
    /// Flags of the next fork.
    next_flags: u64,
    next_pid: Option<i32>,
    environment: Option<(u64, String)>,
    last_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct TaskState {
    process: u32,
    parent: u32,
    ended: bool,
    /// CPU time of the children it has waited for.
    waited: (u64, u64),
}

impl Scene {
    /// Scene on a machine with this number of CPUs, sampled at this interval.
    pub fn new(cpus: u32, interval_ns: u64) -> Self {
        let header = Header {
            wire_version: proctrace_wire::WIRE_VERSION,
            recorder: "0".into(),
            backend: "hand".into(),
            command: vec!["job".into()],
            scope: "command".into(),
            restricted: false,
            cgroup: None,
            cwd: "/".into(),
            host: "host".into(),
            kernel: "6.18".into(),
            machine: "x86_64".into(),
            cpus,
            page_bytes: 4096,
            memory_bytes: 1 << 30,
            processor: Default::default(),
            started_unix_ns: 0,
            started_ns: BEGIN_NS,
            interval_ns,
            memory_interval_ns: None,
            ring_bytes: 1 << 20,
            on_full: "drop".into(),
            misses: proctrace_wire::Family::ALL.map(|family| family.name().to_owned()).to_vec(),

            opens: false,
            lookups_timed_one_in: None,
            waits_min_ns: None,
            env_names: Vec::new(),
            job: std::collections::BTreeMap::new(),
            hooks: Vec::new(),
            // Short, so that every scene has enough ticks.
            tick_ns: Some(1_000),
            knowledge: Default::default(),
        };
        let known = TaskState { process: 1, parent: 0, ended: false, waited: (0, 0) };
        let mut scene = Self {
            header,
            streams: std::array::from_fn(|_| (Vec::new(), 0)),
            tasks: HashMap::from([(1, known)]),
            next_flags: 0,
            next_pid: None,
            environment: None,
            last_ns: 0,
        };
        let mut attach = Attach::new_zeroed();
        attach.head = scene.head(Kind::Attach, size_of::<Attach>(), 1, 0);
        (attach.process, attach.tgid, attach.tid) = (1, pid_of(1), pid_of(1));
        attach.bits = ATTACH_ROOT;
        attach.comm[..3].copy_from_slice(b"job");
        scene.put(Stream::Lifecycle, attach.as_bytes(), &[]);
        scene
    }

    fn head(&mut self, kind: Kind, size: usize, task: u32, at_ns: u64) -> Head {
        self.last_ns = self.last_ns.max(at_ns);
        Head {
            kind: kind as u16,
            size: u16::try_from(size).unwrap(),
            task,
            time_ns: BEGIN_NS + at_ns,
        }
    }

    fn put(&mut self, stream: Stream, fixed: &[u8], rest: &[u8]) {
        let (bytes, records) = &mut self.streams[stream as usize - 1];
        bytes.extend_from_slice(fixed);
        bytes.extend_from_slice(rest);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        *records += 1;
    }

    /// The next process has the pid of an earlier one.
    pub fn reuse_pid(&mut self, earlier: u32) -> &mut Self {
        self.next_pid = Some(pid_of(earlier));
        self
    }

    /// A process is found that has existed for this long.
    pub fn there_before(&mut self, at_ns: u64, task: u32, for_ns: u64) -> &mut Self {
        self.there_before_with(at_ns, task, BEGIN_NS + at_ns - for_ns, |_| ())
    }

    /// The same, with its start as recorded, 0 if it is not, and further changes to the record.
    pub fn there_before_with(
        &mut self,
        at_ns: u64,
        task: u32,
        start_ns: u64,
        more: impl FnOnce(&mut Attach),
    ) -> &mut Self {
        let known = TaskState { process: task, parent: 0, ended: false, waited: (0, 0) };
        assert!(self.tasks.insert(task, known).is_none());
        let mut attach = Attach::new_zeroed();
        attach.head = self.head(Kind::Attach, size_of::<Attach>(), task, at_ns);
        (attach.process, attach.tgid, attach.tid) = (task, pid_of(task), pid_of(task));
        attach.start_ns = start_ns;
        more(&mut attach);
        self.put(Stream::Lifecycle, attach.as_bytes(), &[]);
        self
    }

    /// A process is born.
    pub fn fork(&mut self, at_ns: u64, parent: u32, child: u32) -> &mut Self {
        self.born(at_ns, parent, child, child)
    }

    /// A process is born as the child of its forker's parent (CLONE_PARENT).
    pub fn sibling(&mut self, at_ns: u64, forker: u32, child: u32) -> &mut Self {
        let parent = self.tasks[&forker].parent;
        let known = TaskState { process: child, parent, ended: false, waited: (0, 0) };
        assert!(self.tasks.insert(child, known).is_none());
        self.put_fork(at_ns, forker, child, child, pid_of(parent))
    }

    /// A thread is born.
    pub fn thread(&mut self, at_ns: u64, task: u32, thread: u32) -> &mut Self {
        let process = self.tasks[&task].process;
        self.born(at_ns, task, thread, process)
    }

    fn born(&mut self, at_ns: u64, parent: u32, child: u32, process: u32) -> &mut Self {
        let forker = self.tasks[&parent].process;
        let parent_process = if process == child { forker } else { self.tasks[&forker].parent };
        let known = TaskState { process, parent: parent_process, ended: false, waited: (0, 0) };
        assert!(self.tasks.insert(child, known).is_none());
        self.put_fork(at_ns, parent, child, process, pid_of(forker))
    }

    /// A process is born into the memory of its parent: vfork(2), posix_spawn(3).
    pub fn vfork(&mut self, at_ns: u64, parent: u32, child: u32) -> &mut Self {
        const CLONE_VM: u64 = 0x100;
        self.next_flags = CLONE_VM;
        self.fork(at_ns, parent, child)
    }

    fn put_fork(
        &mut self,
        at_ns: u64,
        task: u32,
        child: u32,
        process: u32,
        parent_tgid: i32,
    ) -> &mut Self {
        let forker = self.tasks[&task].process;
        let mut fork = Fork::new_zeroed();
        fork.head = self.head(Kind::Fork, size_of::<Fork>(), task, at_ns);
        (fork.process, fork.tgid, fork.tid) = (forker, pid_of(forker), pid_of(task));
        (fork.child, fork.child_process) = (child, process);
        (fork.child_tgid, fork.child_tid) = (pid_of(process), pid_of(child));
        if let Some(pid) = self.next_pid.take() {
            (fork.child_tgid, fork.child_tid) = (pid, pid);
        }
        fork.parent_tgid = parent_tgid;
        fork.start_ns = fork.head.time_ns;
        fork.flags = std::mem::take(&mut self.next_flags);
        self.put(Stream::Lifecycle, fork.as_bytes(), &[]);
        self
    }

    /// The directory in which the command was launched.
    pub fn launched_in(&mut self, directory: &str) -> &mut Self {
        directory.clone_into(&mut self.header.cwd);
        self
    }

    /// The variables that the next execs have: NAME=value strings, none if it is empty.
    pub fn in_environment(&mut self, variables: &[&str]) -> &mut Self {
        self.header.env_names = vec!["PROCTRACE_STEP".into()];
        let id = self.environment.as_ref().map_or(1, |(id, _)| id + 1);
        let block = variables.iter().map(|variable| format!("{variable}\0")).collect();
        self.environment = Some((id, block));
        self
    }

    /// A process executes a program, having used this much user and system time.
    pub fn exec(&mut self, at_ns: u64, task: u32, path: &str, used: (u64, u64)) -> &mut Self {
        self.exec_with(at_ns, task, path, &[path], used)
    }

    /// The same, with these arguments.
    pub fn exec_with(
        &mut self,
        at_ns: u64,
        task: u32,
        path: &str,
        argv: &[&str],
        used: (u64, u64),
    ) -> &mut Self {
        let process = self.tasks[&task].process;
        let environment = self.environment.clone();
        if let Some((id, block)) = &environment {
            let mut env = EnvFixed::new_zeroed();
            let size = (size_of::<EnvFixed>() + block.len()).next_multiple_of(8);
            env.head = self.head(Kind::Env, size, task, at_ns);
            (env.env_id, env.bytes) = (*id, u32::try_from(block.len()).unwrap());
            self.put(Stream::Lifecycle, env.as_bytes(), block.as_bytes());
        }
        let argv: String = argv.iter().map(|argument| format!("{argument}\0")).collect();
        let size = (size_of::<ExecFixed>() + 2 * path.len() + argv.len()).next_multiple_of(8);
        let mut exec = ExecFixed::new_zeroed();
        exec.head = self.head(Kind::Exec, size, task, at_ns);
        (exec.process, exec.tgid, exec.tid) = (process, pid_of(process), pid_of(process));
        exec.argc = u32::try_from(argv.matches('\0').count()).unwrap();
        exec.argv_bytes = u32::try_from(argv.len()).unwrap();
        exec.argv_here = exec.argv_bytes;
        exec.env_id = environment.map_or(0, |(id, _)| id);
        exec.path_bytes = u16::try_from(path.len()).unwrap();
        exec.exe_bytes = exec.path_bytes;
        (exec.utime_ns, exec.stime_ns) = used;
        exec.run_ns = used.0 + used.1;
        let rest = [path, path, &argv].concat();
        self.put(Stream::Lifecycle, exec.as_bytes(), rest.as_bytes());
        self
    }

    /// A sample of a task's usage up to that time.
    pub fn sample(&mut self, at_ns: u64, task: u32, used: (u64, u64)) -> &mut Self {
        let process = self.tasks[&task].process;
        let mut sample = layout::Sample::new_zeroed();
        sample.head = self.head(Kind::Sample, size_of::<layout::Sample>(), task, at_ns);
        (sample.process, sample.tgid, sample.tid) = (process, pid_of(process), pid_of(task));
        sample.state = u16::from(b'R');
        (sample.utime_ns, sample.stime_ns) = used;
        sample.run_ns = used.0 + used.1;
        self.put(Stream::Samples, sample.as_bytes(), &[]);
        self
    }

    /// A pass over all tasks: numbers of tasks running, asleep and in uninterruptible sleep.
    pub fn tick(&mut self, at_ns: u64, states: [u32; 3]) -> &mut Self {
        let mut tick = Tick::new_zeroed();
        tick.head = self.head(Kind::Tick, size_of::<Tick>(), 0, at_ns);
        [tick.running, tick.sleeping, tick.uninterruptible] = states;
        tick.tasks = states.iter().sum();
        self.put(Stream::Samples, tick.as_bytes(), &[]);
        self
    }

    /// The header, for what `new` does not set.
    pub fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// A memory reading of a process: RSS, PSS and private memory.
    pub fn memory(
        &mut self,
        at_ns: u64,
        process: u32,
        (rss_bytes, pss_bytes, uss_bytes): (u64, u64, u64),
    ) -> &mut Self {
        self.header.memory_interval_ns.get_or_insert(1_000_000_000);
        let mut memory = layout::Memory::new_zeroed();
        memory.head = self.head(Kind::Memory, size_of::<layout::Memory>(), process, at_ns);
        (memory.process, memory.tgid) = (process, pid_of(process));
        (memory.rss_bytes, memory.pss_bytes, memory.uss_bytes) = (rss_bytes, pss_bytes, uss_bytes);
        memory.shared_bytes = rss_bytes - uss_bytes;
        self.put(Stream::Samples, memory.as_bytes(), &[]);
        self
    }

    /// A task is asleep from `since_ns` to `woken_ns` in a system call (x86-64), and gets a CPU at
    /// `until_ns`. `waker` is the task that wakes it; 0 is an interrupt.
    pub fn sleep(
        &mut self,
        task: u32,
        (since_ns, woken_ns, until_ns): (u64, u64, u64),
        syscall: i16,
        waker: u32,
    ) -> &mut Self {
        self.wait_with(task, (since_ns, woken_ns, until_ns), |wait| {
            (wait.syscall, wait.state, wait.waker) = (syscall, b'S'.into(), waker);
            wait.waker_tgid = if waker == 0 { 0 } else { pid_of(waker) };
            wait.bits = if waker == 0 { layout::WAIT_BY_INTERRUPT } else { layout::WAIT_BY_TASK };
        })
    }

    /// A task is ready to run, but waits for a CPU.
    pub fn wait_for_cpu(&mut self, task: u32, since_ns: u64, until_ns: u64) -> &mut Self {
        self.wait_with(task, (since_ns, since_ns, until_ns), |wait| wait.state = b'R'.into())
    }

    /// A time off the CPU; `more` can set the other fields.
    pub fn wait_with(
        &mut self,
        task: u32,
        (since_ns, woken_ns, until_ns): (u64, u64, u64),
        more: impl FnOnce(&mut layout::Wait),
    ) -> &mut Self {
        self.header.waits_min_ns.get_or_insert(MS);
        let mut wait = layout::Wait::new_zeroed();
        wait.head = self.head(Kind::Wait, size_of::<layout::Wait>(), task, until_ns);
        wait.process = self.tasks[&task].process;
        (wait.since_ns, wait.woken_ns) = (BEGIN_NS + since_ns, BEGIN_NS + woken_ns);
        (wait.syscall, wait.waker_syscall) = (-1, -1);
        more(&mut wait);
        self.put(Stream::Waits, wait.as_bytes(), &[]);
        self
    }

    /// A signal is sent to a process; sender 0 is a process outside, with this name.
    pub fn signal(
        &mut self,
        at_ns: u64,
        process: u32,
        signal: u16,
        sender: (u32, &str),
    ) -> &mut Self {
        self.signal_of_code(at_ns, process, signal, 0, sender)
    }

    /// A signal that the kernel sends on its own account (`SI_KERNEL`), in the context of another process.
    pub fn signal_by_kernel(
        &mut self,
        at_ns: u64,
        process: u32,
        signal: u16,
        context: (u32, &str),
    ) -> &mut Self {
        self.signal_of_code(at_ns, process, signal, 0x80, context)
    }

    fn signal_of_code(
        &mut self,
        at_ns: u64,
        process: u32,
        signal: u16,
        code: i32,
        (sender, name): (u32, &str),
    ) -> &mut Self {
        let mut sent = layout::Signal::new_zeroed();
        sent.head = self.head(Kind::Signal, size_of::<layout::Signal>(), process, at_ns);
        (sent.process, sent.tgid, sent.signal) = (process, pid_of(process), signal);
        sent.code = code;
        (sent.sender, sent.sender_tgid) = (sender, if sender == 0 { 1 } else { pid_of(sender) });
        sent.sender_comm[..name.len()].copy_from_slice(name.as_bytes());
        self.put(Stream::Lifecycle, sent.as_bytes(), &[]);
        self
    }

    /// A task exits, having used this much in total.
    pub fn exit(&mut self, at_ns: u64, task: u32, used: (u64, u64)) -> &mut Self {
        self.exit_with(at_ns, task, used, |_| ())
    }

    /// The same, with further changes to the record. A live parent waits for its child; an orphan
    /// belongs to init.
    pub fn exit_with(
        &mut self,
        at_ns: u64,
        task: u32,
        used: (u64, u64),
        more: impl FnOnce(&mut Exit),
    ) -> &mut Self {
        let known = self.tasks[&task];
        let waited = self.tasks[&known.process].waited;
        let mut exit = Exit::new_zeroed();
        exit.head = self.head(Kind::Exit, size_of::<Exit>(), task, at_ns);
        (exit.process, exit.tgid, exit.tid) = (known.process, pid_of(known.process), pid_of(task));
        let last = !self
            .tasks
            .iter()
            .any(|(other, known)| *other != task && known.process == exit.process && !known.ended);
        if last {
            exit.bits |= EXIT_PROCESS;
        }
        (exit.waited_utime_ns, exit.waited_stime_ns) = waited;
        (exit.utime_ns, exit.stime_ns) = used;
        exit.run_ns = used.0 + used.1;
        exit.run_at_exit_ns = exit.run_ns;
        let parent = self.tasks.get(&known.parent).filter(|parent| !parent.ended);
        exit.parent_tgid = if parent.is_some() { pid_of(known.parent) } else { 1 };
        more(&mut exit);
        if let Some(parent) = self.tasks.get_mut(&known.parent).filter(|_| last)
            && exit.parent_tgid == pid_of(known.parent)
        {
            parent.waited.0 += exit.utime_ns + exit.waited_utime_ns;
            parent.waited.1 += exit.stime_ns + exit.waited_stime_ns;
        }
        self.tasks.get_mut(&task).unwrap().ended = true;
        self.put(Stream::Lifecycle, exit.as_bytes(), &[]);
        self
    }

    /// The recording, with wait4(2)'s values for the command if it was waited for: time of exit,
    /// user and system time.
    pub fn load(&self, waited: Option<(u64, u64, u64)>) -> Recording {
        self.load_by(&Rules::built_in(), waited)
    }

    /// The same by other rules.
    ///
    /// # Panics
    /// As there.
    pub fn load_by(&self, rules: &Rules, waited: Option<(u64, u64, u64)>) -> Recording {
        let file = self.file(waited);
        let recording = Recording::load(file.path(), rules).unwrap();
        assert_eq!(recording.undecodable(), 0);
        assert!(recording.damage().is_empty());
        recording
    }

    /// The same as a trace, for what reads it again.
    pub fn file(&self, waited: Option<(u64, u64, u64)>) -> tempfile::NamedTempFile {
        let payload = waited.map(|(exited_ns, user_ns, system_ns)| PayloadUsage {
            outcome: Outcome::Code(0),
            exited_ns: BEGIN_NS + exited_ns,
            user_ns,
            system_ns,
            maxrss_bytes: 0,
        });
        let trailer = Trailer {
            ended_ns: BEGIN_NS + self.last_ns,
            ended: Ended::TreeExited,
            payload,
            tasks: self.tasks.len() as u64,
            records: Default::default(),
            losses: Vec::new(),
            cgroup: None,
            machine: None,
            recorder: RecorderUsage::default(),
            programs: Vec::new(),
            job: std::collections::BTreeMap::new(),
            held_up: None,
            of_node: None,
        };
        let mut writer = Writer::new(Vec::new(), &self.header).unwrap();
        for (stream, (bytes, records)) in Stream::ALL.into_iter().zip(&self.streams) {
            let last_ns = BEGIN_NS + self.last_ns;
            let records = u32::try_from(*records).unwrap();
            writer.append(stream, records, BEGIN_NS, last_ns, bytes).unwrap();
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), writer.finish(&trailer).unwrap().0).unwrap();
        file
    }
}

/// The value of a column in the row whose column `key` contains `name`.
pub fn real(table: &proctrace_findings::Table, key: &str, name: &str, column: &str) -> Option<f64> {
    use proctrace_findings::Cell;
    let keys = &table.named(key).unwrap().values;
    let row = (0..table.height())
        .find(|row| keys.get(*row) == Cell::Text(name))
        .unwrap_or_else(|| panic!("no row {name} in {table:#?}"));
    match table.named(column).unwrap().values.get(row) {
        Cell::Whole(number) => Some(number as f64),
        Cell::Real(number) => Some(number),
        _ => None,
    }
}

/// The command runs for 2 s; a detached child uses 3 s of CPU time in 4 s.
pub fn daemon() -> Recording {
    let mut scene = Scene::new(4, 100 * MS);
    scene.exec(0, 1, "/opt/job", (0, 0));
    scene.fork(10 * MS, 1, 2).fork(20 * MS, 2, 3).exit(30 * MS, 2, (0, 0));
    scene.exit(2 * S, 1, (MS, MS)).exit(4 * S, 3, (3 * S, 0));
    scene.load(Some((2 * S, MS, MS)))
}
