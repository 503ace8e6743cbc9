//! Births, execs and ends: which processes existed, and what each ran.

use std::fs::File;
use std::io::BufReader;

use proctrace_classify::names::{Names, comm};
use proctrace_classify::{Classification, Examiner, Program, Runs};
use proctrace_lineage::{Birth, Register, Serials};
use proctrace_replay::records;
use proctrace_trace::Reader;
use proctrace_wire::layout::{
    self, ATTACH_ROOT, ATTACH_ZOMBIE, EXEC_BEFORE, EXIT_OOM, EXIT_RSS_BOUND,
};
use proctrace_wire::{Record, Stream};

use super::Loader;
use crate::Recording;
use crate::bins::Point;
use crate::last::LastExec;
use crate::marks::MarkedBy;
use crate::process::{Before, Process, ProgramRun};
use crate::task::Task;
use proctrace_replay::Usage;

/// sched.h of the kernel: the child shares the memory of its forker.
const CLONE_VM: u64 = 0x100;

/// Execs and processes while their programs and roles are resolved.
struct Execs<'a> {
    runs: &'a mut [ProgramRun],
    processes: &'a mut [Process],
}

impl Runs for Execs<'_> {
    fn count(&self) -> usize {
        self.runs.len()
    }

    fn spawner(&self, run: u32) -> Option<u32> {
        let process = &self.processes[self.process(run) as usize];
        match process.spawned_in() {
            // A process is spawned in a run that precedes its own.
            Some(run) => Some(self.runs[run as usize].program),
            None => process.spawned_by_program().and_then(|program| u32::try_from(program).ok()),
        }
    }

    fn set_program(&mut self, run: u32, program: u32) {
        self.runs[run as usize].program = program;
    }

    fn process(&self, run: u32) -> u32 {
        self.runs[run as usize].process
    }

    fn set_role(&mut self, process: u32, run: u32, role: u32) {
        let process = &mut self.processes[process as usize];
        if process.run() == Some(run) {
            process.set_role(Some(role));
        }
    }
}

