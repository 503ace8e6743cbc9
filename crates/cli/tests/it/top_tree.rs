//! The process tree of `top` is that of `report`: on each committed trace, and on random lives of processes, of which it is known
//! who is born of whom by the rules of the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proctrace_analysis::{Recording, Rules};
use proctrace_live::{ByFile, Process, View};
use proctrace_trace::{Follower, Reader, Trailer, Writer};
use proctrace_wire::layout::{
    ATTACH_ROOT, ATTACH_ZOMBIE, Attach, EXIT_PROCESS, ExecFixed, Exit, Fork, Head,
};
use proctrace_wire::{IntoBytes, Kind, Stream};
use proptest::prelude::*;
use zerocopy::{FromZeros, Immutable};

fn trace(name: &str) -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    Path::new(&manifest).join("../../fixtures/traces").join(name)
}

/// Facts that both say of a process.
#[derive(Debug, Clone, PartialEq)]
struct Life {
    pid: i32,
    /// The serial of its parent when it began.
    born_of: Option<u32>,
    /// Its nearest ancestor that is alive, if it is itself.
    below: Option<u32>,
    threads: u64,
    alive_tasks: u32,
    execs: u64,
    end: Option<(u64, Option<u32>)>,
}

impl Life {
    fn shown(process: &Process) -> Self {
        Self {
            pid: process.pid,
            born_of: process.born_of,
            below: process.parent.filter(|_| process.end.is_none()),
            threads: process.threads_started,
            alive_tasks: process.tasks,
            execs: process.execs,
            end: process.end.map(|(end_ns, status)| (end_ns, Some(status))),
        }
    }
}

type Lives = BTreeMap<u32, Life>;

/// The lives that `top` has shown, and the view at the end.
fn shown(path: &Path, serials: &[u32]) -> (Lives, View) {
    let mut follower = Follower::open(path).unwrap();
    let mut view = View::new(follower.header().clone(), Box::new(ByFile));
    follower.refresh().unwrap();
    let mut lives = Lives::new();
    while let Some((info, bytes)) = follower.next_block(View::wants).unwrap() {
        view.take(&info, bytes);
        // It forgets what has ended.
        for serial in serials {
            let process = view.process(*serial);
            process.map(|process| lives.insert(*serial, Life::shown(process)));
        }
    }
    (lives, view)
}

/// The lives that a report has.
fn reported(recording: &Recording) -> Lives {
    let all = recording.processes();
    let of = |process: &proctrace_analysis::Process| {
        let end_ns = process.ended_ns();
        let above = std::iter::successors(process.parent(), |at| all[*at].parent());
        let mut alive_above = above.filter(|at| all[*at].ended_ns().is_none());
        let tasks = process.tasks().map(|task| &recording.tasks()[task]);
        let alive = tasks.clone().filter(|task| task.ended_ns().is_none() && !task.zombie);
        Life {
            pid: process.pid,
            born_of: process.parent().map(|at| all[at].serial),
            below: alive_above.next().filter(|_| end_ns.is_none()).map(|at| all[at].serial),
            threads: tasks.len() as u64 - 1,
            alive_tasks: u32::try_from(alive.count()).unwrap(),
            execs: u64::from(process.execs),
            end: end_ns.map(|end_ns| (end_ns, process.status())),
        }
    };
    all.iter().map(|process| (process.serial, of(process))).collect()
}

/// Compares both, and returns the lives.
fn compare(path: &Path) -> Lives {
    let recording = Recording::load(path, &Rules::built_in()).unwrap();
    let reported = reported(&recording);
    let serials: Vec<u32> = reported.keys().copied().collect();
    let (shown, view) = shown(path, &serials);
    for (serial, life) in &reported {
        let shown = shown.get(serial);
        assert_eq!(shown, Some(life), "{} of {}", serial, path.display());
    }
    let alive = |lives: &Lives| {
        let alive = lives.iter().filter(|(_, life)| life.end.is_none());
        alive.map(|(serial, _)| *serial).collect::<BTreeSet<u32>>()
    };
    let shown: BTreeSet<u32> = view.processes().map(|process| process.serial).collect();
    assert_eq!(shown, alive(&reported), "{}", path.display());
    let roots: BTreeSet<u32> = view.roots().collect();
    let is_root = |serial: &u32| reported[serial].below.is_none();
    assert_eq!(roots, shown.into_iter().filter(is_root).collect(), "{}", path.display());
    assert_eq!(view.totals.processes, reported.len() as u64, "{}", path.display());
    reported
}

#[test]
fn the_tree_of_each_committed_trace_is_that_of_the_report() {
    let files = std::fs::read_dir(trace("")).unwrap().map(|entry| entry.unwrap().path());
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "ptrace");
    let compared: Vec<usize> = files.filter(is_trace).map(|path| compare(&path).len()).collect();
    assert!(compared.len() >= 10 && compared.iter().sum::<usize>() > 1000, "{compared:?}");
}

