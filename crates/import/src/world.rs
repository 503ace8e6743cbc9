//! The tasks of a log: who is alive, and the records of what each does.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use proctrace_wire::layout::{
    ATTACH_ROOT, Attach, EXIT_PROCESS, ExecFixed, Exit, Fork, MOVED_EXCHANGED, MOVED_FROM_HERE,
    MOVED_FROM_IS_RELATIVE, MOVED_PATH_IS_RELATIVE, Rename,
};
use proctrace_wire::{Kind, Stream};
use zerocopy::FromZeros;

use crate::call::{Asked, Executed, Forked, Given, Renamed, Role};
use crate::emit::{Emitter, Environment, head};
use crate::kept::{block_of, comm_of, whole};
use crate::names::{AT_FDCWD, CLONE_PARENT, CLONE_THREAD};
use crate::text::{Quoted, Strings, unescape};
use crate::totals::{Root, Totals};

type FastMap<K, V> = HashMap<K, V, RandomState>;

/// The parent of those whose parent has ended.
const INIT: i32 = 1;

/// A call of which only the beginning is known.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) role: Role,
    /// Empty where the arguments do not matter.
    pub(crate) text: Vec<u8>,
}

/// A live task.
#[derive(Debug)]
pub(crate) struct LoggedTask {
    pub(crate) serial: u32,
    process: u32,
    tid: i32,
    start_ns: u64,
    comm: [u8; 16],
    opens: u32,
    lookups_failed: u32,
    execs_failed: u32,
    pub(crate) begun: Option<Begun>,
    /// The wait(2) status with which it has said that it ends.
    pub(crate) ending: Option<u32>,
    /// It took over the pid of its process, as only a thread does whose exec has succeeded.
    pub(crate) took_over: bool,
    /// Its birth is not in the log so far.
    pub(crate) unborn: bool,
}

/// A process with at least one live task.
#[derive(Debug)]
struct Process {
    tgid: i32,
    parent: u32,
    alive: u32,
    /// None if it is not known.
    cwd: Option<Vec<u8>>,
    /// True if it has been in another directory before.
    has_moved: bool,
}

/// All live tasks, and where their records go.
pub(crate) struct World<'a> {
    pub(crate) emit: Emitter<'a>,
    pub(crate) tasks: FastMap<i32, LoggedTask>,
    processes: FastMap<u32, Process>,
    serials: u32,
    pub(crate) totals: Totals,
    pub(crate) root: Option<Root>,
}

impl<'a> World<'a> {
    pub(crate) fn new(emit: Emitter<'a>) -> Self {
        Self {
            emit,
            tasks: FastMap::default(),
            processes: FastMap::default(),
            serials: 0,
            totals: Totals::default(),
            root: None,
        }
    }

    fn next_serial(&mut self) -> u32 {
        self.serials = self.serials.saturating_add(1);
        self.serials
    }

    fn add(&mut self, serial: u32, process: u32, tid: i32, time_ns: u64, comm: [u8; 16]) {
        let task = LoggedTask {
            serial,
            process,
            tid,
            start_ns: time_ns,
            comm,
            opens: 0,
            lookups_failed: 0,
            execs_failed: 0,
            begun: None,
            ending: None,
            took_over: false,
            unborn: false,
        };
        self.tasks.insert(tid, task);
        if serial == process {
            self.totals.processes += 1;
        } else {
            self.totals.threads += 1;
        }
    }

    /// A task whose birth the log does not have.
    pub(crate) fn attach(&mut self, pid: i32, time_ns: u64, is_launched: bool) {
        self.make_room(pid, time_ns);
        let serial = self.next_serial();
        self.add(serial, serial, pid, time_ns, [0; 16]);
        let process = Process { tgid: pid, parent: 0, alive: 1, cwd: None, has_moved: false };
        self.processes.insert(serial, process);
        if let Some(task) = self.tasks.get_mut(&pid).filter(|_| !is_launched) {
            task.unborn = true;
        }
        self.totals.unborn += u64::from(self.serials > 1);
        let is_root = is_launched && self.root.is_none();
        if is_root {
            self.root = Some(Root { serial, ..Root::default() });
        }
        let mut attach = Attach::new_zeroed();
        attach.head = head(Kind::Attach, serial, time_ns);
        attach.process = serial;
        (attach.tgid, attach.tid, attach.tgid_ns, attach.tid_ns) = (pid, pid, pid, pid);
        attach.bits = if is_root { ATTACH_ROOT } else { 0 };
        attach.start_ns = time_ns;
        self.emit.put(Stream::Lifecycle, attach.head, &attach, &[]);
    }