impl Loader<'_> {
    pub(super) fn read_lifecycle(&mut self, reader: &mut Reader<BufReader<File>>) {
        let decoded = records(reader, Stream::Lifecycle, |record| self.take(record));
        self.made.undecodable += decoded.undecodable;
        // No attach records follow from here on.
        self.process_of_pid = Serials::default();
        // Tasks that are still alive ran on to the end.
        let ended_ns = reader.trailer().map(|trailer| trailer.ended_ns);
        if self.made.tasks.iter().any(|task| task.ended_ns().is_none() && !task.zombie) {
            self.made.last_ns = self.made.last_ns.max(ended_ns.unwrap_or(0));
        }
        if self.made.first_ns == u64::MAX {
            self.made.first_ns = reader.header().started_ns;
            self.made.last_ns = self.made.first_ns;
        }
    }

    fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Attach(attach) => self.attach(&attach),
            Record::Fork(fork) => self.fork(&fork),
            Record::Exec(exec) => self.exec(&exec),
            Record::Exit(exit) => self.exit(&exit),
            Record::ExecFailed(miss, path) => {
                self.made.counts.execs_failed += 1;
                match self.task_of_serial.get(miss.head.task) {
                    Some(task) => {
                        let process = self.made.tasks[task].process();
                        let before = self.made.last_execs.get(&process);
                        let failed = (miss.head.time_ns, path, miss.error);
                        let (last, searched) = LastExec::next(before, failed);
                        self.made.counts.execs_searched += searched;
                        self.made.last_execs.insert(process, last);
                    }
                    None => self.made.counts.orphans += 1,
                }
            }
            Record::Blind(blind) => {
                if let Some(process) = self.process(blind.process) {
                    self.made.blind.note(process, blind.what);
                }
            }
            Record::Rename(rename) => {
                // Threads have their own names.
                if rename.head.task == rename.process
                    && let Some(process) = self.process(rename.process)
                {
                    let run = self.made.processes[process].run();
                    self.examiner.rename(number(process), run, &comm(&rename.comm));
                }
            }
            Record::Workdir(workdir, path) => {
                if let Some(process) = self.process(workdir.process) {
                    let run = self.made.processes[process].run();
                    self.examiner.directory(number(process), run, path);
                }
            }
            Record::Signal(signal) => self.signal(&signal),
            Record::Loss(loss) => {
                self.made.counts.losses.insert((loss.kind, loss.reason, loss.cpu), loss.count);
            }
            Record::Env(env, block) => self.stepping.environment(env.env_id, block),
            // The beginning of a command line suffices.
            Record::ExecArgs(..) => {}
            // Only `libs` needs to know where paths lead.
            Record::Place(..) | Record::Mounts(..) => {}
            // From other streams, or a later version.
            Record::LookupFailed(..)
            | Record::LookupTime(..)
            | Record::Wait(..)
            | Record::OpenedNamed(..)
            | Record::OpenedAgain(..)
            | Record::Moved(..)
            | Record::Written(..)
            | Record::LookupNamed(..)
            | Record::LookupAgain(..)
            | Record::Sample(..)
            | Record::Tick(..)
            | Record::Memory(..)
            | Record::Unknown(..) => {}
        }
    }

    fn attach(&mut self, attach: &layout::Attach) {
        self.made.counts.attaches += 1;
        self.note_time(attach.head.time_ns);
        let task = match Birth::of_attach(attach, self) {
            Birth::Thread(process) => {
                self.add_task(attach.head.task, attach.tid, process, attach.head.time_ns, true)
            }
            Birth::Process { parent, .. } => {
                let program = self.number_of(Program::unknown(&comm(&attach.comm)));
                let at = self.add_process(
                    attach.head.task,
                    attach.tgid,
                    attach.head.time_ns,
                    parent,
                    program,
                );
                // A process that moved into the traced group was not there before if it was created meanwhile.
                if attach.bits & ATTACH_ROOT == 0 && attach.start_ns < self.made.header.started_ns {
                    let started_ns = (attach.start_ns > 0).then_some(attach.start_ns);
                    self.made.processes[at].started_earlier(started_ns);
                }
                let waited_ns = attach.waited_utime_ns.saturating_add(attach.waited_stime_ns);
                self.made.processes[at].change_waits(|waits| waits.waited_before_ns = waited_ns);
                // Its first task was added along with it. A thread whose leader was not recorded
                // has a thread id of its own.
                let task = self.made.tasks.len() - 1;
                self.made.tasks[task].set_tid(attach.tid);
                task
            }
        };
        let before = Usage::from(attach);
        if before != Usage::default() {
            self.made.tasks[task].has_used_before(before);
        }
        self.made.tasks[task].zombie = attach.bits & ATTACH_ZOMBIE != 0;
        self.attach_points.insert(task, Point::new(attach.head.time_ns, before));
    }

    fn exec(&mut self, exec: &proctrace_wire::Exec<'_>) {
        let happened_here = exec.fixed.bits & EXEC_BEFORE == 0;
        self.made.counts.execs += u64::from(happened_here);
        self.note_time(exec.fixed.head.time_ns);
        let process = match self.process(exec.fixed.process) {
            Some(process) => {
                // What a program that is gone did not find says nothing about the one that was found.
                if let Some(last) = self.made.last_execs.remove(&process) {
                    self.made.counts.execs_searched += u64::from(last.is_shown_by(exec.path));
                }
                process
            }
            None => {
                self.made.counts.orphans += 1;
                let fixed = &exec.fixed;
                let program = self.number_of(Program::unknown(&comm(&fixed.comm)));
                self.add_process(fixed.process, fixed.tgid, fixed.head.time_ns, None, program)
            }
        };
        self.made.processes[process].execs += 1;
        if happened_here && let Some(text) = exec.mark() {
            let time_ns = exec.fixed.head.time_ns;
            self.made.marks.add(time_ns, number(process), MarkedBy::Command, &text);
        }
        self.made.blind.note_exec(process, exec);
        let program = self.examiner.exec(exec);
        let parent = self.made.processes[process].parent().map(number);
        let run = number(self.made.runs.len());
        let unix_ns = self.unix_ns(exec.fixed.head.time_ns);
        self.stepping.exec(exec, Some(program), (number(process), run), parent, unix_ns);
        self.made.processes[process].set_run(Some(number(self.made.runs.len())));
        self.made.runs.push(ProgramRun {
            time_ns: exec.fixed.head.time_ns,
            process: number(process),
            // Known only when all programs have been read.
            program: 0,
            template: self.templates.number_of(exec.argv),
            happened_here,
            before: Before::new(exec.fixed.run_ns, exec.fixed.utime_ns, exec.fixed.stime_ns),
        });
        self.made.calls.push(self.templates.call(exec));
        if self.made.header.opens {
            self.made.run_directories.add(exec.cwd);
        }
    }

    /// Classifies the program of each process, now that all programs are known.
    pub(super) fn classify(&mut self) -> (Classification, Names) {
        let examiner = std::mem::replace(&mut self.examiner, Examiner::new(self.rules));
        let Recording { runs, processes, .. } = &mut self.made;
        let resolved = examiner.resolve(&mut Execs { runs, processes }, &mut self.programs);
        for process in processes {
            if let Some(run) = process.run() {
                process.set_program(runs[run as usize].program);
            }
        }
        resolved
    }

    fn fork(&mut self, fork: &layout::Fork) {
        self.made.counts.forks += 1;
        self.note_time(fork.head.time_ns);
        let (parent, forker) = match Birth::of_fork(fork, self) {
            Birth::Thread(process) => {
                let time_ns = fork.head.time_ns;
                let task = self.add_task(fork.child, fork.child_tid, process, time_ns, true);
                self.made.tasks[task].forked = true;
                self.note_forker(task, fork);
                return;
            }
            Birth::Process { parent, forker } => (parent, forker),
        };
        let program = match forker {
            Some(at) => self.made.processes[at].program(),
            None => self.number_of(Program::unknown(&comm(&fork.comm))),
        };
        let at = self.add_process(fork.child, fork.child_tgid, fork.head.time_ns, parent, program);
        if let Some(founder) = self.made.tasks.last_mut() {
            founder.forked = true;
        }
        if fork.flags & CLONE_VM != 0 {
            self.made.sharers.insert(at);
        }
        let spawned_in = forker.and_then(|at| self.made.processes[at].run());
        self.made.processes[at].set_spawned_in(spawned_in);
        if spawned_in.is_none() {
            let program = forker.map(|at| self.made.processes[at].program());
            self.made.processes[at].set_spawned_by(program);
        }
        self.made.processes[at].set_run(spawned_in);
        // Sources that know one namespace only leave it at 0.
        let own_pid = Some(fork.child_tgid_ns).filter(|pid| *pid > 0);
        self.stepping.fork(number(at), own_pid, forker.map(number));
        let forked_by_thread = match forker {
            // A sibling is attributed to the same thread as its forker, unless that was adopted.
            Some(at) if parent != forker => {
                let thread = self.made.forked_by_thread.get(at).copied();
                thread.filter(|_| self.made.processes[at].parent() == parent)
            }
            _ if fork.tid != fork.tgid => self.task_of_serial.get(fork.head.task).map(number),
            _ => None,
        };
        if let Some(thread) = forked_by_thread {
            self.made.forked_by_thread.push(at, thread);
        }
        self.note_forker(self.made.tasks.len() - 1, fork);
    }

    /// Keeps who forked a task, if that is not whom [`Recording::forker_of`] takes for it otherwise.
    fn note_forker(&mut self, task: usize, fork: &layout::Fork) {
        let Some(forker) = self.task_of_serial.get(fork.head.task) else { return };
        if self.made.waits_are_known() && self.made.forker_of(task) != Some(forker) {
            self.made.forkers.push(task, number(forker));
        }
    }

    fn exit(&mut self, exit: &layout::Exit) {
        self.made.counts.exits += 1;
        self.note_time(exit.head.time_ns);
        let task = match self.task_of_serial.get(exit.head.task) {
            Some(task) => task,
            None => {
                self.made.counts.orphan_exits += 1;
                let process = match self.process(exit.process) {
                    Some(process) => process,
                    None => {
                        let program = self.number_of(Program::unknown(&comm(&exit.comm)));
                        let pid = exit.tgid.cast_unsigned();
                        let holder = self.process_of_pid.get(pid);
                        let at =
                            self.add_process(exit.process, exit.tgid, exit.start_ns, None, program);
                        // It has ended, and another may have its pid by now.
                        if let Some(holder) = holder {
                            self.process_of_pid.insert(pid, holder);
                        }
                        at
                    }
                };
                // The first task of a new process was added along with it.
                match self.task_of_serial.get(exit.head.task) {
                    Some(task) => task,
                    None => self.add_task(exit.head.task, exit.tid, process, exit.start_ns, true),
                }
            }
        };
        let process = self.made.tasks[task].process();
        self.made.blind.note_exit(process, exit.bits);
        self.made.tasks[task].ends(exit.head.time_ns, exit.into());
        if self.made.processes[process].ends(exit) {
            self.note_reaper(process, exit.parent_tgid);
        }
        if exit.bits & EXIT_OOM != 0 {
            self.made.oom_killed.push(number(process));
        }
        self.made.counts.rss_bounds += u64::from(exit.bits & EXIT_RSS_BOUND != 0);
    }

    fn add_process(
        &mut self,
        serial: u32,
        pid: i32,
        born_ns: u64,
        parent: Option<usize>,
        program: usize,
    ) -> usize {
        let at = self.made.processes.len();
        self.made.processes.push(Process::new(serial, pid, born_ns, parent, program));
        self.process_of_pid.insert(pid.cast_unsigned(), at);
        // The first thread of a group has the group's id as its own.
        self.add_task(serial, pid, at, born_ns, false);
        at
    }

    fn add_task(
        &mut self,
        serial: u32,
        tid: i32,
        process: usize,
        born_ns: u64,
        is_thread: bool,
    ) -> usize {
        let at = self.made.tasks.len();
        self.made.tasks.push(Task::new(serial, tid, process, born_ns, is_thread));
        self.task_of_serial.insert(serial, at);
        self.made.processes[process].add_task(at);
        at
    }

    fn number_of(&mut self, program: Program) -> usize {
        self.programs.number_of(program) as usize
    }

    /// A time of the recording, in nanoseconds since 1970.
    fn unix_ns(&self, time_ns: u64) -> u64 {
        let header = &self.made.header;
        header.started_unix_ns.saturating_add(time_ns.saturating_sub(header.started_ns))
    }

    fn note_time(&mut self, time_ns: u64) {
        self.made.first_ns = self.made.first_ns.min(time_ns);
        self.made.last_ns = self.made.last_ns.max(time_ns);
    }
}

