//! The details of all processes that ran a program.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use proctrace_findings::{Figure, ProgramDetails, Slow, Spread};
use proctrace_overview::details::since;
use proctrace_overview::ends::known_status;
use proctrace_overview::figures::{OfProcesses, needs_of_all, of_all};
use proctrace_recording::Recording;
use proctrace_recording::process::Process;
use proctrace_wire::{Outcome, Quantity};

use super::relatives::{candidate, groups, that_ran};

/// Number of the slowest processes that are listed.
const SLOWEST: usize = 10;

/// Details of the programs with these numbers, which have the same name.
pub(super) fn details(recording: &Recording, programs: &[usize]) -> ProgramDetails {
    let (last, went_on) = that_ran(recording, programs);
    let processes: Vec<&Process> = last.iter().map(|at| &recording.processes()[*at]).collect();
    let named = programs.iter().filter_map(|program| recording.programs().get(*program));
    let categories: BTreeSet<String> =
        named.clone().map(|program| program.category().to_owned()).collect();
    let runs = recording.runs().iter().filter(|run| programs.contains(&(run.program as usize)));
    let spawner = |process: &&Process| {
        let program = recording.programs().get(recording.spawner_of(process)?)?;
        Some(program.name.clone())
    };
    let outcome = |process: &Process| {
        known_status(process).map(|status| Outcome::of_status(status).name().into_owned())
    };
    let ended_ns = |process: &Process| process.ended_ns().unwrap_or(recording.last_ns());
    ProgramDetails {
        program: named.clone().next().map_or_else(String::new, |program| program.name.clone()),
        categories: categories.into_iter().collect(),
        processes: processes.len() as u64,
        forked: processes.iter().filter(|process| process.execs == 0).count() as u64,
        execs: Some(runs.filter(|run| run.happened_here).count() as u64),
        went_on,
        most_alive: most_alive(&processes, ended_ns),
        threads: processes.iter().map(|p| p.tasks().len().saturating_sub(1) as u64).sum(),
        first_ns: processes.iter().map(|p| since(recording, p.born_ns)).min(),
        last_ns: processes.iter().map(|p| since(recording, ended_ns(p))).max(),
        started_by: counted(processes.iter().filter_map(spawner)),
        outcomes: counted(
            processes
                .iter()
                .map(|process| outcome(process).unwrap_or_else(|| "not known".to_owned())),
        ),
        commands: groups(recording, last.iter().copied(), None),
        usage: of_all(recording, &last),
        spreads: spreads(recording, &last),
        slowest: slowest(recording, &last, ended_ns, outcome),
        not_known: recording.knows().why_not(&needs_of_all(&[Quantity::Argv])),
    }
}

/// The most frequent first.
fn counted(names: impl Iterator<Item = String>) -> Vec<(String, u64)> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

/// Most processes that were alive at the same time.
fn most_alive(processes: &[&Process], ended_ns: impl Fn(&Process) -> u64) -> u64 {
    // At the same time, ends come before births.
    let births = processes.iter().map(|process| (process.born_ns, true));
    let ends = processes.iter().map(|process| (ended_ns(process).max(process.born_ns), false));
    let mut events: Vec<(u64, bool)> = births.chain(ends).collect();
    events.sort_unstable();
    let (mut alive, mut most) = (0_u64, 0);
    for (_, is_birth) in events {
        alive = if is_birth { alive + 1 } else { alive.saturating_sub(1) };
        most = most.max(alive);
    }
    most
}

fn spreads(recording: &Recording, last: &[usize]) -> Vec<Spread> {
    let all = OfProcesses::new(recording, 0..recording.processes().len());
    let of = |name, value: &dyn Fn(usize) -> Option<u64>| {
        let mut values: Vec<u64> = last.iter().filter_map(|at| value(*at)).collect();
        values.sort_unstable();
        // The smallest value that at least this part of all do not exceed.
        let at = |tenths: usize| {
            let place = values.len().saturating_mul(tenths).div_ceil(10).saturating_sub(1);
            values.get(place).copied()
        };
        Some(Spread {
            name,
            n: values.len() as u64,
            least: values.first().copied()?,
            median: at(5)?,
            ninety_percent: at(9)?,
            most: values.last().copied()?,
        })
    };
    let figure = |figure: Figure| of(figure.name(), &|at| all.one(figure, at));
    let lives = of("life_ns", &|at| recording.processes()[at].life_ns());
    [lives, figure(Figure::CpuNs), figure(Figure::PeakRssBytes)].into_iter().flatten().collect()
}

fn slowest(
    recording: &Recording,
    last: &[usize],
    ended_ns: impl Fn(&Process) -> u64,
    outcome: impl Fn(&Process) -> Option<String>,
) -> Vec<Slow> {
    let life_ns = |at: usize| {
        let process = &recording.processes()[at];
        ended_ns(process).saturating_sub(process.born_ns)
    };
    let mut order: Vec<usize> = last.to_vec();
    order.sort_by_key(|at| (Reverse(life_ns(*at)), *at));
    order.truncate(SLOWEST);
    let slow = |at: usize| {
        let process = &recording.processes()[at];
        Slow {
            process: candidate(recording, at),
            life_ns: life_ns(at),
            cpu_ns: recording.knows().some(&[Quantity::Cpu], process.cpu.total_ns()),
            outcome: outcome(process),
        }
    };
    order.into_iter().map(slow).collect()
}
