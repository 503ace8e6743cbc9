//! The state of a recording, kept up to date record by record.

use std::collections::BTreeMap;

use proctrace_lineage::Living;
use proctrace_replay::Lookups;
use proctrace_replay::ticks::{TickLength, stretch_ns};
use proctrace_trace::{BlockInfo, Header, Skipped, Trailer};
use proctrace_wire::layout::{MISS_PATH_FAULT, MissFixed, Sample};
use proctrace_wire::{Call, Family, Frames, Quantity, Record, Stream, mark_of_path};

use super::classify::Classify;
use super::directories::{Directories, Slot};
use super::ended::Ended;
use super::losses::Losses;
use super::process::{Life, Process};
use super::programs::{Programs, UNKNOWN};
use super::rates::{History, Recent};
use super::readings::{Early, Reading};
use super::steps::Steps;
use proctrace_replay::Usage;

const EINVAL: u16 = 22;

/// Time for which a process has ended lately; lists say "in the last 2 s". Records reach the file once a second.
const LATELY_NS: u64 = 2_000_000_000;

/// Ended ancestors that are passed on the way to one that is alive.
const ANCESTORS_MAX: usize = 64;

/// Sums over the whole recording so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Processes.
    pub processes: u64,
    /// Those of them that have ended.
    pub ended: u64,
    /// Threads, the first of each process not counted.
    pub threads: u64,
    /// Successful execs.
    pub execs: u64,
    /// Failed execs.
    pub execs_failed: u64,
    /// Failed look-ups; readlink of something that is no link is none, nor is a mark.
    pub lookups_failed: u64,
    /// CPU time of all tasks, while they were recorded.
    pub cpu_ns: u64,
}

/// The state of a recording.
pub struct View {
    pub(super) header: Header,
    /// Quantities that the recording does not contain.
    pub(super) absent: BTreeMap<Quantity, String>,
    now_ns: u64,
    /// Sums so far.
    pub totals: Totals,
    /// Births, deaths and failed look-ups by second.
    pub history: History,
    /// CPU time in nanoseconds, lately.
    pub cpu: Recent,
    /// Tasks that ran or wanted to, at the last pass of samples.
    pub running: Option<u32>,
    /// Sums by program.
    pub programs: Programs,
    /// Sums by step of the workflow.
    pub steps: Steps,
    /// Directories that were searched in vain.
    pub directories: Directories,
    /// Lost records.
    pub losses: Losses,
    /// Parts of the file that could not be read.
    pub skipped: Skipped,
    /// Records that could not be decoded.
    pub undecodable: u64,
    /// The end of the recording.
    pub trailer: Option<Trailer>,
    pub(super) living: Living<Life, Reading>,
    pub(super) early: Early,
    pub(super) ended: Ended,
    pub(super) tick_length: TickLength,
    lookups: Lookups<Slot>,
    pub(super) classify: Box<dyn Classify>,
    pub(super) kept: Option<u32>,
    pub(super) kept_ended: Option<Box<Process>>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("totals", &self.totals).finish_non_exhaustive()
    }
}

impl View {
    /// Makes a view that knows nothing yet but the header.
    pub fn new(header: Header, classify: Box<dyn Classify>) -> Self {
        Self {
            now_ns: header.started_ns,
            history: History::new(header.started_ns),
            absent: header.absent(),
            header,
            totals: Totals::default(),
            cpu: Recent::default(),
            running: None,
            programs: Programs::default(),
            steps: Steps::default(),
            directories: Directories::default(),
            losses: Losses::default(),
            skipped: Skipped::default(),
            undecodable: 0,
            trailer: None,
            living: Living::default(),
            early: Early::default(),
            ended: Ended::default(),
            tick_length: TickLength::default(),
            lookups: Lookups::default(),
            classify,
            kept: None,
            kept_ended: None,
        }
    }

    /// Returns whether it is known which steps there are.
    pub fn knows_steps(&self) -> bool {
        self.classify.knows_steps()
    }

    /// The header of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The latest time of a record.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Time since the start of the recording; until its end, if it has ended.
    pub fn elapsed_ns(&self) -> u64 {
        let now_ns = self.trailer.as_ref().map_or(self.now_ns, |trailer| trailer.ended_ns);
        now_ns.saturating_sub(self.header.started_ns)
    }

    /// Processes that are alive.
    pub fn alive(&self) -> usize {
        self.living.processes()
    }

    /// Threads that are alive, the first of each process not counted.
    pub fn threads_alive(&self) -> usize {
        self.living.tasks().saturating_sub(self.living.processes())
    }

