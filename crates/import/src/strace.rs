//! Conversion of the lines of strace to records: calls that end on a later line, tasks that are seen
//! before the call that created them returns, times.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use proctrace_trace::{Header, Trailer};
use proctrace_wire::layout::{LOSS_ANY_CPU, Loss};
use proctrace_wire::{Call, Family, Kind, Stream};

use crate::body::Body;
use crate::call::{Forked, Parsed, Role, beginning, changed_pid, exit_code, failure};
use crate::clock::Clock;
use crate::doubts::Doubts;
use crate::emit::{Emitter, Push, head};
use crate::error::ImportError;
use crate::header::{self, Written};
use crate::held::{Held, Waiting};
use crate::log::Log;
use crate::merge::read_all;
use crate::numbers::{decimal, id};
use crate::reading::{Reading, Written as By};
use crate::seen::Seen;
use crate::text::{Returned, find};
use crate::world::{Begun, World};

/// Bytes kept of the current line, to be shown.
const BEGINNING: usize = 256;
/// Processes to which strace attached that are remembered.
const ANNOUNCED_MAX: usize = 1 << 12;
/// Threads in a call to exec at a time that are remembered.
const CHANGING_MAX: usize = 1 << 12;

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The header of the trace.
    pub header: Header,
    /// The trailer.
    pub trailer: Trailer,
    /// Processes.
    pub processes: u64,
    /// Threads besides the first of each process.
    pub threads: u64,
    /// Lines read.
    pub lines: u64,
    /// Lines that were not understood.
    pub doubts: Doubts,
    /// Further remarks on the figures.
    pub remarks: Vec<String>,
}

/// Imports logs of strace: passes their records to `push`. The header is known only at the end.
///
/// # Errors
/// If a log cannot be read, is not a log of strace, or has no times; and the first error of `push`.
pub fn strace(logs: Vec<Log>, push: &mut Push<'_>) -> Result<Imported, ImportError> {
    let name = logs.first().map(|log| log.name.clone()).unwrap_or_default();
    let mut importer = Importer::new(Emitter::new(push));
    read_all(logs, &mut |reading| importer.line(reading))?;
    importer.finish(name)
}

struct Importer<'a> {
    world: World<'a>,
    seen: Seen,
    doubts: Doubts,
    clock: Clock,
    /// Tasks in a call that creates another.
    forkers: BTreeSet<i32>,
    /// Tasks that appeared meanwhile, with their lines.
    held: Waiting,
    /// Lines that can be processed now.
    queue: VecDeque<(i32, Held)>,
    /// Tasks that ended according to their parent, before the log had any other end.
    ended_by_parent: HashSet<i32>,
    ends: u64,
    lines: u64,
    calls: u64,
    with_pid: bool,
    /// Processes to which strace attached, with the number of their threads that have not appeared yet.
    with_threads: Vec<(i32, u64)>,
    /// Processes with one task to which strace attached.
    announced: HashSet<i32>,
    /// Threads that have called exec, by the pid that they take over.
    changing: HashMap<i32, i32>,
    /// True if a call was not decoded.
    is_raw: bool,
    /// True if a task was born that was known before.
    is_disordered: bool,
    /// The place of the current line.
    log: String,
    number: u64,
    beginning: Vec<u8>,
    /// True if it is the last one and has no end.
    is_cut: bool,
}

impl<'a> Importer<'a> {
    fn new(emit: Emitter<'a>) -> Self {
        Self {
            world: World::new(emit),
            seen: Seen::default(),
            doubts: Doubts::default(),
            clock: Clock::default(),
            forkers: BTreeSet::new(),
            held: Waiting::default(),
            queue: VecDeque::new(),
            ended_by_parent: HashSet::new(),
            ends: 0,
            lines: 0,
            calls: 0,
            with_pid: false,
            with_threads: Vec::new(),
            announced: HashSet::new(),
            changing: HashMap::new(),
            is_raw: false,
            is_disordered: false,
            log: String::new(),
            number: 0,
            beginning: Vec::new(),
            is_cut: false,
        }
    }