/// The pids of a machine that uses them again soon.
const PIDS: std::ops::Range<i32> = 1000..1050;

/// Next event, of one of the tasks that are alive.
#[derive(Debug, Clone, Copy)]
enum Step {
    Fork,
    /// A fork with CLONE_PARENT.
    Sibling,
    Thread,
    Exec,
    Exit,
    ExitGroup,
}

#[derive(Debug, Clone)]
struct TaskState {
    serial: u32,
    process: u32,
    tid: i32,
}

#[derive(Debug, Clone)]
struct ProcessState {
    pid: i32,
    /// The kernel's real_parent; `None` for init, which is not recorded.
    parent: Option<u32>,
    life: Life,
}

/// A kernel, as far as the process tree goes, and the records of what happens in it.
#[derive(Default)]
struct Kernel {
    now_ns: u64,
    serials: u32,
    next_pid: i32,
    tasks: Vec<TaskState>,
    alive: BTreeMap<u32, ProcessState>,
    ended: Lives,
    bytes: Vec<u8>,
    records: u32,
}

impl Kernel {
    /// The command, and a process beside it whose leader has ended.
    fn new() -> Self {
        let mut kernel = Self { now_ns: 1, ..Self::default() };
        let root = kernel.born(None, None);
        kernel.attach(root, root, ATTACH_ROOT);
        let other = kernel.born(Some(root), None);
        kernel.attach(other, other, ATTACH_ZOMBIE);
        kernel.tasks.retain(|task| task.serial != other);
        let thread = kernel.born(None, Some(other));
        kernel.attach(thread, other, 0);
        kernel
    }

    fn head(&mut self, kind: Kind, size: usize, task: u32) -> Head {
        self.now_ns += 1000;
        let size = u16::try_from(size).unwrap();
        Head { kind: kind as u16, size, task, time_ns: self.now_ns }
    }

    fn put<T: IntoBytes + Immutable>(&mut self, record: &T) {
        self.bytes.extend_from_slice(record.as_bytes());
        self.records += 1;
    }

    fn free_pid(&mut self) -> i32 {
        let in_use: BTreeSet<i32> = self.tasks.iter().map(|task| task.tid).collect();
        let leaders: BTreeSet<i32> = self.alive.values().map(|process| process.pid).collect();
        let is_free = |pid: &i32| !in_use.contains(pid) && !leaders.contains(pid);
        // Those after the last first, as in alloc_pid().
        let after = (PIDS.start + self.next_pid % PIDS.len() as i32..PIDS.end).chain(PIDS);
        let pid = after.into_iter().find(is_free).unwrap_or(PIDS.end + self.serials as i32);
        self.next_pid = pid + 1 - PIDS.start;
        pid
    }

    fn pid_of(&self, process: Option<u32>) -> i32 {
        process.map_or(1, |process| self.alive[&process].pid)
    }

    /// A new task, in a process of its own below `parent`, or in the process `of`.
    fn born(&mut self, parent: Option<u32>, of: Option<u32>) -> u32 {
        self.serials += 1;
        let (serial, tid) = (self.serials, self.free_pid());
        self.tasks.push(TaskState { serial, process: of.unwrap_or(serial), tid });
        match of {
            Some(process) => self.alive.get_mut(&process).unwrap().life.threads += 1,
            None => {
                let life = Life {
                    pid: tid,
                    born_of: parent,
                    below: None,
                    threads: 0,
                    alive_tasks: 0,
                    execs: 0,
                    end: None,
                };
                self.alive.insert(serial, ProcessState { pid: tid, parent, life });
            }
        }
        serial
    }

    fn task(&self, serial: u32) -> TaskState {
        self.tasks.iter().find(|task| task.serial == serial).unwrap().clone()
    }

    fn attach(&mut self, task: u32, process: u32, bits: u32) {
        let mut attach = Attach::new_zeroed();
        attach.head = self.head(Kind::Attach, size_of::<Attach>(), task);
        (attach.process, attach.bits) = (process, bits);
        (attach.tgid, attach.tid) = (self.alive[&process].pid, self.task(task).tid);
        attach.parent_tgid = self.pid_of(self.alive[&process].parent);
        self.put(&attach);
    }

    fn step(&mut self, step: Step, nth: usize) {
        if self.tasks.is_empty() {
            return;
        }
        let task = self.tasks[nth % self.tasks.len()].clone();
        match step {
            Step::Fork => self.fork(&task, Some(task.process), None),
            Step::Sibling => self.fork(&task, self.alive[&task.process].parent, None),
            Step::Thread => {
                let parent = self.alive[&task.process].parent;
                self.fork(&task, parent, Some(task.process));
            }
            Step::Exec => self.exec(&task),
            Step::Exit => self.exit(task.serial),
            Step::ExitGroup => {
                let group = |other: &&TaskState| other.process == task.process;
                let group: Vec<u32> =
                    self.tasks.iter().filter(group).map(|other| other.serial).collect();
                group.into_iter().rev().for_each(|task| self.exit(task));
            }
        }
    }

