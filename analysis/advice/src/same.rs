//! Search in the changed job for the processes that advice about the job before it is about.

use std::collections::BTreeSet;

use super::Found;
use super::evidence::{Evidence, name};
use super::failures::is_failure;
use super::names::called;
use super::rules::AdviceRules;
use super::{commands, cures};

/// The processes, without those that they start, that advice is about in both recordings.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

impl Units {
    /// Makes the units of a piece of advice. What it takes to count as the same is what made it count before; where that
    /// is only the recorded course (who waited for what), the same command of the same spawner, however it is called.
    pub(super) fn of(
        (before, found): (&Evidence<'_>, &Found),
        after: &Evidence<'_>,
        rules: &AdviceRules,
    ) -> Self {
        let of_before = roots(before, &found.processes);
        let spawners = names(of_before.iter().filter_map(|unit| spawner_name(before, *unit)));
        let is_spawned = |evidence: &Evidence<'_>, unit: u32| {
            spawner_name(evidence, unit).is_some_and(|name| spawners.contains(&name))
        };
        // The script may have been given another name: one that did not occur before.
        let goes_on = after.processes().any(|(process, _)| spawners.contains(name(after, process)));
        let known = match goes_on {
            true => BTreeSet::new(),
            false => names(before.processes().map(|(process, _)| name(before, process))),
        };
        let is_one = |unit: u32| {
            let by = spawner_name(after, unit);
            spawners.is_empty()
                || is_spawned(after, unit)
                || !goes_on && by.is_some_and(|by| !known.contains(by))
        };
        let of_after = |is_same: &dyn Fn(u32) -> bool| -> Vec<u32> {
            let all = after.processes().map(|(process, _)| process);
            all.filter(|unit| is_same(*unit) && is_one(*unit)).collect()
        };
        let mut of_before = of_before;
        let of_after = match (found.cure.and_then(|cure| rules.cures.get(cure)), found.advice.kind)
        {
            (Some(cure), _) => cures::units(after, cure),
            (None, "short-commands") => {
                let all = commands::all(after, rules).into_iter();
                all.map(|(unit, _)| unit).filter(|unit| is_one(*unit)).collect()
            }
            (None, "repeated-command") => {
                let lines = lines(before, &of_before);
                let all = of_after(&|unit| lines.contains(line(after, unit)));
                // One has to run.
                all.into_iter().skip(1).collect()
            }
            (None, "failed-again") => {
                let lines = lines(before, &of_before);
                let failed = |unit| after.process(unit).status().is_some_and(is_failure);
                of_after(&|unit| failed(unit) && lines.contains(line(after, unit)))
            }
            (None, _) => {
                let called = names(of_before.iter().map(|unit| name(before, *unit)));
                // The same rule for both: what the advice was not about is there before and after.
                let all = before.processes().map(|(process, _)| process);
                let of_name = all.filter(|unit| {
                    called.contains(name(before, *unit))
                        && (spawners.is_empty() || is_spawned(before, *unit))
                });
                let of_name: Vec<u32> = of_name.collect();
                let of_after = of_after(&|unit| called.contains(name(after, unit)));
                of_before = roots(before, &before.with_descendants(&of_name));
                of_after
            }
        };
        Self { before: of_before, after: roots(after, &after.with_descendants(&of_after)) }
    }
}

/// The command line that a process executed itself; empty for one that only forked.
fn line<'a>(evidence: &Evidence<'a>, process: u32) -> &'a str {
    let it = evidence.process(process);
    if it.execs == 0 { "" } else { evidence.recording.line_of(it) }
}

fn lines<'a>(evidence: &Evidence<'a>, processes: &[u32]) -> BTreeSet<&'a str> {
    let lines = processes.iter().map(|process| line(evidence, *process));
    lines.filter(|line| !line.is_empty()).collect()
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.collect()
}

/// Processes whose parent is not one of them.
fn roots(evidence: &Evidence<'_>, processes: &[u32]) -> Vec<u32> {
    let inside = |process: &u32| {
        let parent = evidence.process(*process).parent().and_then(|it| u32::try_from(it).ok());
        parent.is_some_and(|parent| processes.binary_search(&parent).is_ok())
    };
    processes.iter().copied().filter(|process| !inside(process)).collect()
}

fn spawner_name<'a>(evidence: &Evidence<'a>, process: u32) -> Option<&'a str> {
    let template = evidence.recording.templates().get(evidence.spawner(process)? as usize)?;
    Some(called(template))
}
