//! The critical path in sums: by phase, by program and by what was waited for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_findings::{CriticalPath, PathPhase, PathProgram, PathWait};
use proctrace_recording::Recording;
use proctrace_wire::{Quantity, WaitFor};

use crate::path::phases::{Phase, Spent};
use crate::path::steps::Step;
use crate::path::words::object;
use crate::path::{Doing, Explained};

pub fn findings(recording: &Recording, path: &Explained) -> CriticalPath {
    let all = path.steps.iter().fold(Spent::default(), |mut all, step| {
        all.add(step);
        all
    });
    CriticalPath {
        wall_ns: recording.wall_ns(),
        running_ns: all.running_ns,
        waiting_for_cpu_ns: all.waiting_for_cpu_ns,
        waiting_ns: all.waiting_ns,
        phases: phases(recording, &path.phases),
        programs: programs(recording, &path.steps),
        waits: waits(recording, &path.steps),
    }
}

/// Time on the path, and how many times the path came to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    pub spent: Spent,
    pub times: u64,
}

/// The steps by a number of theirs, those with most time first.
pub fn groups(steps: &[Step], number_of: impl Fn(&Step) -> usize) -> Vec<(usize, Group)> {
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    let mut last = None;
    for step in steps {
        let number = number_of(step);
        let group = groups.entry(number).or_default();
        group.spent.add(step);
        group.times += u64::from(last.replace(number) != Some(number));
    }
    let mut groups: Vec<(usize, Group)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| Reverse(group.spent.all_ns()));
    groups
}

fn programs(recording: &Recording, steps: &[Step]) -> Vec<PathProgram> {
    groups(steps, |step| step.program as usize)
        .into_iter()
        .map(|(program, group)| PathProgram {
            program: recording.programs()[program].name.clone(),
            running_ns: group.spent.running_ns,
            waiting_for_cpu_ns: group.spent.waiting_for_cpu_ns,
            waiting_ns: group.spent.waiting_ns,
            times: group.times,
        })
        .collect()
}

fn phases(recording: &Recording, phases: &[Phase]) -> Vec<PathPhase> {
    #[derive(Default)]
    struct Sum {
        children: u64,
        path_ns: u64,
        cpu_ns: f64,
    }
    let mut sums: BTreeMap<(bool, usize), Sum> = BTreeMap::new();
    for phase in phases {
        let is_command = phase.process.is_none();
        let program = recording.processes()[phase.process.unwrap_or(phase.command)].program();
        let sum = sums.entry((is_command, program)).or_default();
        sum.children += u64::from(!is_command);
        sum.path_ns += phase.spent.all_ns();
        sum.cpu_ns += phase.cpu_ns;
    }
    let cpu_is_known = recording.knows().all(&[Quantity::Cpu, Quantity::Samples]);
    let mut phases: Vec<PathPhase> = sums
        .into_iter()
        .map(|((is_command, program), sum)| PathPhase {
            program: recording.programs()[program].name.clone(),
            is_command,
            children: sum.children,
            path_ns: sum.path_ns,
            cores_in_use: cpu_is_known.then(|| sum.cpu_ns / sum.path_ns.max(1) as f64),
        })
        .collect();
    phases.sort_by_key(|phase| Reverse(phase.path_ns));
    phases
}

fn waits(recording: &Recording, steps: &[Step]) -> Vec<PathWait> {
    let mut sums: BTreeMap<WaitFor, BTreeMap<u32, u64>> = BTreeMap::new();
    for step in steps {
        if let Doing::Waiting(reason) = step.doing {
            *sums.entry(reason).or_default().entry(step.program).or_default() += step.length_ns();
        }
    }
    let mut waits: Vec<PathWait> = sums
        .into_iter()
        .map(|(reason, programs)| {
            let main = programs.iter().max_by_key(|(program, ns)| (**ns, Reverse(**program)));
            let name =
                main.map(|(program, _)| recording.programs()[*program as usize].name.clone());
            PathWait {
                waits_for: reason.name(),
                says: object(reason),
                main_program: name.unwrap_or_default(),
                waiting_ns: programs.values().sum(),
            }
        })
        .collect();
    waits.sort_by_key(|wait| Reverse(wait.waiting_ns));
    waits
}
