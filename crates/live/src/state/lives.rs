//! The lives of processes: births, programs, ends.

use proctrace_wire::Exec;
use proctrace_wire::layout::{
    ATTACH_ZOMBIE, Attach, EXEC_BEFORE, EXIT_PROCESS, ExecFixed, Exit, Fork,
};

use super::counters::Counters;
use super::process::{CommandLine, Process};
use super::programs::UNKNOWN;
use super::view::View;

impl View {
    pub(super) fn attach(&mut self, attach: &Attach) {
        let seen = Counters::from(attach);
        if attach.head.task == attach.process {
            let parent = self.tree.of_pid(attach.parent_tgid);
            let is_new = self.born(Process {
                serial: attach.process,
                pid: attach.tgid,
                parent,
                parent_pid: attach.parent_tgid,
                started_ns: attach.start_ns,
                comm: attach.comm,
                program: UNKNOWN,
                ..Process::default()
            });
            if is_new {
                self.tree.join_attached(attach.process);
            }
        } else {
            self.thread_born(attach.process);
        }
        // A leader that ended before its threads has no exit record.
        if attach.bits & ATTACH_ZOMBIE == 0 {
            self.add_task(attach.head.task, attach.process, seen);
        }
    }

    pub(super) fn fork(&mut self, fork: &Fork) {
        if let Some(second) = self.history.at(fork.head.time_ns)
            && fork.child == fork.child_process
        {
            second.births = second.births.saturating_add(1);
        }
        if fork.child != fork.child_process {
            self.thread_born(fork.child_process);
        } else {
            let forker = self.tree.get_mut(fork.process).map(|forker| {
                forker.children_started = forker.children_started.saturating_add(1);
                forker.program
            });
            self.born(Process {
                serial: fork.child_process,
                pid: fork.child_tgid,
                parent: forker.map(|_| fork.process),
                parent_pid: fork.parent_tgid,
                started_ns: fork.start_ns,
                comm: fork.comm,
                program: forker.unwrap_or(UNKNOWN),
                spawner: forker,
                ..Process::default()
            });
        }
        self.add_task(fork.child, fork.child_process, Counters::default());
    }

    fn born(&mut self, process: Process) -> bool {
        let program = process.program;
        self.totals.processes = self.totals.processes.saturating_add(1);
        let is_new = self.tree.add(process);
        if is_new {
            let program = self.programs.get_mut(program);
            program.processes = program.processes.saturating_add(1);
            program.alive = program.alive.saturating_add(1);
        }
        is_new
    }

    fn thread_born(&mut self, process: u32) {
        self.totals.threads = self.totals.threads.saturating_add(1);
        if let Some(process) = self.tree.get_mut(process) {
            process.threads_started = process.threads_started.saturating_add(1);
            let program = self.programs.get_mut(process.program);
            program.threads = program.threads.saturating_add(1);
        }
    }

    fn add_task(&mut self, task: u32, process: u32, seen: Counters) {
        if let Some(sample) = self.tree.add_task(task, process, seen) {
            self.sample(&sample);
        }
        let misses = self.tree.take_early_misses(task);
        if misses > 0 {
            let program = self.tree.get_mut(process).map_or(UNKNOWN, |process| {
                process.lookups_failed = process.lookups_failed.saturating_add(misses);
                process.program
            });
            let program = self.programs.get_mut(program);
            program.lookups_failed = program.lookups_failed.saturating_add(misses);
        }
    }

    pub(super) fn exec(&mut self, exec: &Exec<'_>) {
        let ExecFixed { head, process, run_ns, utime_ns, stime_ns, bits, comm, .. } = exec.fixed;
        let is_counted = bits & EXEC_BEFORE == 0;
        let spawner = self.tree.get(process).and_then(|process| process.spawner);
        let spawner = spawner.and_then(|number| self.programs.get(number)).map(|p| &p.name);
        let name = self.classify.classify(exec, spawner);
        let number = self.programs.number_of(&name);
        if self.tree.get(process).is_some_and(|process| process.program == UNKNOWN) {
            // The launched command, before its first exec.
            self.runs(process, number);
        }
        let before = Counters { run_ns, utime_ns, stime_ns, ..Counters::default() };
        self.used(head.task, head.time_ns, before, false);
        if is_counted {
            self.totals.execs = self.totals.execs.saturating_add(1);
            let program = self.programs.get_mut(number);
            program.execs = program.execs.saturating_add(1);
        }
        self.runs(process, number);
        let Some(process) = self.tree.get_mut(process) else { return };
        process.execs = process.execs.saturating_add(u64::from(is_counted));
        process.comm = comm;
        process.command = Some(Box::new(CommandLine::of(exec)));
    }

    fn runs(&mut self, process: u32, program: u32) {
        if let Some(process) = self.tree.get_mut(process) {
            self.programs.moves(process, program);
            process.program = program;
        }
    }

    pub(super) fn exit(&mut self, exit: &Exit) {
        let (task, time_ns) = (exit.head.task, exit.head.time_ns);
        let reading = Counters::from(exit);
        self.tick_length.note(reading.ticks());
        if self.used(task, time_ns, reading, true).is_none() {
            // Its birth was lost.
            self.cpu_used(exit.run_ns, time_ns);
            let program = self.programs.get_mut(UNKNOWN);
            program.used = program.used.plus(reading);
            let misses = self.tree.take_early_misses(task);
            program.lookups_failed = program.lookups_failed.saturating_add(misses);
            return;
        }
        let Some((process, is_last)) = self.tree.remove_task(task) else { return };
        let program = self.tree.get(process).map_or(UNKNOWN, |process| process.program);
        self.ended.add_task(task, process, program, time_ns);
        if let Some(process) = self.tree.get_mut(process)
            && (exit.bits & EXIT_PROCESS != 0 || is_last)
        {
            let page_bytes = u64::from(self.header.page_bytes);
            process.end = Some((time_ns, exit.status));
            process.maxrss_bytes = Some(exit.maxrss_pages.saturating_mul(page_bytes));
        }
        if is_last {
            self.ended(process, time_ns);
        }
    }

    fn ended(&mut self, process: u32, time_ns: u64) {
        let Some(process) = self.tree.remove(process) else { return };
        self.totals.ended = self.totals.ended.saturating_add(1);
        if let Some(second) = self.history.at(time_ns) {
            second.deaths = second.deaths.saturating_add(1);
        }
        let program = self.programs.get_mut(process.program);
        program.alive = program.alive.saturating_sub(1);
        if self.kept == Some(process.serial) {
            self.kept_ended = Some(Box::new(process.clone()));
        }
        self.ended.add(process, time_ns);
    }
}