    /// Tasks that are not followed, because there are more than a kernel can have.
    pub fn untracked(&self) -> u64 {
        self.living.untracked()
    }

    /// A process that is alive, has ended lately, or is the kept one.
    pub fn process(&self, serial: u32) -> Option<&Process> {
        let kept = self.kept_ended.as_deref().filter(|process| process.serial == serial);
        self.living.get(serial).or(kept).or_else(|| self.ended.get(serial))
    }

    /// The processes that have ended lately, the last first; not all of them if there are very many.
    pub fn ended_lately(&self) -> impl Iterator<Item = &Process> {
        self.ended.since(self.now_ns.saturating_sub(LATELY_NS))
    }

    /// Returns whether more have ended lately than [`View::ended_lately`] has.
    pub fn ended_is_cut(&self) -> bool {
        self.ended.is_cut(self.now_ns.saturating_sub(LATELY_NS))
    }

    /// The nearest ancestor of a process that is alive.
    pub fn living_ancestor(&self, process: &Process) -> Option<u32> {
        let mut parent = process.parent?;
        // Only a hostile trace has a circle.
        for _ in 0..ANCESTORS_MAX {
            if self.living.get(parent).is_some() {
                return Some(parent);
            }
            parent = self.ended.get(parent)?.parent?;
        }
        None
    }

    /// Failed look-ups of tasks whose birth has not been seen; no program has them.
    pub fn lookups_of_unborn(&self) -> u64 {
        self.early.misses()
    }