    fn line(&mut self, reading: &Reading) -> Result<(), ImportError> {
        self.lines = self.lines.saturating_add(1);
        (self.number, self.is_cut) = (reading.number, reading.is_cut);
        self.beginning.clear();
        self.beginning.extend(reading.raw().iter().take(BEGINNING));
        if self.log != reading.name {
            self.log.clone_from(&reading.name);
        }
        if let By::Otherwise(lost) = reading.written {
            self.doubts.note(&self.log, self.number, reading.raw(), lost);
            return Ok(());
        }
        let line = reading.line();
        let (said, body) = (line.says(), line.body);
        // Later it says the same of each new task.
        if let Body::Attached { pid, tasks: 1 } = said
            && self.calls == 0
            && self.announced.len() < ANNOUNCED_MAX
        {
            self.announced.insert(pid);
        }
        if let Body::Attached { pid, tasks } = said
            && tasks > 1
            && self.with_threads.len() < 2
        {
            self.with_threads.push((pid, tasks - 1));
        }
        if !said.is_of_a_task() {
            return Ok(());
        }
        let (pid, stamp) = (line.pid, line.stamp);
        let time_ns = self.clock.at(stamp, reading.moment_ns);
        if matches!(said, Body::Call { .. } | Body::Resumed { .. }) {
            self.calls = self.calls.saturating_add(1);
        }
        self.with_pid |= pid.is_some() || reading.is_of_one;
        let pid = pid.unwrap_or_else(|| self.anonymous(reading));
        self.take(pid, time_ns, body);
        while let Some((pid, held)) = self.queue.pop_front() {
            self.take(pid, held.time_ns, &held.body);
        }
        if self.is_disordered {
            return Err(ImportError::NoOrder { name: self.log.clone(), line: self.number });
        }
        if self.is_raw {
            return Err(ImportError::Raw { name: self.log.clone(), line: self.number });
        }
        match self.world.emit.take_error() {
            Some(error) => Err(ImportError::Write(error)),
            None => Ok(()),
        }
    }

    /// The task of a line without pid: strace prints none while it follows one task only.
    fn anonymous(&self, reading: &Reading) -> i32 {
        let mut alive = self.world.tasks.keys();
        match (alive.next(), alive.next()) {
            (Some(only), None) if !reading.is_of_one => *only,
            _ => reading.anonymous,
        }
    }

    fn take(&mut self, pid: i32, time_ns: u64, body: &[u8]) {
        let said = Body::of(body);
        if !said.is_of_a_task() {
            return;
        }
        if !self.world.tasks.contains_key(&pid) {
            if matches!(said, Body::Ended { .. }) && self.ended_by_parent.remove(&pid) {
                return;
            }
            if self.held.has(pid) || !self.forkers.is_empty() {
                self.hold(pid, time_ns, body);
                return;
            }
            self.introduce(pid, time_ns, &said);
        }
        self.act(pid, time_ns, said);
    }

    /// A task that no call in the log created.
    fn introduce(&mut self, pid: i32, time_ns: u64, said: &Body<'_>) {
        let executes = |name: &[u8]| matches!(Role::of(name), Role::Exec(_));
        let is_launched = matches!(said, Body::Call { name, .. } if executes(name));
        let is_first = self.world.totals.processes == 0;
        // `Process 7 attached with 3 threads`: 7 and the next two, unless there are several such processes.
        if let [(leader, threads)] = &mut self.with_threads[..]
            && *leader != pid
            && *threads > 0
        {
            *threads -= 1;
            let leader = *leader;
            if !self.world.tasks.contains_key(&leader) {
                self.world.attach(leader, time_ns, false);
            }
            self.world.attach_thread(pid, leader, time_ns);
            return;
        }
        self.world.attach(pid, time_ns, is_launched && is_first);
        // A process that had one task then.
        if self.announced.remove(&pid) && !is_first {
            let unborn = &mut self.world.totals.unborn;
            *unborn = unborn.saturating_sub(1);
        }
    }

    fn hold(&mut self, pid: i32, time_ns: u64, body: &[u8]) {
        if !self.held.keep(pid, time_ns, body) {
            self.forkers.clear();
            self.release_all();
        }
    }

    /// The held tasks were created by nobody in the log.
    fn release_all(&mut self) {
        self.queue.extend(self.held.take_all());
    }

    fn act(&mut self, pid: i32, time_ns: u64, said: Body<'_>) {
        match said {
            Body::Call { name, text } => self.call(pid, time_ns, name, text),
            Body::Resumed { name, text } => self.resumed(pid, time_ns, name, text),
            Body::Signal { text } => self.signal(time_ns, text),
            Body::Ended { status } => {
                self.ends = self.ends.saturating_add(1);
                self.stop_forking(pid);
                self.world.end(pid, time_ns, status);
            }
            Body::Superseded { by } => {
                self.changing.remove(&pid);
                self.world.supersede(pid, by, time_ns);
            }
            Body::Attached { .. }
            | Body::Detached
            | Body::Remark
            | Body::Cut { .. }
            | Body::Other => {}
        }
    }

