//! Parents, children and descendants, and how processes are named and grouped.

use std::cmp::Reverse;
use std::collections::HashMap;

use proctrace_findings::{Candidate, ChildGroup};
use proctrace_wire::Quantity;

use proctrace_classify::fast::Bits;
use proctrace_overview::details::{relative, since};
use proctrace_overview::outcomes::failed;
use proctrace_recording::Recording;
use proctrace_recording::lines::Distinct;
use proctrace_recording::process::Process;

/// The property shared by processes that are shown as one: the template of their command line; or
/// the program, for forks that never called exec and where arguments are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    Template(u32),
    Program(usize),
    Fork(usize),
}

impl Shape {
    pub(super) fn of(recording: &Recording, process: &Process) -> Self {
        let run = process.run().and_then(|run| recording.runs().get(run as usize));
        let template = run.map(|run| run.template).filter(|template| {
            let text = recording.templates().get(*template as usize);
            text.is_some_and(|text| !text.is_empty())
        });
        match template {
            _ if process.execs == 0 && process.parent().is_some() => Self::Fork(process.program()),
            Some(template) if recording.knows().all(&[Quantity::Argv]) => Self::Template(template),
            _ => Self::Program(process.program()),
        }
    }

    /// Name of these processes, all of this shape.
    pub(super) fn text(self, recording: &Recording, lines: &Distinct) -> String {
        let name = |program: usize| {
            recording
                .programs()
                .get(program)
                .map_or_else(String::new, |program| program.name.clone())
        };
        match self {
            Self::Template(at) => recording.line_of_all(at, lines),
            Self::Program(program) => name(program),
            Self::Fork(program) => format!("{} (fork)", name(program)),
        }
    }
}

/// The line of one process.
fn of_one(recording: &Recording, process: &Process) -> Distinct {
    let mut lines = Distinct::default();
    lines.add(recording, process);
    lines
}

pub(super) fn candidate(recording: &Recording, at: usize) -> Candidate {
    let process = &recording.processes()[at];
    Candidate {
        process: relative(recording, at),
        born_ns: since(recording, process.born_ns),
        ended_ns: process.ended_ns().map(|ended_ns| since(recording, ended_ns)),
        command: Shape::of(recording, process).text(recording, &of_one(recording, process)),
    }
}

/// The parent of a process, which precedes it in any recording that is not broken.
pub(super) fn parent(recording: &Recording, at: usize) -> Option<usize> {
    recording.processes()[at].parent().filter(|parent| *parent < at)
}

/// The ancestors of a process, parent first.
pub(super) fn parents(recording: &Recording, at: usize) -> Vec<usize> {
    std::iter::successors(parent(recording, at), |at| parent(recording, *at)).collect()
}

/// The processes whose last program is one of these, and how many others ran it and went on.
pub(super) fn that_ran(recording: &Recording, programs: &[usize]) -> (Vec<usize>, u64) {
    let last = |process: &Process| programs.contains(&process.program());
    let processes = recording.processes().iter().enumerate();
    let of: Vec<usize> = processes.filter(|(_, process)| last(process)).map(|(at, _)| at).collect();
    let mut others = Bits::default();
    let mut went_on = 0;
    for run in recording.runs().iter().filter(|run| programs.contains(&(run.program as usize))) {
        let at = run.process as usize;
        let is_other = recording.processes().get(at).is_some_and(|process| !last(process));
        if is_other && !others.contains(at) {
            others.insert(at);
            went_on += 1;
        }
    }
    (of, went_on)
}

/// The descendants of each process.
pub(super) struct Below {
    processes: Vec<u64>,
    cpu_ns: Vec<u64>,
}

impl Below {
    pub(super) fn of(recording: &Recording) -> Self {
        let count = recording.processes().len();
        let (mut processes, mut cpu_ns) = (vec![0_u64; count], vec![0_u64; count]);
        for at in (0..count).rev() {
            if let Some(parent) = parent(recording, at) {
                let used_ns = recording.processes()[at].cpu.total_ns();
                processes[parent] = processes[parent].saturating_add(processes[at] + 1);
                cpu_ns[parent] = cpu_ns[parent].saturating_add(cpu_ns[at].saturating_add(used_ns));
            }
        }
        Self { processes, cpu_ns }
    }

    pub(super) fn processes(&self, at: usize) -> u64 {
        self.processes[at]
    }

    pub(super) fn cpu_ns(&self, at: usize) -> u64 {
        self.cpu_ns[at]
    }
}

/// Processes by command line, those that used most CPU time first; with what is below them, unless
/// `below` is missing.
pub(super) fn groups(
    recording: &Recording,
    processes: impl Iterator<Item = usize>,
    below: Option<&Below>,
) -> Vec<ChildGroup> {
    let mut places: HashMap<Shape, usize> = HashMap::new();
    let mut groups: Vec<(Shape, u64, ChildGroup)> = Vec::new();
    let mut lines: Vec<Distinct> = Vec::new();
    for at in processes {
        let process = &recording.processes()[at];
        let shape = Shape::of(recording, process);
        let place = *places.entry(shape).or_insert(groups.len());
        if place == groups.len() {
            let group = ChildGroup {
                // Known when all have been seen.
                command: String::new(),
                processes: 0,
                failed: 0,
                descendants: 0,
                cpu_ns: None,
                longest_ns: None,
                first_serial: process.serial,
                first_pid: process.pid,
            };
            groups.push((shape, 0, group));
            lines.push(Distinct::default());
        }
        lines[place].add(recording, process);
        let (_, cpu_ns, group) = &mut groups[place];
        group.processes += 1;
        group.failed += u64::from(failed(process));
        group.longest_ns = group.longest_ns.max(process.life_ns());
        *cpu_ns = cpu_ns.saturating_add(process.cpu.total_ns());
        if let Some(below) = below {
            group.descendants = group.descendants.saturating_add(below.processes(at));
            *cpu_ns = cpu_ns.saturating_add(below.cpu_ns(at));
        }
    }
    for ((shape, _, group), lines) in groups.iter_mut().zip(&lines) {
        group.command = shape.text(recording, lines);
    }
    groups.sort_by_key(|(_, cpu_ns, group)| (Reverse(*cpu_ns), Reverse(group.processes)));
    let known = |cpu_ns| recording.knows().some(&[Quantity::Cpu], cpu_ns);
    groups
        .into_iter()
        .map(|(_, cpu_ns, group)| ChildGroup { cpu_ns: known(cpu_ns), ..group })
        .collect()
}