impl Register for Loader<'_> {
    type Process = usize;

    #[inline]
    fn process(&self, serial: u32) -> Option<usize> {
        let process = self.made.tasks[self.task_of_serial.get(serial)?].process();
        (self.made.processes[process].serial == serial).then_some(process)
    }

    fn alive(&self, pid: i32) -> Option<usize> {
        let process = self.process_of_pid.get(pid.cast_unsigned())?;
        self.made.processes[process].ended_ns().is_none().then_some(process)
    }
}

/// An index in the compact form used where there are many.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crate::bin_series::BinSeries;
    use crate::testing::{BEGIN_NS, MS, S, Scene};

    #[test]
    fn what_was_there_before_was_not_born_here() {
        let mut scene = Scene::new(1, S);
        // It was created 90 s before, and it forks once.
        scene.there_before(0, 2, 90 * S).fork(S, 2, 3).exit(2 * S, 3, (MS, 0));
        scene.exit(5 * S, 2, (MS, 0)).exit(5 * S, 1, (0, 0));
        let recording = scene.load(None);
        let processes = &recording.processes;
        let lives: Vec<_> = processes.iter().map(|process| process.life_ns()).collect();
        assert_eq!(lives, [Some(5 * S), Some(95 * S), Some(S)]);
        let there: Vec<_> = processes.iter().map(|process| process.was_there()).collect();
        assert_eq!(there, [false, true, false]);
        assert_eq!(processes[1].started_ns(), Some(BEGIN_NS - 90 * S));
        // The command and the fork.
        let born: f64 =
            recording.bins.categories.iter().map(|one| one.processes.iter().sum::<f64>()).sum();
        assert_eq!((born, recording.bins.of(BinSeries::Execs).iter().sum::<f64>()), (2.0, 0.0));
    }

    /// A process is found whose parent has the pid of one that has ended: that one is another.
    #[test]
    fn the_ended_are_nobodys_parents() {
        let mut scene = Scene::new(1, S);
        scene.fork(0, 1, 2).exit(S, 2, (0, 0));
        scene.there_before_with(2 * S, 3, 0, |attach| {
            attach.parent_tgid = crate::testing::pid_of(2);
        });
        scene.there_before_with(2 * S, 4, 0, |attach| {
            attach.parent_tgid = crate::testing::pid_of(1);
        });
        let recording = scene.load(None);
        let parents: Vec<_> = recording.processes.iter().map(|process| process.parent()).collect();
        assert_eq!(parents, [None, Some(0), None, Some(0)]);
        assert_eq!(recording.processes[2].started_ns(), None);
    }
}
