//! What was predicted from one recording, and what a recording of the changed job shows.

use proctrace_findings::{Advice, Concerned, Left, Observed, ObservedAdvice};

use super::evidence::Evidence;
use super::rules::AdviceRules;
use super::{Effect, Found, advised_of, find, ranked};
use crate::recording::Recording;

/// Compares both recordings as a whole, and looks for the advice of the first, which pays at least this part, in the
/// second: what is found there by the same rules is what is left of it.
pub fn observed(
    before: &Recording,
    after: &Recording,
    rules: &AdviceRules,
    min_percent: f64,
) -> Observed {
    let (before, after) = (Evidence::of(before, min_percent), Evidence::of(after, 0.0));
    let found = ranked(find(&before, rules), &before);
    let mut left: Vec<Option<Found>> = find(&after, rules).into_iter().map(Some).collect();
    let compared: Vec<(Option<Left>, Option<Concerned>)> = found
        .iter()
        .map(|found| {
            let same = take_same(&mut left, &found.advice);
            (same.as_ref().map(left_of), concerned((&before, found), (&after, same.as_ref())))
        })
        .collect();
    let predicted = advised_of(&before, found);
    let advice = predicted.advice.into_iter().zip(compared);
    Observed {
        wall_before_ns: before.wall_ns,
        wall_after_ns: after.wall_ns,
        cpu_before_ns: before.cpu_ns,
        cpu_after_ns: after.cpu_ns,
        peak_before_bytes: before.peak_bytes(),
        peak_after_bytes: after.peak_bytes(),
        min_percent,
        together: predicted.together,
        advice: advice
            .map(|(advice, (left, concerned))| ObservedAdvice { advice, left, concerned })
            .collect(),
    }
}

/// Takes the advice out that says the same: in the same words if there is one, else about the same commands.
fn take_same(left: &mut [Option<Found>], advice: &Advice) -> Option<Found> {
    let place = |is_same: &dyn Fn(&Advice) -> bool| {
        left.iter().position(|found| {
            let found = found.as_ref().filter(|found| found.advice.kind == advice.kind);
            found.is_some_and(|found| is_same(&found.advice))
        })
    };
    let of_commands =
        |other: &Advice| other.commands.iter().any(|command| advice.commands.contains(command));
    let at = place(&|other| other.what == advice.what && other.commands == advice.commands)
        .or_else(|| place(&of_commands))
        .or_else(|| place(&|other| other.what == advice.what))?;
    left[at].take()
}

fn left_of(found: &Found) -> Left {
    let Advice { wall_ns, cpu_ns, memory_bytes, .. } = found.advice;
    Left { wall_ns, cpu_ns, memory_bytes }
}

/// The processes of both, unless they still run once the advice is taken.
fn concerned(
    (before, found): (&Evidence<'_>, &Found),
    (after, same): (&Evidence<'_>, Option<&Found>),
) -> Option<Concerned> {
    if !matches!(found.effect, Effect::Removed | Effect::Replaced) {
        return None;
    }
    let processes_after = same.map_or(&[][..], |found| &found.processes);
    Some(Concerned {
        processes_before: found.processes.len() as u64,
        processes_after: processes_after.len() as u64,
        cpu_before_ns: before.cpu_ns_of(&found.processes),
        cpu_after_ns: after.cpu_ns_of(processes_after),
        path_before_ns: before.path_ns_of(&found.processes),
        path_after_ns: after.path_ns_of(processes_after),
    })
}