    fn fork(&mut self, task: &TaskState, parent: Option<u32>, of: Option<u32>) {
        let child = self.born(parent, of);
        let mut fork = Fork::new_zeroed();
        fork.head = self.head(Kind::Fork, size_of::<Fork>(), task.serial);
        (fork.process, fork.tid) = (task.process, task.tid);
        (fork.tgid, fork.parent_tgid) = (self.alive[&task.process].pid, self.pid_of(parent));
        (fork.child, fork.child_process) = (child, of.unwrap_or(child));
        fork.child_tgid = self.alive[&fork.child_process].pid;
        (fork.child_tid, fork.start_ns) = (self.task(child).tid, self.now_ns);
        self.put(&fork);
    }

    /// All other threads end, and the one that calls exec becomes the leader, under its own serial.
    fn exec(&mut self, task: &TaskState) {
        let others =
            |other: &&TaskState| other.process == task.process && other.serial != task.serial;
        let others: Vec<u32> = self.tasks.iter().filter(others).map(|other| other.serial).collect();
        others.into_iter().for_each(|other| self.exit(other));
        let process = self.alive.get_mut(&task.process).unwrap();
        process.life.execs += 1;
        let pid = process.pid;
        self.tasks.iter_mut().find(|other| other.serial == task.serial).unwrap().tid = pid;
        let mut exec = ExecFixed::new_zeroed();
        exec.head = self.head(Kind::Exec, size_of::<ExecFixed>(), task.serial);
        (exec.process, exec.tgid, exec.tid, exec.old_tid) = (task.process, pid, pid, task.tid);
        self.put(&exec);
    }

    fn exit(&mut self, serial: u32) {
        let task = self.task(serial);
        self.tasks.retain(|other| other.serial != serial);
        let is_last = self.tasks.iter().all(|other| other.process != task.process);
        let mut exit = Exit::new_zeroed();
        exit.head = self.head(Kind::Exit, size_of::<Exit>(), serial);
        (exit.process, exit.tid) = (task.process, task.tid);
        exit.tgid = self.alive[&task.process].pid;
        exit.parent_tgid = self.pid_of(self.alive[&task.process].parent);
        exit.status = (serial % 200) << 8;
        exit.bits = if is_last { EXIT_PROCESS } else { 0 };
        self.put(&exit);
        if is_last {
            let mut process = self.alive.remove(&task.process).unwrap();
            process.life.end = Some((self.now_ns, Some(exit.status)));
            self.ended.insert(task.process, process.life);
            // A third of the processes are subreapers.
            let reapers = std::iter::successors(process.parent, |above| self.alive[above].parent);
            let reaper = reapers.into_iter().find(|above| above % 3 == 0);
            let orphans = self.alive.values_mut();
            let orphans = orphans.filter(|child| child.parent == Some(task.process));
            orphans.for_each(|child| child.parent = reaper);
        }
    }

    /// Writes what happened as a trace.
    fn trace(&self, path: &Path) {
        let mut reader = Reader::open(trace("tour-6.ptrace")).unwrap();
        while reader.next_block().is_some() {}
        let mut header = reader.header().clone();
        (header.started_ns, header.command) = (0, vec!["job".to_owned()]);
        let trailer = reader.trailer().unwrap().clone();
        let ended_ns = self.now_ns;
        let trailer = Trailer { ended_ns, payload: None, tasks: self.serials.into(), ..trailer };
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        writer.append(Stream::Lifecycle, self.records, 1, ended_ns, &self.bytes).unwrap();
        std::fs::write(path, writer.finish(&trailer).unwrap().0).unwrap();
    }

    /// The lives that there were; who hangs below whom is left to both to say.
    fn lives(&self) -> Lives {
        let alive = self.alive.iter().map(|(serial, process)| {
            let tasks = self.tasks.iter().filter(|task| task.process == *serial);
            let alive_tasks = u32::try_from(tasks.count()).unwrap();
            (*serial, Life { alive_tasks, ..process.life.clone() })
        });
        alive.chain(self.ended.clone()).collect()
    }
}

fn steps() -> impl Strategy<Value = Vec<(Step, usize)>> {
    let step = prop_oneof![
        3 => Just(Step::Fork),
        3 => Just(Step::Sibling),
        2 => Just(Step::Thread),
        2 => Just(Step::Exec),
        3 => Just(Step::Exit),
        1 => Just(Step::ExitGroup),
    ];
    proptest::collection::vec((step, any::<usize>()), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_of_random_lives_is_that_of_the_kernel(steps in steps()) {
        let mut kernel = Kernel::new();
        steps.into_iter().for_each(|(step, nth)| kernel.step(step, nth));
        let file = tempfile::NamedTempFile::new().unwrap();
        kernel.trace(file.path());
        let mut lives = compare(file.path());
        lives.values_mut().for_each(|life| life.below = None);
        prop_assert_eq!(lives, kernel.lives());
    }
}