    /// A thread of a process to which strace attached, as it says.
    pub(crate) fn attach_thread(&mut self, tid: i32, leader: i32, time_ns: u64) {
        self.make_room(tid, time_ns);
        let Some(process) = self.tasks.get(&leader).map(|task| task.process) else { return };
        let Some(known) = self.processes.get_mut(&process) else { return };
        known.alive = known.alive.saturating_add(1);
        let tgid = known.tgid;
        let serial = self.next_serial();
        self.add(serial, process, tid, time_ns, [0; 16]);
        let mut attach = Attach::new_zeroed();
        attach.head = head(Kind::Attach, serial, time_ns);
        attach.process = process;
        (attach.tgid, attach.tid, attach.tgid_ns, attach.tid_ns) = (tgid, tid, tgid, tid);
        attach.start_ns = time_ns;
        self.emit.put(Stream::Lifecycle, attach.head, &attach, &[]);
    }

    /// A task with this pid that should be alive is not any more: its pid was given to another.
    fn make_room(&mut self, pid: i32, time_ns: u64) {
        match self.tasks.get(&pid).map(|task| task.ending) {
            Some(Some(status)) => self.end(pid, time_ns, status),
            Some(None) => {
                self.totals.unended += 1;
                if let Some(task) = self.tasks.remove(&pid) {
                    self.leave(task.process);
                }
            }
            None => {}
        }
    }

    /// Counts a task out of its process; returns whether it was the last.
    fn leave(&mut self, process: u32) -> bool {
        let Some(known) = self.processes.get_mut(&process) else { return true };
        known.alive = known.alive.saturating_sub(1);
        let is_last = known.alive == 0;
        if is_last {
            self.processes.remove(&process);
        }
        is_last
    }

    /// `forker` has created a task.
    pub(crate) fn fork(&mut self, forker: i32, time_ns: u64, forked: &Forked) {
        if forker == forked.child {
            return;
        }
        self.make_room(forked.child, time_ns);
        let Some(by) = self.tasks.get(&forker) else { return };
        let (serial, process, comm) = (by.serial, by.process, by.comm);
        let Some(of) = self.processes.get(&process) else { return };
        let (tgid, grandparent, cwd) = (of.tgid, of.parent, of.cwd.clone());
        let child = self.next_serial();
        let is_thread = forked.flags & CLONE_THREAD != 0;
        let child_process = if is_thread { process } else { child };
        let child_tgid = if is_thread { tgid } else { forked.child };
        let parent = match forked.flags & (CLONE_PARENT | CLONE_THREAD) {
            0 => process,
            _ => grandparent,
        };
        let parent_tgid = self.processes.get(&parent).map_or(INIT, |parent| parent.tgid);
        match self.processes.get_mut(&process) {
            Some(process) if is_thread => process.alive = process.alive.saturating_add(1),
            _ => {
                let born = Process { tgid: child_tgid, parent, alive: 1, cwd, has_moved: true };
                self.processes.insert(child, born);
            }
        }
        self.add(child, child_process, forked.child, time_ns, comm);
        let fork = Fork {
            head: head(Kind::Fork, serial, time_ns),
            process,
            tgid,
            tid: forker,
            child,
            child_process,
            child_tgid,
            child_tid: forked.child,
            parent_tgid,
            child_tgid_ns: if is_thread { child_tgid } else { forked.child_ns },
            child_tid_ns: forked.child_ns,
            call: forked.call as u16,
            exit_signal: forked.exit_signal,
            group: 0,
            flags: forked.flags,
            start_ns: time_ns,
            comm,
        };
        self.emit.put(Stream::Lifecycle, fork.head, &fork, &[]);
    }

