//! Advice: what to change in a job, and what that is predicted to gain.
//!
//! Each detector recognizes one kind of waste, and predicts what its removal gains (docs/advice.md has the
//! formulas). Most take processes out of the recording: `evidence::Evidence::without`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod caches;
mod commands;
mod contention;
mod counter;
mod cures;
mod detached;
mod engines;
mod evidence;
mod explain;
mod failures;
mod independence;
mod large_fork;
mod memory_peak;
mod model;
mod names;
mod observed;
mod on_path;
mod places;
mod polling;
mod repeated;
mod repeated_opens;
mod rules;
mod same;
mod search;
mod searches;
mod serial;
mod serial_process;
mod shared_writer;
mod starts;
mod straggler;
mod taken_over;
mod timers;
mod together;
mod wrappers;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_findings::{Advice, Advised, AdvisedStep, Gain};
use proctrace_overview::path::Explained;
use proctrace_overview::path_findings;
use proctrace_overview::requested::mismatches;
use proctrace_overview::steps::group_of;
use proctrace_recording::Recording;

use self::evidence::{Evidence, Removal};
pub use self::explain::explain;
pub use self::observed::observed;
pub use self::places::places;
pub use self::rules::AdviceRules;
use self::search::find;
pub use self::search::{Search, helper_threads};

/// Instead of the number of a parent or a forker that is not known.
const NOBODY: u32 = u32::MAX;

/// A piece of advice, and the processes that it is about.
#[derive(Debug)]
struct Found {
    advice: Advice,
    /// In order.
    processes: Vec<u32>,
    effect: Effect,
    /// Key that tells it from other advice of its kind, the same in every recording of a job.
    key: String,
    /// Number of the rule that it is from, of a known cure.
    cure: Option<usize>,
}

/// Effect on the processes if the advice is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// They are not started.
    Removed,
    /// They are not started, but something takes their place.
    Replaced,
    /// They still run, and do less.
    Reduced,
    /// They still run, at other times.
    Kept,
}

impl Found {
    fn new(processes: Vec<u32>, effect: Effect, advice: Advice) -> Self {
        Self { key: advice.what.clone(), advice, processes, effect, cure: None }
    }

    /// Tells it from others by this instead of what it says: there are numbers in that, and names of this run.
    fn keyed(self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self }
    }

    /// Advice after which these processes still run.
    fn about(processes: Vec<u32>, advice: Advice) -> Self {
        Self::new(processes, Effect::Kept, advice)
    }

    /// Advice after which these processes do less.
    fn less(processes: Vec<u32>, advice: Advice) -> Self {
        Self::new(processes, Effect::Reduced, advice)
    }

    /// Advice after which something else does what these processes did.
    fn instead(processes: Vec<u32>, advice: Advice) -> Self {
        Self::new(processes, Effect::Replaced, advice)
    }

    /// Advice to do without some processes.
    fn without(removal: Removal, advice: Advice) -> Self {
        let advice = Advice {
            processes: removal.processes.len() as u64,
            wall_ns: removal.wall,
            cpu_ns: removal.cpu,
            ..advice
        };
        Self::new(removal.processes, Effect::Removed, advice)
    }
}

/// Everything that pays at least this part of the wall time, of the CPU time or of the peak of memory, best first.
pub fn advise(recording: &Recording, rules: &AdviceRules, min_percent: f64) -> Advised {
    advised(&Evidence::of(recording, min_percent), rules)
}

fn advised(evidence: &Evidence<'_>, rules: &AdviceRules) -> Advised {
    advised_of(evidence, ranked(find(evidence, rules), evidence))
}

/// Part of the estimate that is gained at least where it is known that work can be done at once: one in so many.
const PART_CERTAIN: u64 = 4;

/// Kinds of advice to run more at a time, and to run less: who follows the one undoes the other.
const MORE_AT_ONCE: [&str; 3] = ["make-without-j", "serial-stretch", "serial-process"];
const LESS_AT_ONCE: [&str; 1] = ["overcommit"];

/// Settles advice that contradicts other advice: the best, in order, says what the other one has seen.
fn agreed(found: &mut Vec<Found>) {
    let is_one_of = |kinds: &[&str], found: &Found| kinds.contains(&found.advice.kind);
    let more = found.iter().position(|found| is_one_of(&MORE_AT_ONCE, found));
    let less = found.iter().position(|found| is_one_of(&LESS_AT_ONCE, found));
    let (Some(more), Some(less)) = (more, less) else { return };
    let (kept, dropped, others) = if more < less {
        (
            more,
            &LESS_AT_ONCE[..],
            "at other times, more of its tasks want to run than there are cores",
        )
    } else {
        (less, &MORE_AT_ONCE[..], "at other times, cores are idle while one task runs")
    };
    let risk = &mut found[kept].advice.risk;
    risk.push_str("; ");
    risk.push_str(others);
    found.retain(|found| !is_one_of(dropped, found));
}