    fn call(&mut self, pid: i32, time_ns: u64, name: &[u8], text: &[u8]) {
        let role = Role::of(name);
        self.seen.note(name, role);
        self.seen.note_end(text);
        if role == Role::Other || role == Role::Id {
            return;
        }
        let returns_as = changed_pid(text);
        let Some(text) = beginning(text) else {
            self.complete(pid, time_ns, role, text, true);
            return;
        };
        if let (Some(to), Role::Exec(_)) = (returns_as, role)
            && self.changing.len() < CHANGING_MAX
        {
            self.changing.insert(to, pid);
        }
        if let Some(task) = self.world.tasks.get_mut(&pid) {
            if role == Role::End {
                task.ending = exit_code(text).map(|code| code << 8);
            }
            task.begun = Some(Begun { role, text: text.to_vec() });
        }
        if matches!(role, Role::Fork(_)) {
            self.forkers.insert(pid);
        }
    }

    fn resumed(&mut self, pid: i32, time_ns: u64, name: &[u8], text: &[u8]) {
        let role = Role::of(name);
        self.seen.note(name, role);
        self.seen.note_end(text);
        if role == Role::Other || role == Role::Id {
            return;
        }
        // With -e quiet=superseded, nothing else says so.
        if let Role::Exec(_) = role
            && let Some(by) = self.changing.remove(&pid)
        {
            self.world.supersede(pid, by, time_ns);
        }
        let begun = self.world.tasks.get_mut(&pid).and_then(|task| task.begun.take());
        // If the log begins between the two, the arguments are missing.
        let begun = begun.filter(|begun| begun.role == role);
        let has_begun = begun.is_some();
        let mut whole = begun.map_or(Vec::new(), |it| it.text);
        whole.extend_from_slice(text);
        self.complete(pid, time_ns, role, &whole, has_begun);
        self.stop_forking(pid);
    }

    fn stop_forking(&mut self, pid: i32) {
        if self.forkers.remove(&pid) && self.forkers.is_empty() && !self.held.is_empty() {
            self.release_all();
        }
    }

    fn signal(&mut self, time_ns: u64, text: &[u8]) {
        // Logs without `+++` lines (-qq): a parent learns of the end.
        if self.ends > 0 || !text.starts_with(b"--- SIGCHLD") {
            return;
        }
        let at = find(text, 0, b"si_pid=").map(|at| at + b"si_pid=".len());
        let number = at.and_then(|at| decimal(text.get(at..)?));
        let Some(child) = number.and_then(|(_, number)| id(number)) else { return };
        if let Some(status) = self.world.tasks.get(&child).and_then(|task| task.ending) {
            self.world.end(child, time_ns, status);
            self.ended_by_parent.insert(child);
        }
    }

    /// A call has returned; `has_begun`: its arguments are in the log.
    fn complete(&mut self, pid: i32, time_ns: u64, role: Role, text: &[u8], has_begun: bool) {
        if role == Role::End {
            if let (Some(task), Some(code)) = (self.world.tasks.get_mut(&pid), exit_code(text)) {
                task.ending = Some(code << 8);
            }
            return;
        }
        let Some(parsed) = Parsed::of(text) else {
            self.doubt(role.kind());
            return;
        };
        self.is_raw |= parsed.is_raw(role);
        match role {
            Role::Fork(call) => {
                if let Some(forked) = parsed.forked(call) {
                    self.fork(pid, time_ns, forked);
                }
            }
            Role::Exec(call) => self.exec(pid, time_ns, call, &parsed),
            Role::Lookup(call) => {
                if has_begun && parsed.lacks_its_path(call) {
                    self.doubt(None);
                }
                self.lookup(pid, time_ns, call, &parsed);
            }
            Role::Directory => {
                if let Returned::Value(..) = parsed.returned {
                    self.world.directory(pid, parsed.directory().as_deref());
                }
            }
            Role::Whereabouts => {
                if let Returned::Value(..) = parsed.returned {
                    self.world.stays_in(pid, parsed.whereabouts().as_deref());
                }
            }
            Role::Move(has_directories) => {
                if let Some(renamed) = parsed.renamed(has_directories) {
                    self.world.moved(pid, time_ns, &renamed);
                }
            }
            Role::Name => {
                if let Some(name) = parsed.new_name() {
                    self.world.rename(pid, time_ns, &name);
                }
            }
            Role::End | Role::Id | Role::Other => {}
        }
    }

