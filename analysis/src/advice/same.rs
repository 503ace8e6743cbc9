//! Which processes of the changed job are those that advice about the job before it is about.

use std::collections::BTreeSet;

use super::Found;
use super::evidence::{Evidence, first_word, script};
use super::rules::AdviceRules;
use super::{commands, cures};

/// A subshell has executed nothing.
const SUBSHELL: &str = "$(…)";

/// The processes, without those that they start, that advice is about in both recordings.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

impl Units {
    /// Those of a piece of advice. What it takes to count as the same is what made it count before; where that is only the
    /// recorded course (who waited for what), the same command of the same spawner, however it is called.
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
        // The script may have been given another name.
        let goes_on = after.processes().any(|(process, _)| is_spawned(after, process));
        let of_after = |is_same: &dyn Fn(u32) -> bool| -> Vec<u32> {
            let all = after.processes().map(|(process, _)| process);
            all.filter(|unit| is_same(*unit) && (!goes_on || is_spawned(after, *unit))).collect()
        };
        let of_after = match (found.cure.and_then(|cure| rules.cures.get(cure)), found.advice.kind)
        {
            (Some(cure), _) => cures::units(after, cure),
            (None, "short-commands") => {
                let all = commands::all(after, rules).into_iter();
                all.filter(|(unit, _)| !goes_on || is_spawned(after, *unit))
                    .map(|(unit, _)| unit)
                    .collect()
            }
            (None, "repeated-command") => {
                let lines = names(of_before.iter().filter_map(|unit| before.own_template(*unit)));
                let all = of_after(&|unit| {
                    after.own_template(unit).is_some_and(|line| lines.contains(line))
                });
                // One has to run.
                all.into_iter().skip(1).collect()
            }
            (None, "failed-again") => {
                let lines = names(of_before.iter().filter_map(|unit| before.own_template(*unit)));
                of_after(&|unit| after.own_template(unit).is_some_and(|line| lines.contains(line)))
            }
            (None, _) => {
                let called = names(of_before.iter().map(|unit| name(before, *unit)));
                of_after(&|unit| called.contains(name(after, unit)))
            }
        };
        Self { before: of_before, after: roots(after, &after.with_descendants(&of_after)) }
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.collect()
}

/// Those whose parent is not one of them.
fn roots(evidence: &Evidence<'_>, processes: &[u32]) -> Vec<u32> {
    let inside = |process: &u32| {
        let parent = evidence.process(*process).parent().and_then(|it| u32::try_from(it).ok());
        parent.is_some_and(|parent| processes.binary_search(&parent).is_ok())
    };
    processes.iter().copied().filter(|process| !inside(process)).collect()
}

/// The name of a program: that of its script, or its first word.
pub(super) fn called(template: &str) -> &str {
    script(template).unwrap_or_else(|| first_word(template))
}

/// The name of what a process executed itself.
pub(super) fn name<'a>(evidence: &Evidence<'a>, process: u32) -> &'a str {
    evidence.own_template(process).map_or(SUBSHELL, called)
}

fn spawner_name<'a>(evidence: &Evidence<'a>, process: u32) -> Option<&'a str> {
    let template = evidence.recording.templates.get(evidence.spawner(process)? as usize)?;
    Some(called(template))
}
