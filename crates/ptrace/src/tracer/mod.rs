//! The tracer: a process that is attached to every task of the payload.
//!
//! It waits for the next report of any task, writes what it means, and lets the task go on. It never
//! ends a task: when the tracer ends, the kernel detaches all.

mod births;
mod child;
mod ends;
mod execs;
mod letting_go;
mod lookups;
mod renames;
mod stack;
mod untraced;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctrace_record::{Options, boot_ns};
use proctrace_wire::Stream;

pub(crate) use child::spawn;

use crate::process::{Process, TracedTask};
use crate::shared::Shared;
use crate::sys::{self, Go, Report, SYSCALL_STOP, Tid};
use execs::Environments;
use letting_go::LettingGo;
use lookups::Numbers;

/// Time after which a new task whose parent has not reported it is traced without that report if the parent is gone: it
/// was killed between the two.
const PARENT_PATIENCE: Duration = Duration::from_millis(20);

/// The same if it is there: on a busy machine it may not have had a CPU since, or it was a thread that has been killed
/// by an exec.
const PATIENCE_MAX: Duration = Duration::from_secs(1);

/// Pause while the report of a parent is awaited.
const PARENT_POLL: Duration = Duration::from_micros(200);

/// Pause while the recorder empties a full ring.
const FULL_POLL: Duration = Duration::from_micros(500);

/// The options of a tracer.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) wanted: Options,
    /// True if the payload has a seccomp filter, which needs a tracer until its end.
    pub(crate) filtered: bool,
    pub(crate) block_when_full: bool,
}

/// Number of reports after which all stopped tasks are served in turn.
const REPORTS_A_ROUND: u64 = 256;

/// Set by the signal with which the recorder, or its end, interrupts the tracer.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The state of the tracer.
struct Tracer<'a> {
    shared: &'a Shared,
    settings: &'a Settings,
    /// Wakes the recorder.
    bell: child::Bell,
    recorder: Tid,
    tasks: HashMap<Tid, TracedTask>,
    /// Processes by serial.
    processes: HashMap<u32, Process>,
    /// Tasks that have reported their first stop before their parents have reported them.
    early: Vec<(Tid, Instant)>,
    /// Tasks that have ended before their parents have reported them.
    settled: Vec<Tid>,
    /// Pid namespace of the tracer itself, as in /proc/PID/ns/pid.
    own_pid_namespace: Option<Vec<u8>>,
    /// Tasks that another tracer is to have.
    letting_go: HashMap<Tid, LettingGo>,
    /// One for each of these that has gone, while it listens.
    listeners: Vec<JoinHandle<()>>,
    environments: Environments,
    numbers: Numbers,
    /// True if it has not been refused yet to ask whether an ended task is on a CPU.
    may_see_ended: bool,
    /// Number of processes of which files are open, and how many there may be.
    with_files: u64,
    with_files_max: u64,
    /// Nothing is recorded any more; tasks are only let go on.
    is_idle: bool,
    /// A record under construction.
    record: Vec<u8>,
}

