//! The contents of a recording, by methods: what every recording has as it is, what one may lack as an `Option`.
//!
//! `None` says that the quantity was not recorded, which an empty table does not: "no process waited" and "nobody looked" are
//! different findings. Why it was not recorded is said by [`Knows::why_not`].

use proctrace_classify::{Classification, Program};
use proctrace_trace::{Damage, Header, Trailer};
use proctrace_wire::Quantity;
use proctrace_wire::layout::Tick;

use std::sync::OnceLock;

use crate::Recording;
use crate::bins::Bins;
use crate::counts::{Counts, Totals};
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
use crate::split::Split;
use crate::steps::Steps;
use crate::task::Task;
use crate::tracks::Track;
use crate::waits::{SentSignal, Wait};
use crate::watch::Watch;

/// What every recording has.
impl Recording {
    /// Header of the trace: where and how it was recorded.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Trailer of the trace: how it ended; `None` if it was cut short.
    pub fn trailer(&self) -> Option<&Trailer> {
        self.trailer.as_ref()
    }

    /// True if the recorder was still writing the trace when it was opened, as far as its reader knows.
    pub fn recording_now(&self) -> bool {
        self.recording_now
    }

    /// Damaged parts that were skipped.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Number of records that could not be decoded.
    pub fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// Knowledge of each quantity.
    pub fn knows(&self) -> &Knows {
        &self.knows
    }

    /// Known blind spots of the recording.
    pub fn blind(&self) -> &Blindness {
        &self.blind
    }

    /// Every program that ran, by number.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Classification of its programs.
    pub fn classification(&self) -> &Classification {
        &self.classification
    }

    /// Processes in order of birth.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Tasks in order of birth.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Every exec, in order of time.
    pub fn runs(&self) -> &[ProgramRun] {
        &self.runs
    }

    /// Command-line templates, by number.
    pub fn templates(&self) -> &[String] {
        &self.templates
    }

    /// Roles of processes, by number.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Names of categories, by number.
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// Numbers of the categories of the programs.
    pub fn category_of_programs(&self) -> &[usize] {
        &self.category_of
    }

    /// Numbers of records by kind, and of what they tell.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Sums over all tasks.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Moments that the payload named.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// What happened between the moments that the payload named.
    pub fn phases(&self) -> &Phases {
        &self.phases
    }

    /// Units of work, as far as they are named.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Series over time, of all processes.
    pub fn bins(&self) -> &Bins {
        &self.bins
    }

    /// CPU time series of the processes that used most CPU time.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Usage that samplers of /proc would have missed.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Division of CPU time into user and system time.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Time of the first record.
    pub fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Time of the last record.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The command line of a process that outlived its parent: a recording has only templates of others.
    pub fn left_line_of(&self, process: usize) -> Option<&str> {
        self.left_lines.get(&process).map(String::as_str)
    }

    /// True if the out-of-memory killer chose a process, which its own end tells: signals need not be known.
    pub fn was_oom_killed(&self, process: u32) -> bool {
        self.oom_killed.contains(&process)
    }

    /// True if a process shared the memory of its forker until its exec: vfork(2), posix_spawn(3).
    pub fn shared_memory(&self, process: usize) -> bool {
        self.sharers.contains(process)
    }
}

