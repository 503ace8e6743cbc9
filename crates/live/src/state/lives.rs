//! The lives of processes: births, programs, ends.

use proctrace_lineage::Exited;
use proctrace_wire::Exec;
use proctrace_wire::layout::{Attach, EXEC_BEFORE, ExecFixed, Exit, Fork};

use super::process::{CommandLine, Life, Process};
use super::programs::UNKNOWN;
use super::readings::Reading;
use super::view::View;
use proctrace_replay::Usage;

impl View {
    pub(super) fn attach(&mut self, attach: &Attach) {
        let life = Life {
            started_ns: attach.start_ns,
            comm: attach.comm,
            program: UNKNOWN,
            ..Life::default()
        };
        let reading = Reading::first(attach.into());
        let birth = self.living.attach(attach, life, reading);
        self.born(attach.head.task, birth.process(attach.head.task), birth.is_thread());
    }

    pub(super) fn fork(&mut self, fork: &Fork) {
        let life = |forker: Option<&mut Process>| {
            let forker = forker.map(|forker| {
                forker.children_started = forker.children_started.saturating_add(1);
                forker.program
            });
            Life {
                started_ns: fork.start_ns,
                comm: fork.comm,
                program: forker.unwrap_or(UNKNOWN),
                spawner: forker,
                ..Life::default()
            }
        };
        let birth = self.living.fork(fork, life, Reading::default());
        if !birth.is_thread()
            && let Some(second) = self.history.at(fork.head.time_ns)
        {
            second.births = second.births.saturating_add(1);
        }
        self.born(fork.child, birth.process(fork.child), birth.is_thread());
    }

    /// Counts a task that was born into a process, and what came before its birth.
    fn born(&mut self, task: u32, of: u32, is_thread: bool) {
        let total = if is_thread { &mut self.totals.threads } else { &mut self.totals.processes };
        *total = total.saturating_add(1);
        if let Some(process) = self.living.get_mut(of) {
            let program = self.programs.get_mut(process.program);
            if is_thread {
                process.threads_started = process.threads_started.saturating_add(1);
                program.threads = program.threads.saturating_add(1);
            } else {
                program.processes = program.processes.saturating_add(1);
                program.alive = program.alive.saturating_add(1);
                self.classify.born(of, process.born_of);
                process.step = self.classify.step_of(of);
                self.steps.born(process.step);
            }
        }
        if let Some(sample) = self.early.take(task) {
            self.sample(&sample);
        }
        let misses = self.early.take_misses(task);
        if misses > 0 {
            let program = self.living.get_mut(of).map_or(UNKNOWN, |process| {
                process.lookups_failed = process.lookups_failed.saturating_add(misses);
                process.program
            });
            let program = self.programs.get_mut(program);
            program.lookups_failed = program.lookups_failed.saturating_add(misses);
        }
    }

    pub(super) fn exec(&mut self, exec: &Exec<'_>) {
        let ExecFixed { head, process, tgid, run_ns, utime_ns, stime_ns, bits, comm, .. } =
            exec.fixed;
        let is_counted = bits & EXEC_BEFORE == 0;
        let told = self.living.add_unborn(process, tgid, head.task);
        if told.is_new {
            if let Some(process) = self.living.get_mut(process) {
                process.started_ns = head.time_ns;
            }
            self.born(head.task, process, false);
        }
        if let Some(stood_for_it) = told.stood_for_it {
            self.ended(stood_for_it, head.time_ns);
        }
        let spawner = self.living.get(process).and_then(|process| process.spawner);
        let spawner = spawner.and_then(|number| self.programs.get(number)).map(|p| &p.name);
        let name = self.classify.classify(exec, spawner);
        let number = self.programs.number_of(&name);
        if self.living.get(process).is_some_and(|process| process.program == UNKNOWN) {
            // The launched command, before its first exec.
            self.runs(process, number);
        }
        let before = Usage { run_ns, utime_ns, stime_ns, ..Usage::default() };
        self.used(head.task, head.time_ns, before, false);
        if is_counted {
            self.totals.execs = self.totals.execs.saturating_add(1);
            let program = self.programs.get_mut(number);
            program.execs = program.execs.saturating_add(1);
        }
        self.runs(process, number);
        self.steps(exec, process);
        let Some(process) = self.living.get_mut(process) else { return };
        process.execs = process.execs.saturating_add(u64::from(is_counted));
        process.comm = comm;
        process.command = Some(Box::new(CommandLine::of(exec)));
    }

    /// The steps that begin with an exec, and the one that the process belongs to from now on.
    fn steps(&mut self, exec: &Exec<'_>, serial: u32) {
        let Some(process) = self.living.get_mut(serial) else { return };
        let time_ns = exec.fixed.head.time_ns;
        let since_ns = time_ns.saturating_sub(self.header.started_ns);
        let unix_ns = self.header.started_unix_ns.saturating_add(since_ns);
        self.classify.step(exec, serial, process.born_of, unix_ns);
        // A process that ran nothing before was started for the step.
        let began_ns = if process.execs == 0 { process.started_ns } else { time_ns };
        self.steps.add(|step| self.classify.named(step), serial, began_ns);
        let step = self.classify.step_of(serial);
        if step != process.step {
            self.steps.moves(process, step);
            process.step = step;
        }
    }

    fn runs(&mut self, process: u32, program: u32) {
        if let Some(process) = self.living.get_mut(process) {
            self.programs.moves(process, program);
            process.program = program;
        }
    }

    pub(super) fn exit(&mut self, exit: &Exit) {
        let (task, time_ns) = (exit.head.task, exit.head.time_ns);
        let reading = Usage::from(exit);
        self.tick_length.note(reading.ticks());
        if self.used(task, time_ns, reading, true).is_none() {
            // Its birth was lost.
            self.cpu_used(exit.run_ns, time_ns);
            let program = self.programs.get_mut(UNKNOWN);
            program.used = program.used.plus(reading);
            let misses = self.early.take_misses(task);
            program.lookups_failed = program.lookups_failed.saturating_add(misses);
            return;
        }
        let Some(Exited { process, mut ended }) = self.living.exit(exit) else { return };
        let known = ended.as_mut().or_else(|| self.living.get_mut(process));
        let program = known.map_or(UNKNOWN, |process| {
            if process.end == Some((time_ns, exit.status)) {
                let page_bytes = u64::from(self.header.page_bytes);
                process.maxrss_bytes = Some(exit.maxrss_pages.saturating_mul(page_bytes));
            }
            process.program
        });
        self.ended.add_task(task, process, program, time_ns);
        if let Some(process) = ended {
            self.ended(process, time_ns);
        }
    }

    fn ended(&mut self, process: Process, time_ns: u64) {
        self.totals.ended = self.totals.ended.saturating_add(1);
        if let Some(second) = self.history.at(time_ns) {
            second.deaths = second.deaths.saturating_add(1);
        }
        let program = self.programs.get_mut(process.program);
        program.alive = program.alive.saturating_sub(1);
        self.steps.ended(&process, time_ns);
        self.classify.gone(process.serial);
        if self.kept == Some(process.serial) {
            self.kept_ended = Some(Box::new(process.clone()));
        }
        self.ended.add(process, time_ns);
    }
}
