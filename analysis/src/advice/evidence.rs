//! What all kinds of advice look at: a recording, its critical path, and who started whom, computed once.

use std::cell::OnceCell;
use std::cmp::Reverse;

use proctrace_findings::Gain;
use proctrace_trace::Quantity;
use proctrace_wire::WaitFor;

use super::model::{Cut, Model};
use crate::path::{CriticalPath, Doing};
use crate::recording::Recording;
use crate::recording::fast::Bits;
use crate::recording::process::Process;

/// Runs of the same job differ: measured times are taken to be certain to this part.
const CERTAIN_PERCENT: u64 = 10;

/// Words that begin the command lines of shells.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "rbash", "-bash"];

/// A recording, prepared for all detectors.
pub(crate) struct Evidence<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) path: Option<CriticalPath>,
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) min_percent: f64,
    /// Time of each process on the path.
    pub(crate) path_ns: Vec<u64>,
    /// The same with its descendants.
    pub(crate) path_below_ns: Vec<u64>,
    /// CPU time of each process with its descendants.
    pub(crate) cpu_below_ns: Vec<u64>,
    /// Where the children of each process begin in `children`.
    first_child: Vec<u32>,
    children: Vec<u32>,
    /// Which templates are those of shells.
    shells: Vec<bool>,
    model: OnceCell<(Model<'a>, u64)>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn of(recording: &'a Recording, min_percent: f64) -> Self {
        let path = CriticalPath::of(recording);
        let processes = &recording.processes;
        let mut path_ns = vec![0_u64; processes.len()];
        for part in path.iter().flat_map(|path| &path.parts) {
            let process = recording.tasks[part.task as usize].process();
            path_ns[process] = path_ns[process].saturating_add(part.end_ns - part.begin_ns);
        }
        let cpu: Vec<u64> = processes.iter().map(|process| process.cpu.total_ns()).collect();
        let (first_child, children) = children(processes);
        let is_shell = |template: &String| SHELLS.contains(&first_word(template));
        Self {
            wall_ns: recording.wall_ns(),
            cpu_ns: cpu.iter().fold(0, |sum, cpu_ns| sum.saturating_add(*cpu_ns)),
            min_percent,
            path_below_ns: with_descendants(processes, &path_ns),
            cpu_below_ns: with_descendants(processes, &cpu),
            path_ns,
            first_child,
            children,
            shells: recording.templates.iter().map(is_shell).collect(),
            model: OnceCell::new(),
            path,
            recording,
        }
    }

    pub(crate) fn process(&self, process: u32) -> &'a Process {
        &self.recording.processes[process as usize]
    }

    /// All processes by number.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, &'a Process)> + use<'a> {
        (0..).zip(&self.recording.processes)
    }

    /// In order of birth.
    pub(crate) fn children(&self, process: u32) -> &[u32] {
        let at = process as usize;
        let (begin, end) = (self.first_child[at], self.first_child[at + 1]);
        &self.children[begin as usize..end as usize]
    }

    /// The template of the command line that a process executed itself; `None` for one that only forked.
    pub(crate) fn own_template(&self, process: u32) -> Option<&'a str> {
        let process = self.process(process);
        if process.execs == 0 { None } else { self.recording.template_of(process) }
    }

    /// The first word of its own command line, without directory.
    pub(crate) fn command(&self, process: u32) -> Option<&'a str> {
        self.own_template(process).map(first_word)
    }

    /// Number of the template of the spawner's command line.
    pub(crate) fn spawner(&self, process: u32) -> Option<u32> {
        let run = self.process(process).spawned_in()?;
        self.recording.runs.get(run as usize).map(|run| run.template)
    }

    pub(crate) fn spawned_by_shell(&self, process: u32) -> bool {
        let template = self.spawner(process);
        template.is_some_and(|template| self.shells.get(template as usize) == Some(&true))
    }

    /// A template by its number, shortened to fit into a sentence.
    pub(crate) fn template(&self, number: u32) -> String {
        self.recording.templates.get(number as usize).map_or_else(String::new, |text| short(text))
    }

    /// When a process ended, at the latest at the end of the recording.
    pub(crate) fn ended_ns(&self, process: u32) -> u64 {
        self.process(process).ended_ns().unwrap_or(self.recording.last_ns)
    }

    pub(crate) fn life_ns(&self, process: u32) -> u64 {
        self.ended_ns(process).saturating_sub(self.process(process).born_ns)
    }

    /// Whether a gain that reaches this much may be worth a line.
    pub(crate) fn pays(&self, wall_ns: u64, cpu_ns: u64) -> bool {
        let share = |part: u64, whole: u64| {
            whole > 0 && 100.0 * part as f64 / whole as f64 >= self.min_percent && part > 0
        };
        share(wall_ns, self.wall_ns) || share(cpu_ns, self.cpu_ns)
    }

    /// Processes with all their descendants, each once, in order.
    pub(crate) fn with_descendants(&self, units: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::with_capacity(units.len());
        let mut known = Bits::default();
        let mut left = units.to_vec();
        while let Some(process) = left.pop() {
            if !known.contains(process as usize) {
                known.insert(process as usize);
                all.push(process);
                left.extend(self.children(process));
            }
        }
        all.sort_unstable();
        all
    }

    /// The tasks of processes.
    pub(crate) fn tasks(&self, processes: &[u32]) -> Bits {
        let mut tasks = Bits::default();
        for process in processes {
            self.process(*process).tasks().for_each(|task| tasks.insert(task));
        }
        tasks
    }

    /// How much earlier the command ends without what is cut; `None` if the path is not known.
    pub(crate) fn earlier_ns(&self, cut: Cut<'_>) -> Option<u64> {
        let part = self.path.as_ref()?.parts.last()?;
        let last = (part.task as usize, part.end_ns);
        let (model, today_ns) = self.model.get_or_init(|| {
            let model = Model::of(self.recording, last);
            let today_ns = model.wall_ns(Cut::Nothing);
            (model, today_ns)
        });
        Some(today_ns.saturating_sub(model.wall_ns(cut)))
    }

    /// What is gained if processes, with their descendants, are not started: `None` if that is too little
    /// to be worth a line.
    pub(crate) fn without(&self, units: &[u32]) -> Option<Removal> {
        let (own_path_ns, own_cpu_ns) = self.share_of_spawners(units);
        let sum = |of: &[u64]| {
            units.iter().fold(0_u64, |sum, unit| sum.saturating_add(of[*unit as usize]))
        };
        let (on_path_ns, cpu_ns) = (sum(&self.path_below_ns), sum(&self.cpu_below_ns));
        let alive_ns = if self.path.is_some() { 0 } else { self.alive_ns(units) };
        if !self.pays(
            on_path_ns.saturating_add(own_path_ns).saturating_add(alive_ns),
            cpu_ns.saturating_add(own_cpu_ns),
        ) {
            return None;
        }
        let processes = self.with_descendants(units);
        let path_ns: u64 = processes.iter().map(|process| self.path_ns[*process as usize]).sum();
        let cpu_ns = processes
            .iter()
            .fold(0_u64, |sum, process| sum.saturating_add(self.process(*process).cpu.total_ns()));
        let wall = match self.earlier_ns(Cut::Tasks(&self.tasks(&processes))) {
            Some(earlier_ns) => {
                let earlier_ns = earlier_ns.min(path_ns);
                let middle_ns = earlier_ns.midpoint(path_ns);
                Gain::new(less(earlier_ns), middle_ns, more(path_ns.saturating_add(own_path_ns)))
            }
            None => Gain::new(0, alive_ns / 2, alive_ns),
        };
        let cpu = Gain::new(less(cpu_ns), cpu_ns, more(cpu_ns.saturating_add(own_cpu_ns)));
        Some(Removal { processes, wall: wall.at_most(self.wall_ns), cpu: cpu.at_most(self.cpu_ns) })
    }

    /// What the spawners of these processes spend themselves, on the path and in total, divided evenly among
    /// all their children: to fork them and to reap them.
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
            path_ns = path_ns.saturating_add(share(self.path_ns[parent]));
            let own_ns = self.recording.processes[parent].cpu.total_ns();
            cpu_ns = cpu_ns.saturating_add(share(own_ns));
        }
        (path_ns, cpu_ns)
    }

    /// The time within the wall time in which at least one of these was alive: all that is known without a
    /// path.
    fn alive_ns(&self, units: &[u32]) -> u64 {
        let end_ns = self.recording.first_ns.saturating_add(self.wall_ns);
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

    /// Time of each process on the path in which it waited for a point in time.
    pub(crate) fn timers_ns(&self) -> Vec<(u32, u64)> {
        let mut timers = Vec::new();
        for part in self.path.iter().flat_map(|path| &path.parts) {
            if part.doing == Doing::Waiting(WaitFor::Timer) {
                let process = self.recording.tasks[part.task as usize].process() as u32;
                timers.push((process, part.end_ns - part.begin_ns));
            }
        }
        timers
    }

    /// Why gains of wall time are what they are, for all kinds that take processes out.
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
        self.recording.knows.all(&[Quantity::Forks, Quantity::Execs, Quantity::Argv])
    }
}