/// What a recording may lack.
impl Recording {
    /// A table, if its quantity is known.
    fn known<'a, T: ?Sized>(&self, quantity: Quantity, table: &'a T) -> Option<&'a T> {
        self.knows.some(&[quantity], table)
    }

    /// A table of failed look-ups, if those of at least one family of calls are known. Which ones, [`Knows::knows_family`] tells.
    fn looked_up<'a, T: ?Sized>(&self, table: &'a T) -> Option<&'a T> {
        let is_known = Quantity::LOOKUPS.iter().any(|family| self.knows.all(&[*family]));
        is_known.then_some(table)
    }

    /// A hash for each run of its exact arguments, working directory and search variables, to tell repeated
    /// commands; 0 where the recording does not have all of the arguments. The seed is random.
    pub fn calls(&self) -> Option<&[u64]> {
        self.known(Quantity::Argv, &self.calls[..])
    }

    /// The failed look-ups of each run: while it was loading, and in total.
    pub fn starts(&self) -> Option<&[Start]> {
        self.looked_up(&self.starts[..])
    }

    /// Directories of failed look-ups, by number.
    pub fn directories(&self) -> &[Vec<u8>] {
        &self.directories
    }

    /// Failed look-ups by process, directory and errno.
    pub fn misses(&self) -> Option<&Misses> {
        self.looked_up(&self.misses)
    }

    /// Failed look-ups by path, over all processes.
    pub fn missed_paths(&self) -> Option<&MissedPaths> {
        self.looked_up(&self.missed_paths)
    }

    /// The last failed look-up of each process that may be why it failed.
    pub fn last_misses(&self) -> Option<&LastMisses> {
        self.looked_up(&self.last_misses)
    }

    /// The last failed exec of each process that has one.
    pub fn last_execs(&self) -> Option<&LastExecs> {
        self.known(Quantity::LookupsExec, &self.last_execs)
    }

    /// Durations of the failed look-ups, as far as they were timed.
    pub fn lookup_times(&self) -> Option<&LookupTimes> {
        self.known(Quantity::LookupTimes, &self.lookup_times)
    }

    /// The directory that each program was run in, where opens were recorded.
    pub fn run_directories(&self) -> &RunDirectories {
        &self.run_directories
    }

    /// Opened files, their sizes and their renames, if files or sizes are known.
    pub fn opened(&self) -> Option<&OpenedFiles> {
        self.known(Quantity::OpenedFiles, &self.opened)
            .or_else(|| self.known(Quantity::FileSizes, &self.opened))
    }

    /// Memory readings of processes, in order of time.
    pub fn memory_readings(&self) -> Option<&[MemoryReading]> {
        self.known(Quantity::Memory, &self.memory_readings[..])
    }

    /// Times off the CPU, by task and then in order of time.
    pub fn waits(&self) -> Option<&[Wait]> {
        self.known(Quantity::Waits, &self.waits[..])
    }

    /// The sleeps among the waits with which tasks wait for their children.
    pub fn polls(&self) -> &Polls {
        self.polls.get_or_init(|| Polls::of(self))
    }

    /// Signals that usually end a process, in order of time.
    pub fn signals(&self) -> Option<&[SentSignal]> {
        self.known(Quantity::Signals, &self.signals[..])
    }

    /// Every pass of the sampler.
    pub fn ticks(&self) -> Option<&[Tick]> {
        self.known(Quantity::Samples, &self.ticks[..])
    }

    /// Maximum number of tasks running or runnable in one sample.
    pub fn peak_running(&self) -> Option<u64> {
        self.peak_running
    }
}

/// What is put in place after loading.
impl Recording {
    /// Says that the recorder is still writing the trace.
    pub fn set_recording_now(&mut self, recording_now: bool) {
        self.recording_now = recording_now;
    }

    /// The header, to say otherwise how it was recorded.
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }

    /// The trailer, to say otherwise how it ended.
    pub fn trailer_mut(&mut self) -> Option<&mut Trailer> {
        self.trailer.as_mut()
    }

    /// The blind spots, to add some.
    pub fn blind_mut(&mut self) -> &mut Blindness {
        &mut self.blind
    }

    /// The knowledge of quantities, to take some away.
    pub fn knows_mut(&mut self) -> &mut Knows {
        &mut self.knows
    }

    /// The processes, to give them other roles.
    pub fn processes_mut(&mut self) -> &mut [Process] {
        &mut self.processes
    }

    /// Replaces the roles of processes, by number.
    pub fn replace_roles(&mut self, roles: Vec<String>) {
        self.roles = roles;
    }

    /// Replaces the times off the CPU, which must be in order of tasks and time.
    pub fn replace_waits(&mut self, waits: Vec<Wait>) {
        self.waits = waits;
        self.polls = OnceLock::new();
    }

    /// Replaces the passes of the sampler.
    pub fn replace_ticks(&mut self, ticks: Vec<Tick>) {
        self.ticks = ticks;
    }

    /// Makes it a recording of a trace that ends with this damage, before its trailer.
    pub fn cut_short(&mut self, damage: Damage) {
        self.trailer = None;
        self.damage = vec![damage];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, Scene};

    #[test]
    fn what_was_not_recorded_is_no_empty_table() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.open_failed(MS, 1, "/x").exit(2 * MS, 1, (MS, 0));
        let mut recording = scene.load(None);
        assert!(recording.misses().is_some());
        assert_eq!(recording.starts().map(<[Start]>::len), Some(recording.runs().len()));
        for quantity in Quantity::ALL {
            recording.knows_mut().lacks(quantity, "left out".to_owned());
        }
        let tables = [
            recording.calls().is_some(),
            recording.starts().is_some(),
            recording.misses().is_some(),
            recording.missed_paths().is_some(),
            recording.last_misses().is_some(),
            recording.last_execs().is_some(),
            recording.lookup_times().is_some(),
            recording.opened().is_some(),
            recording.memory_readings().is_some(),
            recording.waits().is_some(),
            recording.signals().is_some(),
            recording.ticks().is_some(),
        ];
        assert_eq!(tables, [false; 12]);
    }
}
