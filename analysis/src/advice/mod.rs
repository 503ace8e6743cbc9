//! Advice: what to change in a job, and what that is predicted to gain.
//!
//! Each detector recognizes one kind of waste, and predicts what its removal gains (docs/advice.md has the
//! formulas). Most take processes out of the recording: [`evidence::Evidence::without`].

mod commands;
mod contention;
mod cures;
mod evidence;
mod failures;
mod model;
mod observed;
mod polling;
mod repeated;
mod rules;
mod serial;
mod starts;
mod straggler;
mod timers;
mod wrappers;

use std::cmp::Reverse;

use proctrace_findings::{Advice, Advised, Gain};

use self::evidence::{Evidence, Removal};
pub use self::observed::observed;
pub use self::rules::AdviceRules;
use crate::recording::Recording;

/// A piece of advice, and the processes that it is about.
#[derive(Debug)]
struct Found {
    advice: Advice,
    /// In order.
    processes: Vec<u32>,
}

impl Found {
    /// Advice to do without some processes.
    fn without(removal: Removal, advice: Advice) -> Self {
        let advice = Advice {
            processes: removal.processes.len() as u64,
            wall_ns: removal.wall,
            cpu_ns: removal.cpu,
            ..advice
        };
        Self { advice, processes: removal.processes }
    }
}

/// Everything that pays at least this part of the wall time or of the CPU time, best first.
pub fn advise(recording: &Recording, rules: &AdviceRules, min_percent: f64) -> Advised {
    let evidence = Evidence::of(recording, min_percent);
    let found = find(&evidence, rules);
    Advised {
        wall_ns: evidence.wall_ns,
        cpu_ns: evidence.cpu_ns,
        has_path: evidence.path.is_some(),
        min_percent,
        advice: ranked(found, &evidence),
    }
}

fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    if !evidence.knows_argv() {
        return Vec::new();
    }
    let (polling, polls) = polling::find(evidence);
    let mut found = polling;
    found.extend(commands::find(evidence, rules));
    found.extend(repeated::find(evidence, rules));
    found.extend(timers::find(evidence, &polls));
    found.extend(serial::find(evidence));
    found.extend(straggler::find(evidence));
    found.extend(contention::find(evidence));
    found.extend(failures::find(evidence, rules));
    found.extend(starts::find(evidence));
    found.extend(wrappers::find(evidence));
    found.extend(cures::find(evidence, rules));
    found
}

/// Those that pay, best first, with the places of better ones about the same processes.
fn ranked(mut found: Vec<Found>, evidence: &Evidence<'_>) -> Vec<Advice> {
    found.retain(|found| evidence.pays(found.advice.wall_ns.middle, found.advice.cpu_ns.middle));
    found.sort_by_key(|found| {
        let Advice { wall_ns, cpu_ns, kind, .. } = &found.advice;
        Reverse((in_percent(*wall_ns, evidence.wall_ns), cpu_ns.middle, wall_ns.middle, *kind))
    });
    let parts: Vec<Option<u64>> = found
        .iter()
        .enumerate()
        .map(|(at, one)| found[..at].iter().position(|better| mostly_in(one, better)))
        .map(|place| place.map(|place| place as u64 + 1))
        .collect();
    found
        .into_iter()
        .zip(parts)
        .map(|(found, part_of)| Advice { part_of, ..found.advice })
        .collect()
}

/// Gains of wall time within a thousandth of it are the same: then CPU time decides.
fn in_percent(gain: Gain, wall_ns: u64) -> u64 {
    u64::try_from(u128::from(gain.middle) * 1000 / u128::from(wall_ns.max(1))).unwrap_or(u64::MAX)
}

/// Whether more than half of the processes of one are processes of the other.
fn mostly_in(one: &Found, other: &Found) -> bool {
    let both = one.processes.iter().filter(|at| other.processes.binary_search(at).is_ok()).count();
    both > 0 && 2 * both > one.processes.len()
}

#[cfg(test)]
mod tests;
