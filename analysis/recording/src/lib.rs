//! A recording as in-memory tables, ready for analysis.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(missing_docs, reason = "fields are named after what they hold, with their unit")]

pub mod at_once;
pub mod bin_series;
pub mod bins;
pub mod books;
mod contents;
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
mod membership;
pub mod misses;
pub mod opened;
pub mod order;
pub mod polls;
pub mod process;
pub mod run_directories;
pub mod split;
pub mod steps;
pub mod stored_usage;
pub mod task;
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
use std::sync::OnceLock;

use proctrace_classify::fast::{Bits, FastMap};
use proctrace_classify::sparse::Sparse;
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
use crate::polls::Polls;
use crate::process::{MemoryReading, Process, ProgramRun};
use crate::run_directories::RunDirectories;
use crate::split::{Divided, Split, Ticks};
use crate::steps::Steps;
use crate::task::Task;
use crate::tracks::Track;
use crate::waits::{SentSignal, Wait};
use crate::watch::Watch;
use proctrace_replay::Usage;

/// The contents of one trace, read once; its methods (contents.rs) say what each of them is, and whether it is known.
#[derive(Debug)]
pub struct Recording {
    pub(crate) header: Header,
    pub(crate) trailer: Option<Trailer>,
    pub(crate) recording_now: bool,
    pub(crate) damage: Vec<Damage>,
    pub(crate) undecodable: u64,
    pub(crate) programs: Vec<Program>,
    pub(crate) classification: Classification,
    pub(crate) processes: Vec<Process>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) runs: Vec<ProgramRun>,
    pub(crate) starts: Vec<Start>,
    pub(crate) calls: Vec<u64>,
    pub(crate) templates: Vec<String>,
    /// Command lines as they were.
    pub(crate) lines: lines::Lines,
    pub(crate) roles: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// The category of each program.
    pub(crate) category_of: Vec<usize>,
    pub(crate) counts: Counts,
    pub(crate) directories: Vec<Vec<u8>>,
    pub(crate) misses: Misses,
    pub(crate) missed_paths: MissedPaths,
    pub(crate) last_misses: LastMisses,
    pub(crate) run_directories: RunDirectories,
    pub(crate) last_execs: LastExecs,
    pub(crate) lookup_times: LookupTimes,
    pub(crate) opened: OpenedFiles,
    pub(crate) marks: Marks,
    pub(crate) phases: Phases,
    pub(crate) steps: Steps,
    pub(crate) bins: Bins,
    pub(crate) tracks: Vec<Track>,
    pub(crate) watch: Watch,
    pub(crate) knows: Knows,
    pub(crate) split: Split,
    pub(crate) ticks: Vec<proctrace_wire::layout::Tick>,
    pub(crate) blind: Blindness,
    pub(crate) totals: Totals,
    pub(crate) memory_readings: Vec<MemoryReading>,
    pub(crate) waits: Vec<Wait>,
    /// Found when they are asked for.
    pub(crate) polls: OnceLock<Polls>,
    /// Tasks and their forkers, by task, where [`Recording::forker_of`] could not tell otherwise.
    pub(crate) forkers: Sparse<u32>,
    /// Tasks that forked processes, by process, other than the first task of their own process.
    pub(crate) forked_by_thread: Sparse<u32>,
    /// Processes that shared the memory of their forker until their exec: vfork(2), posix_spawn(3).
    pub(crate) sharers: Bits,
    pub(crate) signals: Vec<SentSignal>,
    /// Processes chosen by the out-of-memory killer.
    pub(crate) oom_killed: Vec<u32>,
    pub(crate) peak_running: Option<u64>,
    /// The command's own end, if processes of the recording went on noticeably longer.
    pub(crate) left_since_ns: Option<u64>,
    /// The command lines of processes that outlived their parent, by process: a recording has only templates of others.
    pub(crate) left_lines: FastMap<usize, String>,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
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
            polls: OnceLock::new(),
            forkers: Sparse::default(),
            forked_by_thread: Sparse::default(),
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

    /// Bytes that a process's tasks read and wrote by system calls, and wrote to storage, while they were followed.
    pub fn bytes_used_by(&self, process: &Process) -> [u64; 3] {
        process.tasks().fold([0_u64; 3], |sum, task| {
            let used = self.tasks[task].bytes_used();
            std::array::from_fn(|at| sum[at].saturating_add(used[at]))
        })
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
        if let Some(forker) = self.forkers.get(task) {
            return Some(*forker as usize);
        }
        let at = self.tasks[task].process();
        let process = &self.processes[at];
        if self.tasks[task].is_thread {
            return process.tasks().next();
        }
        let parent = process.parent()?;
        let thread = self.forked_by_thread.get(at).map(|task| *task as usize);
        thread.or_else(|| self.processes[parent].tasks().next())
    }

    /// Number of the program that the forker of a process was running at the time.
    #[inline]
    pub fn spawner_of(&self, process: &Process) -> Option<usize> {
        match process.spawned_in() {
            Some(run) => Some(self.runs[run as usize].program as usize),
            None => process.spawned_by_program(),
        }
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