    /// Notes the current line, and what is lost with it.
    fn doubt(&mut self, lost: Option<Kind>) {
        // A call that the end of the log cuts has not returned.
        let lost = lost.filter(|_| !self.is_cut);
        self.doubts.note(&self.log, self.number, &self.beginning, lost);
    }

    fn exec(&mut self, pid: i32, time_ns: u64, call: Call, parsed: &Parsed<'_>) {
        // strace 6.8 misreads what the exec of a thread returns.
        let took_over = self.world.tasks.get(&pid).is_some_and(|task| task.took_over);
        match parsed.returned {
            Returned::Error(error) if !took_over => {
                self.world.exec_failed(pid, time_ns, parsed.asked(call), error);
            }
            Returned::Unclear if !took_over => self.doubt(Some(Kind::Exec)),
            Returned::Nothing if !took_over => {}
            _ => {
                let executed = parsed.executed(call);
                if executed.asked.path.is_none() && executed.argv.is_none() {
                    self.doubt(None);
                }
                self.world.exec(pid, time_ns, &executed);
            }
        }
    }

    fn lookup(&mut self, pid: i32, time_ns: u64, call: Call, parsed: &Parsed<'_>) {
        if let Some(error) = failure(parsed.returned) {
            self.world.lookup_failed(pid, time_ns, parsed.asked(call), error);
            return;
        }
        match (parsed.returned, Family::of(call)) {
            (Returned::Value(_, file), Some(Family::Open)) => {
                self.world.opened(pid, time_ns, parsed.asked(call), file);
            }
            (Returned::Value(..), Some(Family::Chdir)) => {
                self.world.directory(pid, parsed.asked(call).path.as_deref());
            }
            _ => {}
        }
    }

    fn fork(&mut self, pid: i32, time_ns: u64, mut forked: Forked) {
        let is_last = self.forkers.iter().all(|forker| *forker == pid);
        // The caller has another pid namespace: the one task that waits for a parent is this one.
        if !self.held.has(forked.child)
            && is_last
            && let Some(only) = self.held.only()
        {
            forked.child = only;
        }
        let known = self.world.tasks.get(&forked.child);
        self.is_disordered |= known.is_some_and(|it| it.unborn && it.ending.is_none());
        let held = self.held.take(forked.child);
        let born_ns = held.first().map_or(time_ns, |first| first.time_ns.saturating_sub(1));
        self.world.fork(pid, born_ns, &forked);
        self.queue.extend(held.into_iter().map(|line| (forked.child, line)));
    }

    fn finish(mut self, name: String) -> Result<Imported, ImportError> {
        self.forkers.clear();
        self.release_all();
        while let Some((pid, held)) = self.queue.pop_front() {
            self.take(pid, held.time_ns, &held.body);
            self.forkers.clear();
        }
        if self.calls == 0 && self.ends == 0 {
            return Err(ImportError::NotALog { name, tool: "strace" });
        }
        let ended_ns = self.clock.next();
        self.world.end_those_that_said_so(ended_ns);
        self.doubts.lose(Kind::Exit, self.world.totals.unended);
        let losses = self.doubts.losses();
        for loss in &losses {
            let head = head(Kind::Loss, 0, ended_ns);
            let (kind, reason) = (loss.kind as u16, loss.reason as u16);
            let record = Loss { head, kind, reason, cpu: LOSS_ANY_CPU, count: loss.count };
            self.world.emit.put(Stream::Lifecycle, head, &record, &[]);
        }
        if let Some(error) = self.world.emit.take_error() {
            return Err(ImportError::Write(error));
        }
        let World { emit, tasks, totals, root, .. } = self.world;
        let header = header::of_strace(&header::Read {
            seen: self.seen,
            totals,
            root: root.as_ref(),
            follows: self.with_pid || totals.processes > 1,
            started_unix_ns: self.clock.unix_ns.unwrap_or(0),
            has_times: self.clock.origin.is_some(),
        });
        let written = Written {
            ended_ns,
            all_ended: tasks.is_empty(),
            tasks: totals.processes.saturating_add(totals.threads),
            records: header::by_name(|kind| emit.records(kind)),
            losses,
        };
        Ok(Imported {
            header,
            trailer: header::trailer(written, root.as_ref()),
            processes: totals.processes,
            threads: totals.threads,
            lines: self.lines,
            doubts: self.doubts,
            remarks: Vec::new(),
        })
    }
}
