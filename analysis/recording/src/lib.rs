//! A recording as in-memory tables, ready for analysis.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(missing_docs, reason = "fields are named after what they hold, with their unit")]

pub mod bin_series;
pub mod bins;
pub mod books;
pub mod costs;
pub mod counts;
pub mod error;
pub mod exit;
pub mod knowledge;
pub mod last;
pub mod lines;
pub mod live_steps;
pub mod load;
pub mod marks;
pub mod membership;
pub mod misses;
pub mod opened;
pub mod order;
pub mod process;
pub mod run_directories;
pub mod split;
pub mod steps;
pub mod stored_usage;
#[cfg(test)]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is the crate of scenes, for the tests of this one"
)]
#[path = "../../scenes/src/lib.rs"]
mod testing;
pub mod tracks;
pub mod waits;
pub mod watch;

#[cfg(test)]
extern crate self as proctrace_recording;

use std::ops::Range;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_classify::{Classification, Program};
use proctrace_replay::{CpuTime, scale};
use proctrace_trace::{Damage, Header, Knowledge, Trailer};
use proctrace_wire::Quantity;

use crate::bins::Bins;
use crate::counts::{Counts, Totals};
use crate::exit::Exit;
use crate::knowledge::Knows;
use crate::last::{LastExecs, LastMisses};
use crate::load::starts::Start;
use crate::load::unseen::Blindness;
use crate::marks::{Marks, Phases};
use crate::misses::{LookupTimes, MissedPaths, Misses};
use crate::opened::OpenedFiles;
use crate::process::{MemoryReading, Process, ProgramRun, Task};
use crate::run_directories::RunDirectories;
use crate::split::{Divided, Split, Ticks};
use crate::steps::Steps;
use crate::tracks::Track;
use crate::waits::{SentSignal, Wait};
use crate::watch::Watch;
use proctrace_replay::Usage;

