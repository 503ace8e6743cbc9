//! Evidence that all kinds of advice share: a recording, its critical path, and who started whom, computed once.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use proctrace_classify::fast::{Bits, counters};
use proctrace_classify::is_shell;
use proctrace_findings::Gain;
use proctrace_overview::passes::{Pass, with_readings};
use proctrace_overview::path::{CriticalPath, Doing};
use proctrace_recording::Recording;
use proctrace_recording::process::{MemoryReading, Process};
use proctrace_wire::{Quantity, WaitFor};

use super::NOBODY;
use super::model::{Cut, Earlier, Model};
use super::names::{SUBSHELL, called, first_word, short};
use super::on_path::{OnPath, Spent};

/// Runs of the same job differ: measured times are taken to be certain to this part.
const CERTAIN_PERCENT: u64 = 10;

/// The caller's own work for a failed look-up, and that of the recorder outside of what it times, at most: in relation to
/// the time that the look-up takes, and if that is little, in ns. Measured: 245 ns beside 325 ns, 450 ns beside 1,100 ns
/// and 500 ns beside 1,270 ns, on three models of CPU.
const BESIDE_LOOKUP_PERCENT: u64 = 50;
const BESIDE_LOOKUP_NS: f64 = 500.0;

/// Maximum ratio of the time on the path to the CPU time: a process that waits for CPUs longer waits for something else
/// as well.
const STRETCH_MAX: f64 = 20.0;

