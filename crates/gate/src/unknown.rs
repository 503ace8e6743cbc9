//! Figures that a rule is about and a recording does not know: they are refused, never taken for 0.

use std::collections::BTreeSet;

use proctrace_findings::Unknown;

use crate::budget::{Budget, Rule};
use crate::code::Code;
use crate::selector::{Selector, written};
use crate::side::{Key, Run};
use crate::verdict::{Effect, Finding};

/// The runs that a rule compares: baselines count only where its limit is relative.
fn compared<'a>(
    rule: &Rule,
    baselines: &'a [Run],
    candidates: &'a [Run],
) -> impl Iterator<Item = &'a Run> {
    let baselines = if rule.limit.relative_percent.is_some() { baselines } else { &[] };
    baselines.iter().chain(candidates)
}

/// Whether a figure cannot be judged by a rule, because a run that it compares does not know it.
pub(crate) fn is_unknown(rule: &Rule, key: Key<'_>, baselines: &[Run], candidates: &[Run]) -> bool {
    compared(rule, baselines, candidates).any(|run| why_unknown(run, key).is_some())
}

/// Why a run does not know a figure; None if it does.
pub(crate) fn why_unknown<'a>(run: &'a Run, key: Key<'_>) -> Option<&'a str> {
    let about = |unknown: &&Unknown| unknown.is_about(key.family().name, key.labels);
    run.metrics.unknown.iter().find(about).map(|unknown| unknown.why.as_str())
}

/// What is to be said of the figures that rules are about and some run does not know. Of the rules
/// about such a figure the last one decides. What no run knows is missed only by a rule that asks
/// for it by name.
pub(crate) fn findings(
    budget: &Budget,
    baselines: &[Run],
    candidates: &[Run],
    effect: Effect,
) -> Vec<(Finding, usize)> {
    let all: BTreeSet<(&str, Option<&str>)> = baselines
        .iter()
        .chain(candidates)
        .flat_map(|run| &run.metrics.unknown)
        .map(|unknown| (unknown.name.as_str(), unknown.kind.as_deref()))
        .collect();
    let mut findings = Vec::new();
    for (name, kind) in all {
        let deciding = (0..budget.rules.len())
            .rev()
            .find(|at| budget.rules[*at].selector.may_be_about(name, kind));
        let Some(at) = deciding else { continue };
        let rule = &budget.rules[at];
        let runs: Vec<&Run> = compared(rule, baselines, candidates).collect();
        let lacking: Vec<(&Run, &Unknown)> =
            runs.iter().filter_map(|run| Some((*run, lacks(run, name, kind)?))).collect();
        let Some((run, unknown)) = lacking.first() else { continue };
        let nobody_knows = lacking.len() == runs.len();
        if nobody_knows && !asks_for(&rule.selector, name, kind) {
            continue;
        }
        let labels: Vec<(String, String)> =
            kind.map(|kind| ("kind".to_owned(), kind.to_owned())).into_iter().collect();
        let metric = match proctrace_findings::MetricFamily::named(name) {
            Some(family) => written(family, &labels),
            None => name.to_owned(),
        };
        let message = format!("not known in {}: {}", run.name, unknown.why);
        let finding = Finding {
            code: Code::Unknown,
            effect,
            metric: Some(metric),
            rule: Some(at),
            message,
            numbers: None,
            contributors: Vec::new(),
        };
        findings.push((finding, at));
    }
    findings
}

/// What a run says of these figures, if it does not know them.
fn lacks<'a>(run: &'a Run, name: &str, kind: Option<&str>) -> Option<&'a Unknown> {
    let unknown = &run.metrics.unknown;
    unknown.iter().find(|unknown| unknown.name == name && unknown.kind.as_deref() == kind)
}

/// Whether a selector asks for just this, so that it may not be passed over in silence: by name, and
/// where only a kind is not known, by that, too.
fn asks_for(selector: &Selector, name: &str, kind: Option<&str>) -> bool {
    selector.is_named(name) && (kind.is_none() || selector.has_label("kind"))
}
