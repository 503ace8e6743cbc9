//! Reading a trace into tables: lifecycle first, then look-ups, then samples.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use proctrace_replay::{CpuTime, records, scale};
use proctrace_trace::{Damage, Reader};
use proctrace_wire::layout::{
    self, ATTACH_ZOMBIE, EXEC_BEFORE, EXIT_AUTOREAP, EXIT_PROCESS, EXIT_RELEASED, MISS_PATH_FAULT,
};
use proctrace_wire::{Call, Family, Record, Stream};

use crate::bins::{Bins, Point, Quantity};
use crate::blind::Blindness;
use crate::classify::{Classification, Examiner, Program, Programs, Rules};
use crate::error::AnalysisError;
use crate::fast::FastMap;
use crate::loading::{Loading, Missed, Start};
use crate::membership::Membership;
use crate::names::{Names, comm, directory};
use crate::recording::{Counts, End, Look, Miss, Process, Recording, Run, Task};
use crate::serials::Serials;
use crate::template::template;
use crate::tracks::Tracks;
use crate::usage::Usage;
use crate::watch::Watch;

/// errno(3).
const EINVAL: u16 = 22;

impl Recording {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// When it is no trace, or one that this version cannot read. What is damaged or missing in it
    /// is no error; [`Recording::damage`] and the laws tell.
    pub fn load(path: impl AsRef<Path>, rules: &Rules) -> Result<Self, AnalysisError> {
        let mut reader = Reader::open(path)?;
        let mut loader = Loader::new(&reader, rules);
        loader.read_lifecycle(&mut reader);
        loader.note_damage(&reader);
        let (classification, roles) = loader.classify();
        loader.end_processes();
        loader.find_reapers();
        loader.prepare_bins();
        loader.read_lookups(&mut reader);
        loader.note_damage(&reader);
        loader.prepare_watch(&reader);
        loader.read_samples(&mut reader);
        loader.note_damage(&reader);
        loader.sum_up_processes();
        Ok(loader.finish(&reader, classification, roles))
    }
}

struct Loader<'a> {
    rules: &'a Rules,
    examiner: Examiner<'a>,
    page_bytes: u64,
    programs: Programs,
    processes: Vec<Process>,
    process_of_serial: Serials,
    /// The latest process with a pid.
    process_of_pid: FastMap<i32, usize>,
    tasks: Vec<Task>,
    task_of_serial: Serials,
    counts: Counts,
    undecodable: u64,
    damage: BTreeSet<Damage>,
    directories: Vec<Vec<u8>>,
    misses: FastMap<Miss, u32>,
    runs: Vec<Run>,
    starts: Vec<Start>,
    templates: Names,
    categories: Names,
    category_of: Vec<usize>,
    fork_times: Vec<u64>,
    bins: Bins,
    tracks: Tracks,
    watch: Watch,
    ticks: Vec<layout::Tick>,
    blind: Blindness,
    looks: Vec<Look>,
    /// Points at which tasks that were attached begin.
    attach_points: FastMap<usize, Point>,
    peak_running: Option<u64>,
    first_ns: u64,
    last_ns: u64,
    interval_ns: u64,
}

impl<'a> Loader<'a> {
    fn new(reader: &Reader<BufReader<File>>, rules: &'a Rules) -> Self {
        let header = reader.header();
        Self {
            rules,
            examiner: Examiner::new(rules),
            page_bytes: u64::from(header.page_bytes),
            programs: Programs::default(),
            processes: Vec::new(),
            process_of_serial: Serials::default(),
            process_of_pid: FastMap::default(),
            tasks: Vec::new(),
            task_of_serial: Serials::default(),
            counts: Counts::default(),
            undecodable: 0,
            damage: BTreeSet::new(),
            directories: Vec::new(),
            misses: FastMap::default(),
            runs: Vec::new(),
            starts: Vec::new(),
            templates: Names::default(),
            categories: Names::default(),
            category_of: Vec::new(),
            fork_times: Vec::new(),
            bins: Bins::default(),
            tracks: Tracks::default(),
            watch: Watch::default(),
            ticks: Vec::new(),
            blind: Blindness::default(),
            looks: Vec::new(),
            attach_points: FastMap::default(),
            peak_running: None,
            first_ns: u64::MAX,
            last_ns: 0,
            interval_ns: header.interval_ns,
        }
    }