    /// A successful exec.
    pub(crate) fn exec(&mut self, pid: i32, time_ns: u64, executed: &Executed) {
        self.is_in(pid, &executed.asked);
        let env_id = self.environment(time_ns, executed.environment.as_ref());
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        task.took_over = false;
        let path = executed.asked.path.as_deref().unwrap_or_default();
        let cwd = process.cwd.clone().unwrap_or_default();
        let (argv, bits) = block_of(executed.argv.as_ref());
        task.comm = comm_of(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
        let mut fixed = ExecFixed::new_zeroed();
        fixed.head = head(Kind::Exec, task.serial, time_ns);
        (fixed.process, fixed.tgid, fixed.tid) = (task.process, process.tgid, pid);
        fixed.old_tid = task.tid;
        task.tid = pid;
        (fixed.bits, fixed.env_id, fixed.comm) = (bits, env_id, task.comm);
        let strings = executed.argv.as_ref().map_or(0, |argv| argv.strings.len());
        fixed.argc = u32::try_from(strings).unwrap_or(u32::MAX);
        let exe = whole(path, executed.asked.directory.as_deref().unwrap_or(&cwd));
        self.emit.exec(fixed, [path, &exe, &cwd], &argv);
        self.totals.execs += 1;
        self.totals.argv_cut += u64::from(bits != 0);
        self.totals.without_arguments += u64::from(executed.argv.is_none());
        let root = self.root.as_mut().filter(|root| root.serial == fixed.head.task);
        if let Some(root) = root.filter(|root| root.argv.is_empty()) {
            let strings = executed.argv.iter().flat_map(|argv| &argv.strings);
            // As strace shows that there was more.
            let shown = |string: &Quoted| match string.is_cut {
                true => [&string.bytes[..], b"..."].concat(),
                false => string.bytes.clone(),
            };
            root.argv = strings.map(shown).collect();
        }
    }

    fn environment(&mut self, time_ns: u64, strings: Option<&Strings>) -> u64 {
        let Some(strings) = strings else {
            self.totals.without_environment += 1;
            return 0;
        };
        self.totals.with_environment += 1;
        let mut environment = Environment { block: Vec::new(), is_cut: strings.is_cut };
        for variable in &strings.strings {
            let mut parts = variable.bytes.splitn(2, |byte| *byte == b'=');
            let name = parts.next().unwrap_or_default();
            if !proctrace_trace::ENV_NAMES.iter().any(|known| known.as_bytes() == name) {
                continue;
            }
            // Half a search path would be searched differently.
            if variable.is_cut {
                environment.is_cut = true;
                continue;
            }
            environment.block.extend_from_slice(&variable.bytes);
            environment.block.push(0);
        }
        self.totals.environments_cut += u64::from(environment.is_cut);
        self.emit.environment(time_ns, &environment)
    }

    pub(crate) fn exec_failed(&mut self, pid: i32, time_ns: u64, asked: Asked, error: u16) {
        let asked = self.found(pid, asked);
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.execs_failed = task.execs_failed.saturating_add(1);
        self.emit.exec_failed(task.serial, time_ns, &asked, error);
    }

    pub(crate) fn lookup_failed(&mut self, pid: i32, time_ns: u64, asked: Asked, error: u16) {
        let asked = self.found(pid, asked);
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.lookups_failed = task.lookups_failed.saturating_add(1);
        self.emit.lookup(task.serial, time_ns, &asked, error);
    }

    /// The directory in which a process is, as `-y` shows it beside AT_FDCWD.
    fn is_in(&mut self, pid: i32, asked: &Asked) {
        if asked.dirfd == AT_FDCWD && asked.directory.is_some() {
            self.stays_in(pid, asked.directory.as_deref());
        }
    }

    /// A path together with the directory that `-y` shows.
    fn found(&mut self, pid: i32, mut asked: Asked) -> Asked {
        self.is_in(pid, &asked);
        if let (Some(directory), Some(path)) = (&asked.directory, &asked.path)
            && !path.is_empty()
        {
            asked.path = Some(whole(path, directory));
            asked.dirfd = AT_FDCWD;
        }
        asked
    }

    /// A successful open; `file` is the file's own path, if the log has it.
    pub(crate) fn opened(&mut self, pid: i32, time_ns: u64, asked: Asked, file: Option<&[u8]>) {
        self.is_in(pid, &asked);
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.opens = task.opens.saturating_add(1);
        let cwd = self.processes.get(&task.process).and_then(|process| process.cwd.as_deref());
        let mut asked = asked;
        match file {
            Some(file) => asked.path = Some(unescape(file)),
            None => {
                self.totals.opens_as_given += 1;
                let cwd = cwd.filter(|_| asked.dirfd == AT_FDCWD);
                let from = asked.directory.as_deref().or(cwd).unwrap_or_default();
                asked.path = asked.path.map(|path| whole(&path, from));
            }
        }
        asked.dirfd = AT_FDCWD;
        self.emit.lookup(task.serial, time_ns, &asked, 0);
    }

    /// A rename that succeeded.
    pub(crate) fn moved(&mut self, pid: i32, time_ns: u64, renamed: &Renamed) {
        let Some(task) = self.tasks.get(&pid) else { return };
        let cwd = self.processes.get(&task.process).and_then(|process| process.cwd.as_deref());
        let mut bits = if renamed.is_exchange { MOVED_EXCHANGED } else { 0 };
        let mut behind = |(dirfd, directory, path): &Given, is_relative: u32| {
            let path = path.as_deref().filter(|path| !path.is_empty())?;
            if path.starts_with(b"/") {
                return Some(path.to_vec());
            }
            bits |= is_relative;
            let cwd = cwd.filter(|_| *dirfd == AT_FDCWD);
            let from = directory.as_deref().or(cwd).filter(|from| from.starts_with(b"/"))?;
            Some([from, MOVED_FROM_HERE, path].concat())
        };
        let from = behind(&renamed.from, MOVED_FROM_IS_RELATIVE);
        let paths = from.zip(behind(&renamed.to, MOVED_PATH_IS_RELATIVE));
        self.emit.moved(task.serial, time_ns, paths, bits);
    }

    /// The process has gone to another directory; None: it is not known which.
    pub(crate) fn directory(&mut self, pid: i32, path: Option<&[u8]>) {
        let Some(task) = self.tasks.get(&pid) else { return };
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        process.cwd = path.and_then(|path| {
            let path = whole(path, process.cwd.as_deref().unwrap_or_default());
            path.starts_with(b"/").then_some(path)
        });
        process.has_moved = true;
    }

    /// A process is in this directory, and has been since it went to another one.
    pub(crate) fn stays_in(&mut self, pid: i32, path: Option<&[u8]>) {
        let Some(path) = path.filter(|path| path.starts_with(b"/")) else { return };
        let Some(task) = self.tasks.get(&pid) else { return };
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        let root = self.root.as_mut().filter(|root| root.serial == task.process);
        if let Some(root) = root.filter(|root| root.cwd.is_none() && !process.has_moved) {
            root.cwd = Some(path.to_vec());
        }
        if process.cwd.as_deref() != Some(path) {
            process.cwd = Some(path.to_vec());
        }
    }

    pub(crate) fn rename(&mut self, pid: i32, time_ns: u64, name: &[u8]) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.comm = comm_of(name);
        let tgid = self.processes.get(&task.process).map_or(pid, |process| process.tgid);
        let head = head(Kind::Rename, task.serial, time_ns);
        let (process, comm) = (task.process, task.comm);
        let rename = Rename { head, process, tgid, tid: pid, pad: 0, comm };
        self.emit.put(Stream::Lifecycle, head, &rename, &[]);
    }

