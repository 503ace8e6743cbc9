//! Ends of tasks and processes, and what they have used.
//!
//! The kernel stops a task when it begins to end, and reports it again when it has ended. Its memory can be
//! read at the first moment only. Its CPU time is final at the second, and then only once it has left its
//! CPU: a task reports its end while it is still running.

use std::time::Duration;

use proctrace_wire::layout::{EXIT_PROCESS, EXIT_WITHHELD, Exit, WorkdirFixed};
use proctrace_wire::{Kind, Stream};
use zerocopy::FromZeros;

use super::Tracer;
use crate::process::{Leaving, Process, TracedTask};
use crate::procfs::{self, Io, Usage};
use crate::records::{assemble, head};
use crate::sys::{self, Tid};

/// Number of times to look whether an ended task has left its CPU, which takes a few microseconds; on
/// a busy machine it may first have to get it again.
const LOOKS: u32 = 4000;
/// Number of looks after which the tracer sleeps between two looks.
const LOOKS_AWAKE: u32 = 10;
const PAUSE: Duration = Duration::from_micros(50);

const PATH_MAX: usize = 4095;

impl Tracer<'_> {
    /// A task begins to end.
    pub(super) fn leaves(&mut self, tid: Tid) {
        let now = self.now();
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        if task.leaving.is_some() {
            return;
        }
        let (serial, tgid) = (task.serial, task.tgid);
        let is_leader = tid == tgid;
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        let is_only = process.has_one_task();
        let status = (!is_only).then(|| sys::event_message(tid).unwrap_or(0) as u32);
        let is_last = process.leaves(serial);
        let last = match is_leader {
            true => is_last.then(|| process.files.last_status(tid)),
            false => is_last.then(|| procfs::last_status(tid)),
        };
        let last = last.flatten();
        if let Some(last) = last {
            process.memory = last.memory;
            process.parent_tgid = last.parent_tgid;
        }
        // Another thread may replace it by an exec.
        let usage = (is_leader && !is_last).then(|| Usage::of(tgid, tid)).flatten();
        // It does no I/O from here on, and what it did can be read by its user only while it has its memory.
        let io = if is_only { process.files.io(tgid) } else { Io::of(tgid, tid) };
        let (switches, comm) = last.map_or((None, None), |last| (last.switches, last.comm));
        task.leaving = Some(Leaving { time_ns: now, status, usage, io, switches, comm });
        if is_leader && !process.has_executed {
            self.tell_directory(tid, now);
        }
    }

    /// Often only its directory distinguishes a worker that was forked and never called exec.
    fn tell_directory(&mut self, tid: Tid, now: u64) {
        let Some(directory) = procfs::link(tid, "cwd") else { return };
        let Some(task) = self.tasks.get(&tid) else { return };
        let Some(process) = self.processes.get(&task.process) else { return };
        if process.directory.as_deref() == Some(&directory[..]) {
            return;
        }
        let path = &directory[..directory.len().min(PATH_MAX)];
        let workdir = WorkdirFixed {
            head: head(Kind::Workdir, task.serial, now),
            process: task.process,
            tgid: task.tgid,
            tid,
            path_bytes: u16::try_from(path.len()).unwrap_or(0),
            bits: 0,
        };
        assemble(&mut self.record, &workdir, &[path]);
        self.write(Stream::Lifecycle);
    }

    /// A task has ended, and waits to be reaped.
    pub(super) fn ended(&mut self, tid: Tid) {
        self.is_not_let_go(tid);
        if self.is_idle {
            sys::reap(tid);
            return;
        }
        if let Some(at) = self.early.iter().position(|(early, _)| *early == tid) {
            self.early.swap_remove(at);
            self.born_unreported(tid);
            // Its creator may still report it.
            self.settled.push(tid);
        }
        let Some(task) = self.tasks.remove(&tid) else {
            sys::reap(tid);
            return;
        };
        let switches = task.leaving.and_then(|leaving| leaving.switches);
        let process = self.processes.get(&task.process);
        let is_only = process.is_some_and(Process::has_one_task);
        self.wait_until_off_cpu(tid, task.process, switches);
        let comm = task.leaving.filter(|_| is_only).and_then(|leaving| leaving.comm);
        let process = self.processes.get(&task.process);
        let (schedule, mut usage) = match (comm, process) {
            (Some(comm), Some(process)) => {
                (process.files.schedstat(tid), Usage { comm, ..Usage::default() })
            }
            _ => (None, Usage::of_stat(task.tgid, tid).unwrap_or_default()),
        };
        usage.io = match task.leaving {
            Some(Leaving { io: Some(io), .. }) => Some(io),
            _ => Io::of(task.tgid, tid),
        };
        let now = self.now();
        let (status, total) = sys::reap(tid).unwrap_or_default();
        if comm.is_some() {
            usage.take_totals(&total, schedule);
        }
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        // Killed in a way that it could not report.
        if task.leaving.is_none() {
            process.leaves(task.serial);
        }
        let mut exit = exit_of(&task, tid, process, &usage, (now, status));
        process.ended_run_ns = process.ended_run_ns.saturating_add(usage.run_ns);
        process.tasks = process.tasks.saturating_sub(1);
        let is_last = process.last == task.serial;
        if is_last && tid != task.tgid && process.tasks > 0 {
            // What the process as a whole has done is known when its leader is reaped.
            process.held = Some(exit);
            return;
        }
        let mut held = None;
        if tid == task.tgid {
            held = process.held.take();
            let last = held.as_mut().filter(|_| !is_last).unwrap_or(&mut exit);
            process.ends(last, status, total.cpu_ns());
        }
        if process.tasks == 0
            && let Some(process) = self.processes.remove(&task.process)
        {
            self.with_files -= u64::from(process.files.are_open());
        }
        self.tell_end(&exit);
        if let Some(held) = held {
            self.tell_end(&held);
        }
    }

    /// Until it has left its CPU, the last slice of an ended task's CPU time is missing. Only the superuser may
    /// open the file that says so then; an ordinary user may read it if it was opened before. Where it was not,
    /// the last switch shows it, which counts as voluntary (do_task_dead() in kernel/sched/core.c): on a busy
    /// machine the tracer, woken by the end, may get the CPU of the task before that. `switches` is their number
    /// when it began to end; between the two it seldom sleeps. For a process that has always had one task, the
    /// kernel counts them for whoever waits for it.
    fn wait_until_off_cpu(&mut self, tid: Tid, process: u32, switches: Option<u64>) {
        let process = self.processes.get(&process).filter(|process| process.has_one_task());
        let now = || match process {
            Some(_) => sys::usage_of_reported(tid).map(|usage| usage.voluntary_switches),
            None => procfs::switches(tid),
        };
        for look in 0..LOOKS {
            let is_on_cpu = process.and_then(|process| process.files.is_on_cpu()).or_else(|| {
                let seen = self.may_see_ended.then(|| procfs::is_on_cpu(tid)).flatten();
                self.may_see_ended &= seen.is_some();
                seen
            });
            let may_be_on_cpu =
                is_on_cpu.unwrap_or_else(|| switches.is_some_and(|before| now() == Some(before)));
            match may_be_on_cpu {
                true if look < LOOKS_AWAKE => std::thread::yield_now(),
                true => std::thread::sleep(PAUSE),
                false => return,
            }
        }
    }

    /// A leader that another thread has replaced by an exec: its end is not reported.
    pub(super) fn replaced(&mut self, tid: Tid) {
        let Some(task) = self.tasks.remove(&tid) else { return };
        let now = self.now();
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        if task.leaving.is_none() {
            process.staying = process.staying.saturating_sub(1);
        }
        process.tasks = process.tasks.saturating_sub(1);
        process.has_replaced = true;
        let usage = task.leaving.and_then(|leaving| leaving.usage).unwrap_or_default();
        process.ended_run_ns = process.ended_run_ns.saturating_add(usage.run_ns);
        let exit = exit_of(&task, tid, process, &usage, (now, 0));
        self.tell_end(&exit);
    }

    pub(super) fn tell_end(&mut self, exit: &Exit) {
        assemble(&mut self.record, exit, &[]);
        self.write(Stream::Lifecycle);
        self.shared.board().tasks.end();
    }
}