fn advised_of(evidence: &Evidence<'_>, found: Vec<Found>) -> Advised {
    // Who is told nothing wants to know why.
    let recording = evidence.recording;
    let is_silent = !found.iter().any(|found| found.advice.is_certain());
    let went = evidence.path.as_ref().filter(|_| is_silent);
    Advised {
        path: went.map(|went| path_findings::findings(recording, &Explained::of(recording, went))),
        together: together::gain(evidence, &found),
        requests: mismatches(recording),
        wall_ns: evidence.wall_ns,
        cpu_ns: evidence.cpu_ns,
        peak_bytes: evidence.peak_bytes(),
        has_path: evidence.path.is_some(),
        min_percent: evidence.min_percent,
        advice: found
            .into_iter()
            .map(|found| Advice {
                started: found.advice.started.or(starts(evidence, &found.processes)),
                steps: steps_of(recording, &found.processes),
                about: found.processes,
                ..found.advice
            })
            .collect(),
    }
}

/// Groups of steps that are named with advice.
const STEPS_SHOWN: usize = 3;

/// The groups of steps to which most of these processes belong.
fn steps_of(recording: &Recording, processes: &[u32]) -> Vec<AdvisedStep> {
    let steps = recording.steps();
    let mut by_step: BTreeMap<u32, u64> = BTreeMap::new();
    for step in processes.iter().filter_map(|at| steps.of_process(*at)) {
        *by_step.entry(step).or_default() += 1;
    }
    let mut by_group: BTreeMap<String, u64> = BTreeMap::new();
    for (step, processes) in by_step {
        *by_group.entry(group_of(&steps.all[step as usize])).or_default() += processes;
    }
    let mut groups: Vec<AdvisedStep> =
        by_group.into_iter().map(|(group, processes)| AdvisedStep { group, processes }).collect();
    groups.sort_by_key(|group| Reverse(group.processes));
    groups.truncate(STEPS_SHOWN);
    groups
}

/// The first of these that executed a program, and that a shell started.
fn starts(evidence: &Evidence<'_>, processes: &[u32]) -> Option<u32> {
    let by_shell = |process: &&u32| {
        evidence.process(**process).execs > 0 && evidence.spawned_by_shell(**process)
    };
    processes.iter().find(by_shell).copied()
}

/// Ranks the advice that pays, best first but what may gain nothing last, with the places of better ones about the same
/// processes.
fn ranked(mut found: Vec<Found>, evidence: &Evidence<'_>) -> Vec<Found> {
    let memory = |found: &Found| found.advice.memory_bytes.map_or(0, |memory| memory.middle);
    found.retain(|found| {
        evidence.pays(found.advice.wall_ns.middle, found.advice.cpu_ns.middle)
            || evidence.pays_memory(memory(found))
    });
    found.sort_by_key(|found| {
        let Advice { wall_ns, cpu_ns, kind, .. } = &found.advice;
        let percent = in_percent(*wall_ns, evidence.wall_ns);
        let is_certain = found.advice.is_certain();
        Reverse((is_certain, percent, cpu_ns.middle, wall_ns.middle, memory(found), *kind))
    });
    agreed(&mut found);
    let parts: Vec<Option<u64>> = found
        .iter()
        .enumerate()
        .map(|(at, one)| found[..at].iter().position(|better| mostly_in(one, better)))
        .map(|place| place.map(|place| place as u64 + 1))
        .collect();
    for (found, part_of) in found.iter_mut().zip(parts) {
        found.advice.part_of = part_of;
    }
    found
}

/// Gains of wall time within a thousandth of it are the same: then CPU time decides.
fn in_percent(gain: Gain, wall_ns: u64) -> u64 {
    u64::try_from(u128::from(gain.middle) * 1000 / u128::from(wall_ns.max(1))).unwrap_or(u64::MAX)
}

/// Returns whether more than half of the processes of one are processes of the other, so that not both gains are to be
/// had: what still runs at another time can still be left out.
fn mostly_in(one: &Found, other: &Found) -> bool {
    if other.effect == Effect::Kept && one.effect != Effect::Kept {
        return false;
    }
    // What is possible is not hidden behind what is sure.
    if one.advice.is_certain() != other.advice.is_certain() {
        return false;
    }
    let both = one.processes.iter().filter(|at| other.processes.binary_search(at).is_ok()).count();
    both > 0 && 2 * both > one.processes.len()
}

#[cfg(test)]
mod tests;