    /// A task ended.
    pub(crate) fn end(&mut self, pid: i32, time_ns: u64, status: u32) {
        let Some(task) = self.tasks.remove(&pid) else { return };
        let process = self.processes.get(&task.process);
        let tgid = process.map_or(pid, |process| process.tgid);
        let parent = process.and_then(|process| self.processes.get(&process.parent));
        let parent_tgid = parent.map_or(INIT, |parent| parent.tgid);
        let is_last = self.leave(task.process);
        let mut exit = Exit::new_zeroed();
        exit.head = head(Kind::Exit, task.serial, time_ns);
        (exit.process, exit.tgid, exit.tid) = (task.process, tgid, pid);
        (exit.status, exit.parent_tgid) = (status, parent_tgid);
        exit.bits = if is_last { EXIT_PROCESS } else { 0 };
        (exit.opens, exit.lookups_failed) = (task.opens, task.lookups_failed);
        (exit.execs_failed, exit.start_ns, exit.comm) =
            (task.execs_failed, task.start_ns, task.comm);
        self.emit.put(Stream::Lifecycle, exit.head, &exit, &[]);
        if let Some(root) = self.root.as_mut().filter(|root| root.serial == task.process)
            && is_last
        {
            (root.status, root.ended_ns) = (Some(status), time_ns);
        }
    }

    /// The thread `by` called exec: the task with the pid of the process has ended, and the thread gets
    /// its pid.
    pub(crate) fn supersede(&mut self, pid: i32, by: i32, time_ns: u64) {
        if pid == by || !self.tasks.contains_key(&by) {
            return;
        }
        self.end(pid, time_ns, 0);
        if let Some(mut thread) = self.tasks.remove(&by) {
            thread.took_over = true;
            // Its thread id stays the old one until the exec is recorded.
            self.tasks.insert(pid, thread);
        }
    }

    /// Tasks that ended as the log says, although it does not say when: without `+++` lines.
    pub(crate) fn end_those_that_said_so(&mut self, time_ns: u64) {
        let mut ending: Vec<(u32, i32, u32)> = self
            .tasks
            .iter()
            .filter_map(|(pid, task)| Some((task.serial, *pid, task.ending?)))
            .collect();
        ending.sort_unstable();
        for (_, pid, status) in ending {
            self.end(pid, time_ns, status);
        }
    }
}