/// A recording, prepared for all detectors.
pub(crate) struct Evidence<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) path: Option<Cow<'a, CriticalPath>>,
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) min_percent: f64,
    on_path: OnPath,
    /// CPU time of each process with its descendants.
    pub(crate) cpu_below_ns: Vec<u64>,
    /// Index in `children` at which the children of each process begin.
    first_child: Vec<u32>,
    children: Vec<u32>,
    /// True for the templates that are those of shells.
    shells: Vec<bool>,
    /// The first words of all templates, each once, in order.
    commands: Vec<&'a str>,
    /// The number among these of each template.
    command_of: Vec<u32>,
    model: OnceLock<Model<'a>>,
    /// Sets of tasks that were asked about, each with the nanoseconds by which the command ends earlier without it.
    earlier: Mutex<Vec<(Bits, Earlier)>>,
    passes: OnceLock<Vec<(Pass, Vec<&'a MemoryReading>)>>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn of(recording: &'a Recording, min_percent: f64) -> Self {
        Self::along(recording, CriticalPath::of(recording).map(Cow::Owned), min_percent)
    }

    /// Makes the evidence of a recording whose critical path is this.
    pub(crate) fn along(
        recording: &'a Recording,
        path: Option<Cow<'a, CriticalPath>>,
        min_percent: f64,
    ) -> Self {
        let processes = recording.processes();
        let on_path = path.as_deref().map(|path| OnPath::of(recording, path));
        // What the sums below and the lists of children need of each process, read in one pass: a process takes 80 bytes.
        let mut parents = Vec::with_capacity(processes.len());
        let mut cpu_below_ns = Vec::with_capacity(processes.len());
        for process in processes {
            let parent = process.parent().filter(|parent| *parent < processes.len());
            parents.push(parent.and_then(|parent| u32::try_from(parent).ok()).unwrap_or(NOBODY));
            cpu_below_ns.push(process.cpu.total_ns());
        }
        let cpu_ns = cpu_below_ns.iter().fold(0, |sum: u64, cpu_ns| sum.saturating_add(*cpu_ns));
        add_descendants(&parents, &mut cpu_below_ns);
        let (first_child, children) = children(&parents);
        let first_words = || recording.templates().iter().map(|template| first_word(template));
        let mut commands: Vec<&str> = first_words().collect();
        commands.sort_unstable();
        commands.dedup();
        let number = |word: &str| commands.binary_search(&word).map_or(NOBODY, |at| at as u32);
        Self {
            wall_ns: recording.wall_ns(),
            cpu_ns,
            min_percent,
            on_path: on_path.unwrap_or_default(),
            cpu_below_ns,
            first_child,
            children,
            shells: first_words().map(is_shell).collect(),
            command_of: first_words().map(number).collect(),
            commands,
            model: OnceLock::new(),
            earlier: Mutex::default(),
            passes: OnceLock::new(),
            path,
            recording,
        }
    }

    pub(crate) fn process(&self, process: u32) -> &'a Process {
        &self.recording.processes()[process as usize]
    }

    /// The processes on the path, and those with descendants on it, in any order.
    pub(crate) fn on_path(&self) -> impl Iterator<Item = (u32, Spent)> {
        self.on_path.iter()
    }

    /// Time of a process on the path.
    pub(crate) fn path_ns(&self, process: u32) -> u64 {
        self.on_path.get(process).own_ns
    }

    /// The same with its descendants.
    pub(crate) fn path_below_ns(&self, process: u32) -> u64 {
        self.on_path.get(process).below_ns
    }

    /// All processes by number.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, &'a Process)> + use<'a> {
        (0..).zip(self.recording.processes())
    }

    /// Children of a process in order of birth.
    pub(crate) fn children(&self, process: u32) -> &[u32] {
        let at = process as usize;
        let (begin, end) = (self.first_child[at], self.first_child[at + 1]);
        &self.children[begin as usize..end as usize]
    }

    /// The template of the command line that a process executed itself; `None` for one that only forked.
    pub(crate) fn own_template(&self, process: u32) -> Option<&'a str> {
        let number = self.own_template_number(process)?;
        self.recording.templates().get(number as usize).map(String::as_str)
    }

    /// The number of that template.
    pub(crate) fn own_template_number(&self, process: u32) -> Option<u32> {
        let process = self.process(process);
        let run = process.run().filter(|_| process.execs > 0)?;
        Some(self.recording.runs().get(run as usize)?.template)
    }

    /// The first word of its own command line, without directory.
    pub(crate) fn command(&self, process: u32) -> Option<&'a str> {
        Some(self.command_numbered(self.command_number(process)?))
    }

    /// The number of that word; numbers are in alphabetical order of the words.
    pub(crate) fn command_number(&self, process: u32) -> Option<u32> {
        self.command_of.get(self.own_template_number(process)? as usize).copied()
    }

    /// The word with this number.
    pub(crate) fn command_numbered(&self, number: u32) -> &'a str {
        self.commands.get(number as usize).copied().unwrap_or_default()
    }

    /// The first words of the command lines that processes ran last, each once.
    pub(crate) fn first_words(&self, processes: &[u32]) -> Vec<String> {
        let line = |process: &u32| self.recording.template_of(self.process(*process));
        let mut words: Vec<String> =
            processes.iter().filter_map(line).map(|line| first_word(line).to_owned()).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Number of the template of the spawner's command line.
    pub(crate) fn spawner(&self, process: u32) -> Option<u32> {
        let run = self.process(process).spawned_in()?;
        self.recording.runs().get(run as usize).map(|run| run.template)
    }

    pub(crate) fn spawned_by_shell(&self, process: u32) -> bool {
        let template = self.spawner(process);
        template.is_some_and(|template| self.shells.get(template as usize) == Some(&true))
    }

    /// A template by its number, shortened to fit into a sentence.
    pub(crate) fn template(&self, number: u32) -> String {
        short(self.recording.example_of(number))
    }

    /// The command lines that processes ran last: the most frequent one, shortened, and how many others there are.
    pub(crate) fn lines(&self, processes: &[u32]) -> String {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for process in processes {
            *counts.entry(self.recording.line_of(self.process(*process))).or_default() += 1;
        }
        // Of those with the same number the first in the alphabet.
        let most = counts.iter().rev().max_by_key(|(_, count)| **count);
        let line = short(most.map_or("", |(line, _)| line));
        match counts.len() {
            0 | 1 => format!("`{line}`"),
            several => format!("`{line}` and {} like it", several - 1),
        }
    }

    /// The command line that a process ran last, shortened.
    pub(crate) fn line(&self, process: u32) -> String {
        short(self.recording.line_of(self.process(process)))
    }

    /// The command line of the program that started a process, shortened; empty if that is not known.
    pub(crate) fn spawner_line(&self, process: u32) -> String {
        let run = self.process(process).spawned_in();
        run.map_or_else(String::new, |run| short(self.recording.line_of_run(run)))
    }

    /// Who started a process, in words behind a comma: ", started by `make all`"; nothing if that is not known.
    pub(crate) fn started_by(&self, process: u32) -> String {
        match &*self.spawner_line(process) {
            "" => String::new(),
            spawner => format!(", started by `{spawner}`"),
        }
    }

    /// The template of the command line that a process ran last, shortened, with its role among others with the same
    /// one: workers that were forked without an exec.
    pub(crate) fn called(&self, process: u32) -> String {
        let process = self.process(process);
        let line = short(self.recording.line_of(process));
        match self.recording.role_of(process) {
            Some(role) => format!("`{line}` ({})", short(role)),
            None => format!("`{line}`"),
        }
    }

    /// Time at which a process ended, at the latest the end of the recording.
    pub(crate) fn ended_ns(&self, process: u32) -> u64 {
        self.process(process).ended_ns().unwrap_or(self.recording.last_ns())
    }

    pub(crate) fn life_ns(&self, process: u32) -> u64 {
        self.ended_ns(process).saturating_sub(self.process(process).born_ns)
    }

    /// Part of the machine that others used, in percent, if that left no core beside the one in use, on average: then a
    /// second task may gain nothing, as others take the time.
    pub(super) fn percent_without_idle_core(&self) -> Option<f64> {
        let percent = self.recording.others_percent()?;
        let machine = self.recording.trailer()?.machine?;
        let left = f64::from(machine.cpus) * (1.0 - percent / 100.0);
        (left <= 1.0).then_some(percent)
    }

    /// Returns whether a gain that reaches this much may be worth a line.
    pub(crate) fn pays(&self, wall_ns: u64, cpu_ns: u64) -> bool {
        self.is_worth(wall_ns, self.wall_ns) || self.is_worth(cpu_ns, self.cpu_ns)
    }

    /// The same for a reduction of the peak of memory.
    pub(crate) fn pays_memory(&self, memory_bytes: u64) -> bool {
        self.is_worth(memory_bytes, self.peak_bytes().unwrap_or(0))
    }

    fn is_worth(&self, part: u64, whole: u64) -> bool {
        whole > 0 && 100.0 * part as f64 / whole as f64 >= self.min_percent && part > 0
    }

    /// Readings of the memory of all processes; none if it was not read.
    pub(crate) fn passes(&self) -> &[(Pass, Vec<&'a MemoryReading>)] {
        let known = self.recording.knows().all(&[Quantity::Memory]);
        let read = || if known { with_readings(self.recording, |_| true) } else { Vec::new() };
        self.passes.get_or_init(read)
    }

    /// The largest PSS of all processes in one reading.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        self.passes().iter().map(|(pass, _)| pass.pss_bytes).max()
    }

    /// Processes with all their descendants, each once, in order.
    pub(crate) fn with_descendants(&self, units: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::with_capacity(units.len());
        let mut known = Bits::default();
        let mut is_new = |process: &u32| {
            let is_new = !known.contains(*process as usize);
            known.insert(*process as usize);
            is_new
        };
        all.extend(units.iter().copied().filter(&mut is_new));
        let mut at = 0;
        while let Some(process) = all.get(at).copied() {
            all.extend(self.children(process).iter().copied().filter(&mut is_new));
            at += 1;
        }
        all.sort_unstable();
        all
    }

    /// The CPU time of processes, without their descendants.
    pub(crate) fn cpu_ns_of(&self, processes: &[u32]) -> u64 {
        let of = |process: &u32| self.process(*process).cpu.total_ns();
        processes.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The time of processes on the path; None if it is not known.
    pub(crate) fn path_ns_of(&self, processes: &[u32]) -> Option<u64> {
        let of = |process: &u32| self.path_ns(*process);
        self.path.as_ref().map(|_| processes.iter().map(of).fold(0, u64::saturating_add))
    }

    /// The tasks of processes.
    pub(crate) fn tasks(&self, processes: &[u32]) -> Bits {
        let mut tasks = Bits::default();
        for process in processes {
            self.process(*process).tasks().for_each(|task| tasks.insert(task));
        }
        tasks
    }

    /// Time by which the command ends earlier without what is cut; `None` if the path is not known.
    pub(crate) fn earlier(&self, cut: Cut<'_>) -> Option<Earlier> {
        let part = self.path.as_ref()?.parts.last()?;
        let last = (part.task as usize, part.end_ns);
        let model = self.model.get_or_init(|| Model::of(self.recording, last));
        Some(model.earlier(cut))
    }

    /// Time by which the command ends earlier if these processes themselves take no time. Several kinds of advice may be
    /// about the same ones, so answers are kept.
    pub(crate) fn earlier_without(&self, processes: &[u32]) -> Option<Earlier> {
        let tasks = self.tasks(processes);
        let known = |(of, earlier): &(Bits, Earlier)| (*of == tasks).then_some(*earlier);
        // Locked while it is answered, so that no question is answered twice.
        let mut answers = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = answers.iter().find_map(known) {
            return Some(earlier);
        }
        let earlier = self.earlier(Cut::Tasks(&tasks))?;
        answers.push((tasks, earlier));
        Some(earlier)
    }

    /// The part of a process's life that is on the path.
    pub(crate) fn part_on_path(&self, process: u32) -> f64 {
        let life_ns = self.life_ns(process).max(1);
        (self.path_ns(process) as f64 / life_ns as f64).min(1.0)
    }

    /// The time on the path in which a process was ready and had no CPU.
    pub(crate) fn ready_ns(&self, process: u32) -> u64 {
        self.on_path.get(process).ready_ns
    }

    /// Ratio of the time for which a process seems to run on the path to its CPU time there: at least 1, as the
    /// shortest waits are not recorded.
    pub(crate) fn pace(&self, process: u32) -> f64 {
        let running_ns = self.on_path.get(process).running_ns;
        let cpu_ns = running_ns.min(self.process(process).cpu.total_ns());
        (running_ns as f64 / cpu_ns.max(1) as f64).clamp(1.0, STRETCH_MAX)
    }

    /// Ratio of the time of the path on a process that computes to its CPU time there: 1 if it always gets a CPU at
    /// once. CPU time that is saved on the path shortens it by so much.
    pub(crate) fn stretch(&self, process: u32) -> f64 {
        let Spent { running_ns, ready_ns, .. } = self.on_path.get(process);
        let cpu_ns = running_ns.min(self.process(process).cpu.total_ns());
        (running_ns.saturating_add(ready_ns) as f64 / cpu_ns.max(1) as f64).clamp(1.0, STRETCH_MAX)
    }

    /// Returns whether a process is another one, or descends from it.
    pub(crate) fn descends_from(&self, process: u32, ancestor: u32) -> bool {
        self.ancestors(process).any(|at| at == ancestor as usize)
    }

    /// A process, its parent and so on.
    pub(crate) fn ancestors(&self, process: u32) -> impl Iterator<Item = usize> {
        // Parents precede their children; only a broken trace contradicts.
        let parent =
            |at: &usize| self.recording.processes()[*at].parent().filter(|parent| parent < at);
        std::iter::successors(Some(process as usize), parent)
    }

    /// Gain if processes, with their descendants, are not started: `None` if that is too little to be worth a line.
    pub(crate) fn without(&self, units: &[u32]) -> Option<Removal> {
        let (own_path_ns, own_cpu_ns) = self.share_of_spawners(units);
        let sum = |of: &dyn Fn(u32) -> u64| {
            units.iter().fold(0_u64, |sum, unit| sum.saturating_add(of(*unit)))
        };
        let on_path_ns = sum(&|unit| self.path_below_ns(unit));
        let cpu_ns = sum(&|unit| self.cpu_below_ns[unit as usize]);
        // Who records others for a time gets no shorter recording.
        let has_command = self.recording.root().is_some();
        let alive_ns = match self.path {
            None if has_command => self.alive_ns(units),
            _ => 0,
        };
        if !self.pays(
            on_path_ns.saturating_add(own_path_ns).saturating_add(alive_ns),
            cpu_ns.saturating_add(own_cpu_ns),
        ) {
            return None;
        }
        let processes = self.with_descendants(units);
        let path_ns: u64 = processes.iter().map(|process| self.path_ns(*process)).sum();
        let cpu_ns = self.cpu_ns_of(&processes);
        let wall = match self.earlier_without(&processes) {
            Some(earlier) => {
                let middle_ns = earlier.ns.min(path_ns).midpoint(path_ns);
                let low_ns = less(earlier.low_ns.min(path_ns));
                Gain::new(low_ns, middle_ns, more(path_ns.saturating_add(own_path_ns)))
            }
            None => Gain::new(0, alive_ns / 2, alive_ns),
        };
        let cpu = Gain::new(less(cpu_ns), cpu_ns, more(cpu_ns.saturating_add(own_cpu_ns)));
        Some(Removal { processes, wall: wall.at_most(self.wall_ns), cpu: cpu.at_most(self.cpu_ns) })
    }

    /// Time that the spawners of these processes spend themselves, on the path and in total, divided evenly among all
    /// their children: to fork them and to reap them.
    fn share_of_spawners(&self, units: &[u32]) -> (u64, u64) {
        let mut parents: Vec<usize> =
            units.iter().filter_map(|unit| self.process(*unit).parent()).collect();
        parents.sort_unstable();
        let (mut path_ns, mut cpu_ns) = (0_u64, 0_u64);
        for same in parents.chunk_by(|one, other| one == other) {
            let parent = same[0];
            let share = |whole_ns: u64| {
                let all = self.children(parent as u32).len().max(1) as u128;
                (u128::from(whole_ns) * same.len() as u128 / all) as u64
            };
            path_ns = path_ns.saturating_add(share(self.path_ns(parent as u32)));
            let own_ns = self.recording.processes()[parent].cpu.total_ns();
            cpu_ns = cpu_ns.saturating_add(share(own_ns));
        }
        (path_ns, cpu_ns)
    }

    /// The time within the wall time in which at least one of these was alive: all that is known without a
    /// path.
    pub(crate) fn alive_ns(&self, units: &[u32]) -> u64 {
        let end_ns = self.recording.first_ns().saturating_add(self.wall_ns);
        let mut lives: Vec<(u64, u64)> = units
            .iter()
            .map(|unit| (self.process(*unit).born_ns, self.ended_ns(*unit).min(end_ns)))
            .collect();
        lives.sort_unstable();
        let (mut sum_ns, mut until_ns) = (0_u64, 0_u64);
        for (born_ns, ended_ns) in lives {
            sum_ns = sum_ns.saturating_add(ended_ns.saturating_sub(born_ns.max(until_ns)));
            until_ns = until_ns.max(ended_ns);
        }
        sum_ns
    }

    /// Times in which a process on the path waits for a point in time: the process, begin and end, in order.
    pub(crate) fn timers(&self) -> Vec<(u32, u64, u64)> {
        let mut timers = Vec::new();
        for part in self.path.iter().flat_map(|path| &path.parts) {
            if part.doing == Doing::Waiting(WaitFor::Timer) {
                let process = self.recording.tasks()[part.task as usize].process() as u32;
                timers.push((process, part.begin_ns, part.end_ns));
            }
        }
        timers
    }

    /// Reason why gains of wall time are what they are, for all kinds that take processes out.
    pub(crate) fn method(&self) -> &'static str {
        if self.path.is_some() {
            "wall: the recorded order of births and wake-ups, carried out again without these \
             processes (low), and their time on the critical path (high)"
        } else {
            "wall: lifetimes only, since the critical path is not known: at most the time in which \
             one of them was alive, at least nothing"
        }
    }

    pub(crate) fn knows_argv(&self) -> bool {
        self.recording.knows().all(&[Quantity::Forks, Quantity::Execs, Quantity::Argv])
    }
}