/// What is gained without some processes.
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

pub(crate) fn first_word(template: &str) -> &str {
    template.split(' ').next().unwrap_or(template)
}

/// A template cut to fit into a sentence.
pub(crate) fn short(template: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    if template.chars().count() <= CHARACTERS_MAX {
        return template.to_owned();
    }
    let head: String = template.chars().take(CHARACTERS_MAX - 1).collect();
    format!("{}…", head.trim_end())
}

/// The children of all processes, and where those of each begin.
fn children(processes: &[Process]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0_u32; processes.len() + 1];
    let parent_of = |process: &Process| process.parent().filter(|at| *at < processes.len());
    for parent in processes.iter().filter_map(parent_of) {
        first[parent + 1] += 1;
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut next = first.clone();
    let mut children = vec![0_u32; *first.last().unwrap_or(&0) as usize];
    for (process, number) in processes.iter().zip(0..) {
        if let Some(parent) = parent_of(process) {
            children[next[parent] as usize] = number;
            next[parent] += 1;
        }
    }
    (first, children)
}

/// A value of each process, added up with those of all its descendants. Parents precede their children,
/// except for processes that predate the recording; such children are left out.
fn with_descendants(processes: &[Process], of: &[u64]) -> Vec<u64> {
    let mut sums = of.to_vec();
    for (at, process) in processes.iter().enumerate().rev() {
        if let Some(parent) = process.parent().filter(|parent| *parent < at) {
            sums[parent] = sums[parent].saturating_add(sums[at]);
        }
    }
    sums
}

/// The processes with most of something, for evidence: at most this number.
pub(crate) fn most<T: Ord + Copy, K>(mut counted: Vec<(K, T)>, at_most: usize) -> Vec<(K, T)> {
    counted.sort_by_key(|(_, count)| Reverse(*count));
    counted.truncate(at_most);
    counted
}