impl Tracer<'_> {
    /// Runs until no task is left, or until the recording is over and no task needs a tracer.
    fn run(&mut self) {
        for reports in 1_u64.. {
            if reports.is_multiple_of(REPORTS_A_ROUND) {
                self.serve_all();
            }
            if INTERRUPTED.swap(false, Ordering::Relaxed) && self.must_stop() {
                return;
            }
            match sys::wait_for_report(self.early.is_empty()) {
                Ok(Report::Stopped(tid, code)) => self.stopped(tid, code),
                Ok(Report::Ended(tid)) => self.ended(tid),
                Ok(Report::Nothing) => self.wait_for_parents(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No task is left.
                Err(_) => return,
            }
        }
    }

    /// Serves each task that is stopped now once: the kernel always reports the first in its list, and
    /// those that stop again at once would keep all others waiting.
    fn serve_all(&mut self) {
        let stops: Vec<(Tid, i32)> = std::iter::from_fn(sys::take_any_stop).collect();
        for (tid, code) in stops {
            self.stopped(tid, code);
        }
    }

    /// True if the tracer can end because nobody needs its records.
    fn must_stop(&mut self) -> bool {
        let told = self.shared.board().stop.load(Ordering::Acquire) != 0;
        // SAFETY: takes and changes nothing.
        let orphaned = unsafe { libc::getppid() } != self.recorder;
        if !told && !orphaned {
            return false;
        }
        self.is_idle = true;
        for (tid, _) in std::mem::take(&mut self.early) {
            sys::resume(tid, Go::On, 0);
        }
        self.shared.board().finish();
        // Without a tracer, the kernel fails the calls that the filter stops at.
        !self.settings.filtered
    }

    fn stopped(&mut self, tid: Tid, code: i32) {
        let (signal, event) = (code & 0xff, code >> 8);
        if self.goes(tid, signal, event) {
            return;
        }
        if self.is_idle {
            return pass_on(tid, signal, event);
        }
        if !self.tasks.contains_key(&tid) {
            sys::take_stop(tid);
            self.early.push((tid, Instant::now()));
            return;
        }
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                return self.born(tid, event);
            }
            libc::PTRACE_EVENT_EXEC => return self.executed(tid),
            libc::PTRACE_EVENT_EXIT => self.leaves(tid),
            libc::PTRACE_EVENT_SECCOMP => {
                let go = self.enters(tid);
                return sys::resume(tid, go, 0);
            }
            0 if signal == SYSCALL_STOP && !self.returns(tid) => return,
            _ => {}
        }
        pass_on(tid, signal, event);
    }

    /// Nothing has been reported while the reports of parents are awaited.
    fn wait_for_parents(&mut self) {
        let early = std::mem::take(&mut self.early);
        let (late, early) = early.into_iter().partition(|(tid, since)| {
            let waited = since.elapsed();
            waited > PATIENCE_MAX || (waited > PARENT_PATIENCE && self.has_lost_its_creator(*tid))
        });
        self.early = early;
        let late: Vec<(Tid, Instant)> = late;
        for (tid, _) in &late {
            self.born_unreported(*tid);
            sys::resume(*tid, Go::On, 0);
        }
        if late.is_empty() {
            std::thread::sleep(PARENT_POLL);
        }
    }

    /// Writes the record under construction.
    fn write(&mut self, stream: Stream) -> bool {
        let record = std::mem::take(&mut self.record);
        let written = self.write_bytes(stream, &record);
        self.record = record;
        written
    }

    fn write_bytes(&mut self, stream: Stream, record: &[u8]) -> bool {
        while !self.shared.write(stream, record) {
            let must_wait = self.settings.block_when_full && !self.is_idle;
            if !must_wait || self.must_stop_waiting() {
                self.shared.lose(u16::from_le_bytes([record[0], record[1]]));
                return false;
            }
            self.bell.ring();
            std::thread::sleep(FULL_POLL);
        }
        if self.shared.waiting_bytes() > self.shared.ring_bytes() / 4 {
            self.bell.ring();
        }
        true
    }

    /// True if nobody will empty a full ring.
    fn must_stop_waiting(&self) -> bool {
        // SAFETY: takes and changes nothing.
        let orphaned = unsafe { libc::getppid() } != self.recorder;
        orphaned || self.shared.board().stop.load(Ordering::Acquire) != 0
    }

    fn next_serial(&self) -> u32 {
        let born = self.shared.board().tasks.bear();
        u32::try_from(born.saturating_add(1)).unwrap_or(u32::MAX)
    }

    fn now(&self) -> u64 {
        boot_ns()
    }
}

/// Lets a task go on after a stop as it would without a tracer.
fn pass_on(tid: Tid, signal: i32, event: i32) {
    match event {
        // A stop by SIGSTOP or the like: only SIGCONT ends it.
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => sys::resume(tid, Go::Listen, 0),
        // A signal is about to be delivered.
        0 if signal != SYSCALL_STOP => sys::resume(tid, Go::On, signal),
        _ => sys::resume(tid, Go::On, 0),
    }
}