/// The contents of one trace, read once.
#[derive(Debug)]
pub struct Recording {
    /// Header of the trace: where and how it was recorded.
    pub header: Header,
    /// Trailer of the trace: how it ended; `None` if it was cut short.
    pub trailer: Option<Trailer>,
    /// True if the recorder was still writing the trace when it was opened, as far as the caller
    /// knows: [`Recording::load`] sets false.
    pub recording_now: bool,
    /// Damaged parts that were skipped.
    pub damage: Vec<Damage>,
    /// Records that could not be decoded.
    pub undecodable: u64,
    /// Every program that ran, by number.
    pub programs: Vec<Program>,
    /// Classification of its programs.
    pub classification: Classification,
    /// Processes in order of birth.
    pub processes: Vec<Process>,
    /// Tasks in order of birth.
    pub tasks: Vec<Task>,
    /// Every exec, in order of time.
    pub runs: Vec<ProgramRun>,
    /// The failed look-ups of each run: while it was loading, and in total.
    pub starts: Vec<Start>,
    /// A hash for each run of its exact arguments, working directory and search variables, to tell repeated
    /// commands; 0 where the recording does not have all of the arguments. The seed is random.
    pub calls: Vec<u64>,
    /// Command-line templates, by number.
    pub templates: Vec<String>,
    /// Command lines as they were.
    pub lines: lines::Lines,
    /// Roles of processes, by number.
    pub roles: Vec<String>,
    /// Names of categories, by number.
    pub categories: Vec<String>,
    /// The category of each program.
    pub category_of: Vec<usize>,
    pub counts: Counts,
    /// Directories of failed look-ups, by number.
    pub directories: Vec<Vec<u8>>,
    /// Failed look-ups by process, directory and errno.
    pub misses: Misses,
    /// The same by path, over all processes.
    pub missed_paths: MissedPaths,
    /// The last of each process that may be why it failed.
    pub last_misses: LastMisses,
    /// In which directory each program was run, if opens were recorded.
    pub run_directories: RunDirectories,
    /// The last failed exec of each process that has one.
    pub last_execs: LastExecs,
    /// Durations of the failed look-ups, as far as they were timed.
    pub lookup_times: LookupTimes,
    /// Opened files; empty unless recorded with --opens.
    pub opened: OpenedFiles,
    /// Moments that the payload named, and what happened between them.
    pub marks: Marks,
    pub phases: Phases,
    /// Units of work, as far as they are named.
    pub steps: Steps,
    pub bins: Bins,
    /// CPU time series of the processes that used most CPU time.
    pub tracks: Vec<Track>,
    /// Usage that samplers of /proc would have missed.
    pub watch: Watch,
    /// Knowledge of each quantity.
    pub knows: Knows,
    /// Division of CPU time into user and system time.
    pub split: Split,
    /// Every pass of the sampler.
    pub ticks: Vec<proctrace_wire::layout::Tick>,
    /// Known blind spots of the recording.
    pub blind: Blindness,
    pub totals: Totals,
    /// Memory readings of processes, in order of time.
    pub memory_readings: Vec<MemoryReading>,
    /// Times off the CPU, by task and then in order of time.
    pub waits: Vec<Wait>,
    /// Tasks and their forkers, by task, where [`Recording::forker_of`] could not tell otherwise.
    pub forkers: Vec<(u32, u32)>,
    /// Processes that shared the memory of their forker until their exec: vfork(2), posix_spawn(3).
    pub sharers: Bits,
    /// Signals that usually end a process, in order of time.
    pub signals: Vec<SentSignal>,
    /// Processes chosen by the out-of-memory killer.
    pub oom_killed: Vec<u32>,
    /// Maximum tasks running or runnable in one sample.
    pub peak_running: Option<u64>,
    /// The command's own end, if processes of the recording went on noticeably longer.
    pub(crate) left_since_ns: Option<u64>,
    /// The command lines of processes that outlived their parent, by process: a recording has only templates of others.
    pub left_lines: FastMap<usize, String>,
    /// Times of the first and the last record.
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Recording {
    /// A recording without any record.
    pub fn empty(header: Header) -> Self {
        Self {
            knows: Knows::of(&header),
            header,
            trailer: None,
            recording_now: false,
            damage: Vec::new(),
            undecodable: 0,
            programs: Vec::new(),
            classification: Classification::default(),
            processes: Vec::new(),
            tasks: Vec::new(),
            runs: Vec::new(),
            starts: Vec::new(),
            calls: Vec::new(),
            templates: Vec::new(),
            lines: lines::Lines::default(),
            roles: Vec::new(),
            categories: Vec::new(),
            category_of: Vec::new(),
            counts: Counts::default(),
            directories: Vec::new(),
            misses: Misses::default(),
            missed_paths: MissedPaths::default(),
            last_misses: LastMisses::default(),
            run_directories: RunDirectories::default(),
            last_execs: LastExecs::default(),
            lookup_times: LookupTimes::default(),
            opened: OpenedFiles::default(),
            marks: Marks::default(),
            phases: Phases::default(),
            steps: Steps::default(),
            bins: Bins::default(),
            tracks: Vec::new(),
            watch: Watch::default(),
            split: Split::default(),
            ticks: Vec::new(),
            blind: Blindness::default(),
            totals: Totals::default(),
            memory_readings: Vec::new(),
            waits: Vec::new(),
            forkers: Vec::new(),
            sharers: Bits::default(),
            signals: Vec::new(),
            oom_killed: Vec::new(),
            peak_running: None,
            left_since_ns: None,
            left_lines: FastMap::default(),
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    /// The program that a process ran last, or its forker's if it never called exec.
    pub fn program_of(&self, process: &Process) -> &Program {
        &self.programs[process.program()]
    }

    /// Peak RSS of the program that a process ran last, if its end or a reading was recorded; of live processes the
    /// largest reading.
    pub fn known_peak_rss_bytes(&self, process: &Process) -> Option<u64> {
        let peak_bytes = self.peak_rss_bytes(process);
        (process.status().is_some() || peak_bytes > 0).then_some(peak_bytes)
    }

    /// Failed look-ups of these processes; none of those whose look-ups are not seen: 32-bit programs make other system
    /// calls, which no hook records.
    pub fn failed_lookups_of(&self, range: Range<usize>) -> Vec<Option<u64>> {
        let counts = self.misses.by_process(range.clone());
        let unseen = &self.blind.compat;
        // What it ran before may be of 64 bits, and was seen.
        let known =
            |(at, count): (usize, u64)| (count > 0 || !unseen.contains(&at)).then_some(count);
        range.zip(counts).map(known).collect()
    }

    /// The sum over its tasks of what they count and tell at their end; `None` if one has not ended.
    pub fn counted_by(&self, process: &Process, of: fn(&Exit) -> u32) -> Option<u64> {
        process.tasks().try_fold(0_u64, |sum, task| {
            let end = self.tasks[task].end()?;
            Some(sum.saturating_add(of(&end.record).into()))
        })
    }

    /// Peak RSS of the program that a process ran last; 0 where it is not known.
    pub fn peak_rss_bytes(&self, process: &Process) -> u64 {
        process.maxrss_pages().saturating_mul(self.header.page_bytes.into())
    }

    /// Usage of a process's tasks while they were followed.
    pub fn used_by(&self, process: &Process) -> Usage {
        let tasks = process.tasks().map(|task| self.tasks[task].used());
        tasks.fold(Usage::default(), |sum, used| sum.plus(used))
    }

    /// The ticks that hit a process's tasks while they were followed.
    pub fn ticks_of(&self, process: &Process) -> Ticks {
        let ticks = process.tasks().map(|task| self.tasks[task].cpu_used().1);
        ticks.fold(Ticks::default(), Ticks::plus)
    }

    /// Its CPU time as the kernel splits it for this process alone: the figures of wait(2) and
    /// /proc/PID/stat, which are biased for processes that few ticks hit.
    pub fn told_of(&self, process: &Process) -> CpuTime {
        let ticks = self.ticks_of(process);
        scale(process.cpu.total_ns(), ticks.user_ns, ticks.system_ns)
    }

    /// Its CPU time and ticks, to be summed over groups.
    pub fn divided_of(&self, process: &Process) -> Divided {
        Divided { cpu: process.cpu, ticks: self.ticks_of(process) }
    }

    /// Number of forks by which each process is away from the command, or from the ancestor without
    /// a recorded parent.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.processes.len());
        for process in &self.processes {
            // Parents precede their children, except for processes that predate the recording.
            let parent = process.parent().and_then(|parent| depths.get(parent));
            depths.push(parent.map_or(0, |depth| depth + 1));
        }
        depths
    }

    /// True if ticks were recorded, however few of them there are.
    pub fn knows_ticks(&self) -> bool {
        let recorded = !matches!(self.header.knows(Quantity::Split), Knowledge::Absent { .. });
        recorded && self.knows.all(&[Quantity::Cpu])
    }

    /// True if times off the CPU were recorded.
    pub(crate) fn waits_are_known(&self) -> bool {
        self.knows.all(&[Quantity::Waits])
    }

    /// Index of the task that forked a task; `None` for the command, or where it is not known.
    pub fn forker_of(&self, task: usize) -> Option<usize> {
        let exception = self.forkers.binary_search_by_key(&task, |(task, _)| *task as usize);
        if let Ok(at) = exception {
            return Some(self.forkers[at].1 as usize);
        }
        let process = &self.processes[self.tasks[task].process()];
        if self.tasks[task].is_thread {
            return process.tasks().next();
        }
        let parent = process.parent()?;
        process.forked_by_thread().or_else(|| self.processes[parent].tasks().next())
    }

    /// Number of the category in which a process is counted.
    pub fn category_of(&self, process: &Process) -> usize {
        self.category_of.get(process.program()).copied().unwrap_or(0)
    }

    /// The role of a process among others that run the same program, if one could be determined.
    pub fn role_of(&self, process: &Process) -> Option<&str> {
        self.roles.get(process.role()? as usize).map(String::as_str)
    }

    /// The template of the command line that a process ran last.
    pub fn template_of(&self, process: &Process) -> Option<&str> {
        let run = self.runs.get(process.run()? as usize)?;
        self.templates.get(run.template as usize).map(String::as_str)
    }

    /// True if this is the beginning of a recording that is still in progress.
    pub(crate) fn is_being_written(&self) -> bool {
        self.recording_now && self.trailer.is_none()
    }

    /// The process of the command, if one was launched.
    pub fn root(&self) -> Option<&Process> {
        if self.header.command.is_empty() { None } else { self.processes.first() }
    }

    /// Time from the first record to the command's exit, or to the last record.
    pub fn wall_ns(&self) -> u64 {
        let end = self
            .trailer
            .as_ref()
            .and_then(|trailer| trailer.payload.as_ref())
            .map(|payload| payload.exited_ns)
            .or_else(|| self.root().and_then(|root| root.ended_ns()));
        end.unwrap_or(self.last_ns).saturating_sub(self.first_ns)
    }

    /// The share of the machine's CPU time that neither the recording's tasks nor its recorder used, in percent; None if that is
    /// not known, if the recording is of the whole machine, or if a part of its own use is not known. A recorder's own time
    /// before the first record counts as well, so it is rather too little.
    pub fn others_percent(&self) -> Option<f64> {
        /// Minimum time of a CPU: with fewer clock ticks, it is chance whom they hit.
        const SHORTEST_NS: u64 = 1_000_000_000;
        let trailer = self.trailer.as_ref()?;
        let machine = trailer.machine.filter(|_| self.header.scope != "system")?;
        self.knows.some(&[Quantity::Forks, Quantity::Cpu], ())?;
        if !(trailer.losses.is_empty() && self.blind.let_go.is_empty()) {
            return None;
        }
        let recorder_ns = trailer.recorder.user_ns.saturating_add(trailer.recorder.system_ns);
        let own_ns = self.totals.used.run_ns.saturating_add(recorder_ns);
        let is_long = machine.all_ns / u64::from(machine.cpus.max(1)) >= SHORTEST_NS;
        let others_ns = machine.busy_ns.saturating_sub(own_ns);
        is_long.then(|| (100.0 * others_ns as f64 / machine.all_ns.max(1) as f64).min(100.0))
    }

    /// The reason the recording has an order of events and no times; None if it has times.
    pub fn why_no_times(&self) -> Option<&str> {
        self.knows.why_absent(Quantity::Times)
    }

    /// Time since the start; None if the recording has no times.
    pub fn since_start_ns(&self, time_ns: u64) -> Option<u64> {
        self.knows.some(&[Quantity::Times], time_ns.saturating_sub(self.first_ns))
    }

    /// Time from the first record to the last.
    pub fn recorded_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}