    /// The processes that are alive and have no recorded parent that is.
    pub fn roots(&self) -> impl Iterator<Item = u32> + '_ {
        self.living.roots().iter().copied()
    }

    /// The processes that are alive.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.living.iter()
    }

    /// Keeps a process when it ends, until another is kept.
    pub fn keep(&mut self, serial: Option<u32>) {
        self.kept = serial;
        if self.kept_ended.as_ref().is_some_and(|ended| Some(ended.serial) != serial) {
            self.kept_ended = None;
        }
        if let Some(ended) = serial.and_then(|serial| self.ended.get(serial))
            && self.kept_ended.is_none()
        {
            self.kept_ended = Some(Box::new(ended.clone()));
        }
    }

    /// The directories in which a process searched in vain, with the number of failed look-ups, most
    /// first.
    pub fn searched(&self, process: &Process) -> Vec<(String, u64)> {
        if process.searched_in != self.directories.generation() {
            return Vec::new();
        }
        let mut searched = process.searched.clone();
        searched.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let name = |(number, count)| Some((self.directories.path(number)?.into_owned(), count));
        searched.into_iter().filter_map(name).collect()
    }

    /// Returns whether the blocks of a stream are of use to [`View::take`].
    pub fn wants(info: &BlockInfo) -> bool {
        info.stream != Stream::Waits
    }

    /// Takes the next block.
    pub fn take(&mut self, info: &BlockInfo, bytes: &[u8]) {
        self.now_ns = self.now_ns.max(info.last_ns);
        for frame in Frames::new(bytes) {
            match frame.and_then(Record::decode) {
                Ok(record) => self.record(record),
                Err(_) => self.undecodable = self.undecodable.saturating_add(1),
            }
        }
    }

    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::LookupAgain(again) => {
                let found = self.lookups.in_full(again, |_, _| Slot::NONE);
                let (miss, place) = (found.miss, found.made);
                if counts(&miss, found.path) {
                    let place = self.directories.count(place, known_path(&miss, found.path));
                    self.lookup_failed(&miss, place);
                }
            }
            Record::LookupNamed(named, path) => {
                let directories = &mut self.directories;
                let make =
                    |miss: &MissFixed, path: &[u8]| directories.place_of(known_path(miss, path));
                let found = self.lookups.in_full_first(named, path, make);
                let (miss, place) = (found.miss, found.made);
                if counts(&miss, path) {
                    let place = self.directories.count(place, known_path(&miss, path));
                    self.lookup_failed(&miss, place);
                }
            }
            Record::LookupFailed(miss, path) if counts(&miss, path) => {
                let path = known_path(&miss, path);
                let place = self.directories.place_of(path);
                let place = self.directories.count(place, path);
                self.lookup_failed(&miss, place);
            }
            Record::Sample(sample) => self.sample(&sample),
            Record::Tick(tick) => {
                self.running = Some(tick.running);
                self.now_ns = self.now_ns.max(tick.head.time_ns);
            }
            Record::Attach(attach) => self.attach(&attach),
            Record::Env(env, block) => self.classify.environment(env.env_id, block),
            Record::Fork(fork) => self.fork(&fork),
            Record::Exec(exec) => self.exec(&exec),
            Record::ExecFailed(..) => {
                self.totals.execs_failed = self.totals.execs_failed.saturating_add(1);
            }
            Record::Exit(exit) => self.exit(&exit),
            Record::Rename(rename) if rename.head.task == rename.process => {
                if let Some(process) = self.living.get_mut(rename.process) {
                    process.comm = rename.comm;
                }
            }
            Record::Loss(loss) => self.losses.note(&loss),
            _ => {}
        }
    }

    fn lookup_failed(&mut self, miss: &MissFixed, place: Slot) {
        self.totals.lookups_failed = self.totals.lookups_failed.saturating_add(1);
        if let Some(second) = self.history.at(miss.head.time_ns) {
            second.lookups_failed = second.lookups_failed.saturating_add(1);
        }
        let generation = self.directories.generation();
        let task = miss.head.task;
        let program = if let Some((_, process)) = self.living.task_mut(task) {
            process.searched_in_vain(place.number, generation);
            process.program
        } else if let Some((serial, program)) = self.ended.of_task(task) {
            // Look-ups are in another stream, whose block may come later than that of the end. A thread may
            // have ended, and its process go on with another program.
            if let Some(process) = self.living.get_mut(serial) {
                process.searched_in_vain(place.number, generation);
                process.program
            } else {
                let kept = self.kept_ended.as_deref_mut().filter(|kept| kept.serial == serial);
                let mut program = program;
                for process in kept.into_iter().chain(self.ended.get_mut(serial)) {
                    process.searched_in_vain(place.number, generation);
                    program = process.program;
                }
                program
            }
        } else if self.early.keep_miss(task) {
            // Or earlier than that of the birth.
            return;
        } else {
            UNKNOWN
        };
        let program = self.programs.get_mut(program);
        program.lookups_failed = program.lookups_failed.saturating_add(1);
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        let task = sample.head.task;
        let reading = Usage::from(sample);
        let Some(process) = self.used(task, sample.head.time_ns, reading, true) else {
            self.early.keep(*sample);
            return;
        };
        let page_bytes = u64::from(self.header.page_bytes);
        if let Some(process) = self.living.get_mut(process) {
            process.rss_bytes = Some(sample.rss_pages.saturating_mul(page_bytes));
            process.state = u8::try_from(sample.state).ok().map(char::from);
        }
    }

    /// Notes what a task has used so far; returns its process. Stretches of a task end with samples
    /// and with the task.
    pub(super) fn used(
        &mut self,
        task: u32,
        time_ns: u64,
        reading: Usage,
        may_end_stretch: bool,
    ) -> Option<u32> {
        let stretch_ns = may_end_stretch.then(|| stretch_ns(self.tick_ns()));
        let (last, process) = self.living.task_mut(task)?;
        let added = last.read(reading, stretch_ns);
        let run_ns = added.used.run_ns;
        process.used = process.used.plus(added.used);
        process.own = process.own.plus(added.own);
        process.cpu.add(time_ns, run_ns);
        let (serial, program, step) = (process.serial, process.program, process.step);
        self.cpu_used(run_ns, time_ns);
        let program = self.programs.get_mut(program);
        program.used = program.used.plus(added.used);
        program.own = program.own.plus(added.own);
        program.cpu.add(time_ns, run_ns);
        self.steps.used(step, time_ns, added.used);
        Some(serial)
    }

    /// The length of a scheduler tick: as recorded, or as seen so far.
    pub(super) fn tick_ns(&self) -> u64 {
        self.tick_length.ns(self.header.tick_ns)
    }

    pub(super) fn cpu_used(&mut self, cpu_ns: u64, time_ns: u64) {
        self.totals.cpu_ns = self.totals.cpu_ns.saturating_add(cpu_ns);
        self.cpu.add(time_ns, cpu_ns);
    }
}

/// Returns whether a failed call is a failed look-up: readlink(2) of what is no link has found it, and a mark of the
/// payload looks for nothing.
fn counts(miss: &MissFixed, path: &[u8]) -> bool {
    let family = || Family::of(Call::from_number(miss.call));
    !(miss.error == EINVAL && family() == Some(Family::Readlink)) && mark_of_path(path).is_none()
}

/// The path of a look-up, or one in the directory "?" if it could not be read.
fn known_path<'a>(miss: &MissFixed, path: &'a [u8]) -> &'a [u8] {
    if miss.bits & MISS_PATH_FAULT == 0 { path } else { b"?/" }
}