impl Process {
    /// Notes that a task begins to end; returns whether it is the last one.
    fn leaves(&mut self, serial: u32) -> bool {
        self.staying = self.staying.saturating_sub(1);
        if self.staying == 0 {
            self.last = serial;
        }
        self.staying == 0
    }

    /// Completes the record of its last task by what concerns all of it. `total_ns` is the CPU time of
    /// its tasks and of the children that it has waited for.
    fn ends(&self, exit: &mut Exit, status: u32, total_ns: u64) {
        exit.bits |= EXIT_PROCESS;
        exit.status = status;
        self.memory.tell(exit);
        let others_ns = total_ns.saturating_sub(self.ended_run_ns);
        if self.has_forked {
            // /proc has it in whole clock ticks; this is precise to two microseconds. It is not known which
            // part is user time.
            exit.waited_utime_ns = others_ns;
        } else if self.has_replaced {
            // What a leader did after it had begun to end, when another thread replaced it by an exec: 300 us
            // were seen on a busy machine. Its record has been written, and can no longer be read by then.
            exit.run_ns = exit.run_ns.saturating_add(others_ns);
            exit.run_at_exit_ns = exit.run_at_exit_ns.saturating_add(others_ns);
        }
    }
}

/// The record of a task's end. `at` is the time at which it was found to have ended, and its status.
fn exit_of(task: &TracedTask, tid: Tid, process: &Process, usage: &Usage, at: (u64, u32)) -> Exit {
    let (time_ns, status) =
        task.leaving.map_or(at, |leaving| (leaving.time_ns, leaving.status.unwrap_or(at.1)));
    let mut exit = Exit::new_zeroed();
    exit.head = head(Kind::Exit, task.serial, time_ns);
    exit.process = task.process;
    (exit.tgid, exit.tid) = (task.tgid, tid);
    exit.status = status;
    exit.parent_tgid = process.parent_tgid;
    exit.opens = task.opens;
    exit.lookups_failed = task.lookups_failed;
    exit.execs_failed = task.execs_failed;
    exit.start_ns = task.born_ns;
    exit.run_ns = usage.run_ns;
    exit.run_at_exit_ns = usage.run_ns;
    exit.utime_ns = usage.utime_ns;
    exit.stime_ns = usage.stime_ns;
    exit.minflt = usage.minflt;
    exit.majflt = usage.majflt;
    exit.run_delay_ns = usage.run_delay_ns;
    exit.comm = if usage.comm == [0; 16] { task.comm } else { usage.comm };
    match usage.io {
        Some(io) => {
            exit.rchar = io.rchar;
            exit.wchar = io.wchar;
            exit.read_bytes = io.read_bytes;
            exit.write_bytes = io.write_bytes;
        }
        None => exit.bits |= EXIT_WITHHELD,
    }
    exit
}