/// Gain without some processes.
#[derive(Debug)]
pub(crate) struct Removal {
    /// With their descendants, in order.
    pub(crate) processes: Vec<u32>,
    pub(crate) wall: Gain,
    pub(crate) cpu: Gain,
}

/// A measured time, as small as another run may have it.
pub(crate) fn less(ns: u64) -> u64 {
    ns - ns / 100 * CERTAIN_PERCENT
}

/// A measured time, as large as another run may have it.
pub(crate) fn more(ns: u64) -> u64 {
    ns.saturating_add(ns / 100 * CERTAIN_PERCENT)
}

/// Upper bound of the time that so many failed look-ups take with the work beside them, given what the look-ups take.
pub(crate) fn with_work_beside(lookups: f64, taken_ns: u64) -> u64 {
    let beside_ns = taken_ns / 100 * BESIDE_LOOKUP_PERCENT;
    taken_ns.saturating_add(beside_ns.max((lookups * BESIDE_LOOKUP_NS) as u64))
}

/// The children of all processes, and where those of each begin.
fn children(parents: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut first = counters(parents.len() + 1);
    for parent in parents.iter().filter(|parent| **parent != NOBODY) {
        first[*parent as usize + 1] += 1;
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut next = first.clone();
    let mut children = vec![0_u32; *first.last().unwrap_or(&0) as usize];
    for (parent, number) in parents.iter().zip(0..).filter(|(parent, _)| **parent != NOBODY) {
        let next = &mut next[*parent as usize];
        children[*next as usize] = number;
        *next += 1;
    }
    (first, children)
}

/// Adds to a value of each process those of all its descendants. Parents precede their children, except for processes
/// that predate the recording; such children are left out.
fn add_descendants(parents: &[u32], values: &mut [u64]) {
    for (at, parent) in parents.iter().enumerate().rev() {
        let parent = *parent as usize;
        if parent < at && values[at] != 0 {
            values[parent] = values[parent].saturating_add(values[at]);
        }
    }
}

/// The name of what a process executed itself.
pub(crate) fn name<'a>(evidence: &Evidence<'a>, process: u32) -> &'a str {
    evidence.own_template(process).map_or(SUBSHELL, called)
}

/// The processes with most of something, for evidence: at most this number.
pub(crate) fn most<T: Ord + Copy, K>(mut counted: Vec<(K, T)>, at_most: usize) -> Vec<(K, T)> {
    counted.sort_by_key(|(_, count)| Reverse(*count));
    counted.truncate(at_most);
    counted
}