    fn read_lifecycle(&mut self, reader: &mut Reader<BufReader<File>>) {
        let decoded = records(reader, Stream::Lifecycle, |record| self.take(record));
        self.undecodable += decoded.undecodable;
        // What is alive ran on to the end.
        let ended_ns = reader.trailer().map(|trailer| trailer.ended_ns);
        if self.tasks.iter().any(|task| task.end.is_none() && !task.zombie) {
            self.last_ns = self.last_ns.max(ended_ns.unwrap_or(0));
        }
        if self.first_ns == u64::MAX {
            self.first_ns = reader.header().started_ns;
            self.last_ns = self.first_ns;
        }
    }

    fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Attach(attach) => self.attach(&attach),
            Record::Fork(fork) => self.fork(&fork),
            Record::Exec(exec) => self.exec(&exec),
            Record::Exit(exit) => self.exit(&exit),
            Record::ExecFailed(miss, _) => {
                self.counts.execs_failed += 1;
                if self.task_of_serial.get(miss.head.task).is_none() {
                    self.counts.orphans += 1;
                }
            }
            Record::Blind(blind) => {
                if let Some(process) = self.process_of_serial.get(blind.process) {
                    self.blind.note(process, blind.what);
                }
            }
            Record::Rename(rename) => {
                // Threads have names of their own.
                if rename.head.task == rename.process
                    && let Some(process) = self.process_of_serial.get(rename.process)
                {
                    let run = self.processes[process].run;
                    self.examiner.rename(number(process), run, &comm(&rename.comm));
                }
            }
            Record::Workdir(workdir, path) => {
                if let Some(process) = self.process_of_serial.get(workdir.process) {
                    let run = self.processes[process].run;
                    self.examiner.directory(number(process), run, path);
                }
            }
            Record::Loss(loss) => {
                self.counts.losses.insert((loss.kind, loss.reason, loss.cpu), loss.count);
            }
            _ => {}
        }
    }

    fn attach(&mut self, attach: &layout::Attach) {
        self.counts.attaches += 1;
        self.note_time(attach.head.time_ns);
        let process = self.process_of_serial.get(attach.process);
        let task = match process {
            Some(process) if attach.head.task != attach.process => {
                self.add_task(attach.head.task, process, attach.head.time_ns, true)
            }
            _ => {
                let program = self.number_of(Program::unknown(&comm(&attach.comm)));
                // Its parent, if that is followed, has been attached before it in nearly all cases.
                let parent = self.process_of_pid.get(&attach.parent_tgid).copied();
                let at = self.add_process(
                    attach.head.task,
                    attach.tgid,
                    attach.head.time_ns,
                    parent,
                    program,
                );
                self.processes[at].waited_before_ns =
                    attach.waited_utime_ns.saturating_add(attach.waited_stime_ns);
                self.processes[at].tasks[0]
            }
        };
        let before = Usage::from(attach);
        if before != Usage::default() {
            self.tasks[task].before = Some(Box::new(before));
        }
        self.tasks[task].zombie = attach.bits & ATTACH_ZOMBIE != 0;
        self.attach_points.insert(task, Point::of_attach(attach));
    }

    fn exec(&mut self, exec: &proctrace_wire::Exec<'_>) {
        let happened_here = exec.fixed.bits & EXEC_BEFORE == 0;
        self.counts.execs += u64::from(happened_here);
        self.note_time(exec.fixed.head.time_ns);
        let process = match self.process_of_serial.get(exec.fixed.process) {
            Some(process) => {
                self.processes[process].execs += 1;
                process
            }
            None => {
                self.counts.orphans += 1;
                let ExecHead { process, tgid, time_ns } = ExecHead::of(exec);
                let program = self.number_of(Program::unknown(&comm(&exec.fixed.comm)));
                self.add_process(process, tgid, time_ns, None, program)
            }
        };
        self.blind.note_exec(process, exec);
        self.examiner.exec(exec);
        self.processes[process].run = Some(number(self.runs.len()));
        self.runs.push(Run {
            time_ns: exec.fixed.head.time_ns,
            process: number(process),
            // Known only when all have been seen.
            program: 0,
            template: self.templates.number_of(&template(exec.argv)),
            happened_here,
            before_run_ns: exec.fixed.run_ns,
            before_user_ns: exec.fixed.utime_ns,
            before_system_ns: exec.fixed.stime_ns,
        });
    }

    /// Decides what each process ran, now that all programs are known.
    fn classify(&mut self) -> (Classification, Names) {
        let examiner = std::mem::replace(&mut self.examiner, Examiner::new(self.rules));
        examiner.resolve(&mut self.runs, &mut self.processes, &mut self.programs)
    }

    fn fork(&mut self, fork: &layout::Fork) {
        self.counts.forks += 1;
        self.note_time(fork.head.time_ns);
        self.fork_times.push(fork.head.time_ns);
        let forker = self.process_of_serial.get(fork.process);
        if fork.child != fork.child_process
            && let Some(process) = self.process_of_serial.get(fork.child_process)
        {
            self.add_task(fork.child, process, fork.head.time_ns, true);
            return;
        }
        // CLONE_PARENT makes a sibling.
        let parent = match forker {
            Some(at) if self.processes[at].pid != fork.parent_tgid => self.processes[at].parent,
            forker => forker,
        };
        let program = match forker {
            Some(at) => self.processes[at].program,
            None => self.number_of(Program::unknown(&comm(&fork.comm))),
        };
        let at = self.add_process(fork.child, fork.child_tgid, fork.head.time_ns, parent, program);
        self.processes[at].spawned_by = forker.map(|at| self.processes[at].program);
        self.processes[at].spawned_in = forker.and_then(|at| self.processes[at].run);
        self.processes[at].run = self.processes[at].spawned_in;
    }

    fn exit(&mut self, exit: &layout::Exit) {
        self.counts.exits += 1;
        self.note_time(exit.head.time_ns);
        let task = match self.task_of_serial.get(exit.head.task) {
            Some(task) => task,
            None => {
                self.counts.orphan_exits += 1;
                let process = self.process_of_serial.get(exit.process);
                match process {
                    Some(process) => self.add_task(exit.head.task, process, exit.start_ns, true),
                    None => {
                        let program = self.number_of(Program::unknown(&comm(&exit.comm)));
                        self.add_process(exit.process, exit.tgid, exit.start_ns, None, program);
                        match self.task_of_serial.get(exit.head.task) {
                            Some(task) => task,
                            None => {
                                let process = self.processes.len() - 1;
                                self.add_task(exit.head.task, process, exit.start_ns, true)
                            }
                        }
                    }
                }
            }
        };
        let cpu = scale(exit.run_ns, exit.utime_ns, exit.stime_ns);
        self.tasks[task].end = Some(End { time_ns: exit.head.time_ns, cpu, record: exit.into() });
    }

    fn add_process(
        &mut self,
        serial: u32,
        pid: i32,
        born_ns: u64,
        parent: Option<usize>,
        program: usize,
    ) -> usize {
        let at = self.processes.len();
        self.processes.push(Process {
            serial,
            pid,
            parent,
            reaper: None,
            spawned_by: None,
            spawned_in: None,
            run: None,
            role: None,
            depth: parent.map_or(0, |parent| self.processes[parent].depth + 1),
            born_ns,
            ended_ns: None,
            status: None,
            last_parent_pid: None,
            program,
            execs: 0,
            tasks: Vec::with_capacity(1),
            cpu: CpuTime::default(),
            before_ns: 0,
            waited_before_ns: 0,
            tail_ns: 0,
            waited_ns: None,
            autoreaped: false,
            maxrss_bytes: 0,
        });
        self.process_of_serial.insert(serial, at);
        self.process_of_pid.insert(pid, at);
        self.add_task(serial, at, born_ns, false);
        at
    }

    fn add_task(&mut self, serial: u32, process: usize, born_ns: u64, is_thread: bool) -> usize {
        let at = self.tasks.len();
        self.tasks.push(Task {
            serial,
            process,
            born_ns,
            end: None,
            seen: None,
            is_thread,
            before: None,
            zombie: false,
        });
        self.task_of_serial.insert(serial, at);
        self.processes[process].tasks.push(at);
        at
    }

    fn number_of(&mut self, program: Program) -> usize {
        self.programs.number_of(program) as usize
    }

    fn note_time(&mut self, time_ns: u64) {
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// Finds who could wait for each process: pids are used again, so it must have been alive then.
    fn find_reapers(&mut self) {
        let mut by_pid: Vec<(i32, u64, u32)> = self
            .processes
            .iter()
            .enumerate()
            .map(|(at, process)| {
                (process.pid, process.born_ns, u32::try_from(at).unwrap_or(u32::MAX))
            })
            .collect();
        by_pid.sort_unstable();
        let reapers: Vec<Option<usize>> = self
            .processes
            .iter()
            .map(|process| {
                let parent_pid = process.last_parent_pid?;
                let ended_ns = process.ended_ns?;
                // The last of that pid that was there by then.
                let after = by_pid.partition_point(|(pid, born_ns, _)| {
                    (*pid, *born_ns) <= (parent_pid, ended_ns)
                });
                let (pid, _, at) = by_pid.get(after.checked_sub(1)?)?;
                let parent = self.processes.get(*at as usize)?;
                let lives = parent.ended_ns.is_none_or(|gone_ns| gone_ns >= ended_ns);
                (*pid == parent_pid && lives).then_some(*at as usize)
            })
            .collect();
        for (process, reaper) in self.processes.iter_mut().zip(reapers) {
            process.reaper = reaper;
        }
    }

    /// From the ends of tasks to those of processes.
    fn end_processes(&mut self) {
        for process in &mut self.processes {
            let tasks = || process.tasks.iter().map(|task| &self.tasks[*task]);
            if tasks().all(|task| task.end.is_some() || task.zombie) {
                process.ended_ns = tasks().filter_map(|task| Some(task.end?.time_ns)).max();
            }
            // Kernels before 6.16 may call several threads the last; the latest is right.
            let last = tasks()
                .filter_map(|task| task.end.as_ref())
                .filter(|end| end.record.bits & EXIT_PROCESS != 0)
                .max_by_key(|end| end.time_ns);
            if let Some(last) = last {
                let record = &last.record;
                process.status = Some(record.status);
                process.last_parent_pid = Some(record.parent_tgid);
                process.autoreaped = record.bits & EXIT_AUTOREAP != 0;
                process.waited_ns =
                    Some(record.waited_utime_ns.saturating_add(record.waited_stime_ns));
                process.maxrss_bytes = record.maxrss_pages.saturating_mul(self.page_bytes);
            }
        }
    }

    /// From the tasks' figures to the processes'.
    fn sum_up_processes(&mut self) {
        for process in &mut self.processes {
            let tasks = || process.tasks.iter().map(|task| &self.tasks[*task]);
            let used = tasks().fold(Usage::default(), |sum, task| sum.plus(&task.used()));
            process.cpu = scale(used.run_ns, used.utime_ns, used.stime_ns);
            process.before_ns = tasks()
                .filter_map(|task| task.before.as_ref())
                .fold(0, |sum: u64, before| sum.saturating_add(before.run_ns));
            process.tail_ns = tasks()
                .filter_map(|task| task.end.as_ref())
                .filter(|end| end.record.bits & EXIT_RELEASED != 0)
                .map(|end| end.record.run_ns.saturating_sub(end.record.run_at_exit_ns))
                .fold(0, u64::saturating_add);
            // The end of a process has told it, if there was one.
            if process.status.is_none() {
                process.maxrss_bytes = tasks()
                    .filter_map(|task| Some(task.seen.as_ref()?.rss_pages))
                    .max()
                    .unwrap_or(0)
                    .saturating_mul(self.page_bytes);
            }
        }
    }

    fn read_lookups(&mut self, reader: &mut Reader<BufReader<File>>) {
        reader.rewind();
        let mut numbers: FastMap<Vec<u8>, u32> = FastMap::default();
        let Self {
            task_of_serial, tasks, counts, directories, misses, bins, runs, processes, ..
        } = self;
        let mut loading = Loading::new(runs, processes.len());
        let decoded = records(reader, Stream::Lookups, |record| {
            let Record::LookupFailed(miss, path) = record else { return };
            counts.lookups_failed += 1;
            let known = Family::of(Call::from_number(miss.call));
            let family = Family::ALL.iter().position(|family| Some(*family) == known);
            if known == Some(Family::Readlink) && miss.error == EINVAL {
                // The path was found: nothing was looked for in vain.
                counts.not_links += 1;
                return;
            }
            bins.add_event(Quantity::LookupsFailed, miss.head.time_ns);
            if let Some(family) = family {
                counts.by_family[family] += 1;
            }
            let Some(task) = task_of_serial.get(miss.head.task) else {
                counts.orphans += 1;
                return;
            };
            let name: &[u8] = if miss.bits & MISS_PATH_FAULT != 0 { b"?" } else { directory(path) };
            let number = match numbers.get(name) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(directories.len()).unwrap_or(u32::MAX);
                    directories.push(name.to_vec());
                    numbers.insert(name.to_vec(), number);
                    number
                }
            };
            let time_ns = miss.head.time_ns;
            let missed = Missed { time_ns, family: known, path, directory: number };
            loading.add(tasks[task].process, missed, directories);
            let process = u32::try_from(tasks[task].process).unwrap_or(u32::MAX);
            let family = family.and_then(|family| u8::try_from(family).ok()).unwrap_or(u8::MAX);
            let miss = Miss { process, directory: number, errno: miss.error, family };
            *misses.entry(miss).or_insert(0) += 1;
        });
        self.starts = loading.into_inner();
        self.undecodable += decoded.undecodable;
    }

    /// Whom samplers of the command's tree could see, and until when.
    fn prepare_watch(&mut self, reader: &Reader<BufReader<File>>) {
        let launched = !reader.header().command.is_empty();
        let membership = Membership::of(&self.processes, launched);
        let payload = reader.trailer().and_then(|trailer| trailer.payload.as_ref());
        let until_ns = payload
            .map(|payload| payload.exited_ns)
            .or_else(|| self.processes.first().filter(|_| launched)?.ended_ns)
            .unwrap_or(self.last_ns);
        self.watch =
            Watch::new(self.processes.len(), &membership, &self.bins, self.last_ns, until_ns);
    }

    /// Bins for everything that the other streams tell; the lives of tasks are known by now.
    fn prepare_bins(&mut self) {
        for program in self.programs.iter() {
            let number = self.categories.number_of(program.category());
            self.category_of.push(number as usize);
        }
        let mut bins =
            Bins::new(self.first_ns, self.last_ns, self.interval_ns, self.categories.len());
        for time_ns in std::mem::take(&mut self.fork_times) {
            bins.add_event(Quantity::Forks, time_ns);
        }
        for run in &self.runs {
            bins.add_event(Quantity::Execs, run.time_ns);
        }
        for process in &self.processes {
            bins.add_process(self.category_of[process.program], process.born_ns);
        }
        for task in &self.tasks {
            if let Some(end) = &task.end {
                bins.add_event(Quantity::Exits, end.time_ns);
            }
            let end_ns = task.end.as_ref().map_or(self.last_ns, |end| end.time_ns);
            bins.add_life(task.born_ns, end_ns);
        }
        self.tracks = Tracks::choose(&self.processes, &self.tasks, &bins, self.last_ns);
        self.bins = bins;
    }

    fn read_samples(&mut self, reader: &mut Reader<BufReader<File>>) {
        reader.rewind();
        // Where a task stands that was sampled or attached; few are, for most are gone before the
        // next sample.
        let mut points = std::mem::take(&mut self.attach_points);
        let Self {
            bins,
            tracks,
            tasks,
            processes,
            category_of,
            task_of_serial,
            process_of_serial,
            looks,
            ticks,
            peak_running,
            watch,
            ..
        } = self;
        let mut grow = |bins: &mut Bins, process: usize, from: &Point, to: Point| {
            let category = category_of[processes[process].program];
            let to =
                bins.add_growth(from, to, category, |bin, cpu_ns| tracks.add(process, bin, cpu_ns));
            watch.add(
                bins,
                (process, &processes[process]),
                (from.time_ns, to.time_ns),
                to.cpu_since(from),
            );
            to
        };
        let decoded = records(reader, Stream::Samples, |record| match record {
            Record::Sample(sample) => {
                if let Some(task) = task_of_serial.get(sample.head.task) {
                    let born = Point::born(tasks[task].born_ns);
                    let point = points.entry(task).or_insert(born);
                    *point = grow(bins, tasks[task].process, point, Point::of_sample(&sample));
                    if tasks[task].end.is_none() {
                        tasks[task].seen = Some(Box::new(sample));
                    }
                }
            }
            Record::Memory(memory) => {
                if let Some(process) = process_of_serial.get(memory.process) {
                    looks.push(Look { process, record: memory });
                }
            }
            Record::Tick(tick) => {
                bins.add_tick(&tick);
                let running = u64::from(tick.running);
                *peak_running = Some(peak_running.map_or(running, |peak| peak.max(running)));
                ticks.push(tick);
            }
            _ => {}
        });
        self.undecodable += decoded.undecodable;
        for (at, task) in tasks.iter().enumerate() {
            if let Some(end) = &task.end {
                let point = points.get(&at).copied().unwrap_or(Point::born(task.born_ns));
                grow(bins, task.process, &point, Point::of_end(end));
            }
        }
        bins.finish_ticks();
    }

    /// Each pass unpacks the blocks of one stream and so finds the damage in these; what lies
    /// between blocks each of them finds.
    fn note_damage(&mut self, reader: &Reader<BufReader<File>>) {
        self.damage.extend(reader.damage().iter().cloned());
    }

    fn finish(
        self,
        reader: &Reader<BufReader<File>>,
        classification: Classification,
        roles: Names,
    ) -> Recording {
        Recording {
            header: reader.header().clone(),
            trailer: reader.trailer().cloned(),
            damage: self.damage.into_iter().collect(),
            undecodable: self.undecodable,
            programs: self.programs.into_inner(),
            classification,
            processes: self.processes,
            tasks: self.tasks,
            runs: self.runs,
            starts: self.starts,
            templates: self.templates.into_inner(),
            roles: roles.into_inner(),
            categories: self.categories.into_inner(),
            category_of: self.category_of,
            counts: self.counts,
            directories: self.directories,
            misses: self.misses,
            bins: self.bins,
            tracks: self.tracks.into_inner(),
            watch: self.watch,
            ticks: self.ticks,
            blind: self.blind,
            looks: self.looks,
            peak_running: self.peak_running,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        }
    }
}

/// An index as it is kept where there are many.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What of an exec record a lost fork has to be made up from.
struct ExecHead {
    process: u32,
    tgid: i32,
    time_ns: u64,
}

impl ExecHead {
    fn of(exec: &proctrace_wire::Exec<'_>) -> Self {
        let fixed = &exec.fixed;
        Self { process: fixed.process, tgid: fixed.tgid, time_ns: fixed.head.time_ns }
    }
}
