//! Puts findings that have the same cause into one group.

use std::collections::BTreeMap;

use proctrace_findings::{Advised, Worse, time};
use proctrace_report::advice_gain;

use crate::cause::{cause, programs};
use crate::growth::Changes;
use crate::side::Key;
use crate::sources::{Explained, Sources};
use crate::verdict::{Cause, CauseKind, Finding, Group, GroupAdvice, Report};

/// A finding of an exceeded limit, if it is one, with its metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exceeded<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) worse: Worse,
}

/// Groups findings; `exceeded` has an entry for each of them. Every finding is in exactly one
/// group. The first one of a group is its worst, or one as severe about the program that the cause
/// names.
pub(crate) fn group<'a>(
    findings: &mut [Finding],
    exceeded: &[Option<Exceeded<'a>>],
    changes: &Changes<'_, 'a>,
) -> Vec<Group> {
    let sources = Sources::of(changes);
    let mut groups: Vec<Group> = Vec::new();
    let mut by_source: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, finding) in findings.iter_mut().enumerate() {
        let exceeded = exceeded.get(at).copied().flatten();
        let explained = exceeded.and_then(|exceeded| explain(exceeded, changes, &sources));
        let known = explained.and_then(|(source, _)| by_source.get(&source).copied());
        let number = known.unwrap_or_else(|| {
            groups.push(new_group(finding, exceeded, explained, &sources, changes));
            groups.len() - 1
        });
        if let Some((source, _)) = explained {
            by_source.insert(source, number);
        }
        let group = &mut groups[number];
        group.effect = group.effect.min(finding.effect);
        group.findings.push(at);
        finding.group = number;
        finding.cause = group.cause.as_ref().map(|cause| cause.text.clone());
    }
    for group in &mut groups {
        lead(group, findings, exceeded);
    }
    groups
}

/// Moves the finding that is most about the cause to the front: of the first program concerned,
/// rather than of what increased with it.
fn lead(group: &mut Group, findings: &[Finding], exceeded: &[Option<Exceeded<'_>>]) {
    let Some(cause) = &group.cause else { return };
    let families: &[&str] = match cause.kind {
        CauseKind::Starts => &["execs", "command_processes", "spawns"],
        CauseKind::Threads => &["command_threads"],
        CauseKind::CpuTime => &["command_cpu_seconds"],
        CauseKind::FailedLookups => &["command_failed_lookups", "directory_failed_lookups"],
        CauseKind::Detached => &["detached_processes"],
        CauseKind::Failed => &["failed_processes"],
        // The cause is about the worst one.
        CauseKind::Steps => &[],
    };
    let about = group.programs.first().or(cause.directory.as_ref());
    let rank = |at: usize| {
        let key = exceeded.get(at).copied().flatten()?.key;
        let label = ["command", "child", "directory"].iter().find_map(|name| key.label(name));
        let family = families.iter().position(|family| *family == key.family().name)?;
        (label == about.map(String::as_str)).then_some(family)
    };
    let worst = |at: &usize| findings.get(*at).is_some_and(|one| one.effect == group.effect);
    let best = (group.findings.iter().enumerate())
        .filter(|(_, at)| worst(at))
        .filter_map(|(place, at)| Some((rank(*at)?, place)))
        .min();
    if let Some((_, place)) = best {
        group.findings[..=place].rotate_right(1);
    }
}

fn explain<'a>(
    exceeded: Exceeded<'a>,
    changes: &Changes<'_, 'a>,
    sources: &Sources<'_, '_, 'a>,
) -> Option<Explained> {
    let change = changes.change(exceeded.key)?;
    // What decreased has no cause among the programs that do more.
    (exceeded.worse == Worse::Higher && change.by > 0.0)
        .then(|| sources.explain(exceeded.key, change.by))?
}

fn new_group(
    finding: &Finding,
    exceeded: Option<Exceeded<'_>>,
    explained: Option<Explained>,
    sources: &Sources<'_, '_, '_>,
    changes: &Changes<'_, '_>,
) -> Group {
    let (cause, programs): (Option<Cause>, Vec<String>) = match explained {
        Some((at, kind)) => {
            let source = &sources.all()[at];
            let key = exceeded.map(|exceeded| exceeded.key);
            (Some(cause(source, kind, key, changes)), programs(source, kind))
        }
        None => {
            let label = |name| exceeded.and_then(|exceeded| exceeded.key.label(name));
            let program = label("command").or_else(|| label("child"));
            (None, program.map(str::to_owned).into_iter().collect())
        }
    };
    Group { cause, effect: finding.effect, findings: Vec::new(), programs, advice: Vec::new() }
}

impl Report {
    /// Adds the advice that concerns the programs of a group, as `proctrace advise` gives it for a
    /// judged recording.
    pub fn advise(&mut self, advised: &Advised) {
        for group in &mut self.groups {
            let concerned = advised.advice.iter().filter(|advice| {
                advice.commands.iter().any(|command| group.programs.contains(command))
            });
            group.advice = concerned
                .map(|advice| GroupAdvice {
                    advice: advice.clone(),
                    wall: advice_gain(advice.wall_ns, advised.wall_ns, time),
                    cpu: advice_gain(advice.cpu_ns, advised.cpu_ns, time),
                })
                .collect();
        }
    }

    /// True if there are programs about which there may be advice.
    pub fn has_programs(&self) -> bool {
        self.groups.iter().any(|group| !group.programs.is_empty())
    }
}
