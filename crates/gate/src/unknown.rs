//! Metrics that a rule selects but a recording does not know: they are refused, never treated as 0.

use std::collections::BTreeSet;

use proctrace_findings::Unknown;

use crate::budget::{Budget, Rule};
use crate::code::Code;
use crate::selector::{Selector, written};
use crate::side::{Key, RunMetrics};
use crate::verdict::{Effect, Finding};

/// The label to which unknown metrics are restricted, with its value.
type Label<'a> = Option<(&'static str, &'a str)>;

/// The runs that a rule compares: baselines are included only if its limit is relative.
fn compared<'a>(
    rule: &Rule,
    baselines: &'a [RunMetrics],
    candidates: &'a [RunMetrics],
) -> impl Iterator<Item = &'a RunMetrics> {
    let baselines = if rule.limit.relative_percent.is_some() { baselines } else { &[] };
    baselines.iter().chain(candidates)
}

/// True if a rule cannot judge a metric, because one of the compared runs does not know it.
pub(crate) fn is_unknown(
    rule: &Rule,
    key: Key<'_>,
    baselines: &[RunMetrics],
    candidates: &[RunMetrics],
) -> bool {
    compared(rule, baselines, candidates).any(|run| why_unknown(run, key).is_some())
}

/// The reason a run does not know a metric; None if it does.
pub(crate) fn why_unknown<'a>(run: &'a RunMetrics, key: Key<'_>) -> Option<&'a str> {
    let about = |unknown: &&Unknown| unknown.is_about(key.family().name, key.labels);
    run.metrics.unknown.iter().find(about).map(|unknown| unknown.why.as_str())
}

/// Findings for the selected metrics that some run does not know. Of the rules that select such a
/// metric the last one decides. A metric that no run knows is reported only if the rule selects it
/// by name.
pub(crate) fn findings(
    budget: &Budget,
    baselines: &[RunMetrics],
    candidates: &[RunMetrics],
    effect: Effect,
) -> Vec<(Finding, usize)> {
    let all: BTreeSet<(&str, Label<'_>)> = baselines
        .iter()
        .chain(candidates)
        .flat_map(|run| &run.metrics.unknown)
        .map(|unknown| (unknown.name.as_str(), unknown.label()))
        .collect();
    let mut findings = Vec::new();
    for (name, label) in all {
        let deciding = (0..budget.rules.len())
            .rev()
            .find(|at| budget.rules[*at].selector.may_be_about(name, label));
        let Some(at) = deciding else { continue };
        let rule = &budget.rules[at];
        let runs: Vec<&RunMetrics> = compared(rule, baselines, candidates).collect();
        let lacking: Vec<(&RunMetrics, &Unknown)> =
            runs.iter().filter_map(|run| Some((*run, lacks(run, name, label)?))).collect();
        let Some((run, unknown)) = lacking.first() else { continue };
        let nobody_knows = lacking.len() == runs.len();
        if nobody_knows && !asks_for(&rule.selector, name, label) {
            continue;
        }
        let labels: Vec<(String, String)> =
            label.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        let metric = match proctrace_findings::MetricFamily::named(name) {
            Some(family) => written(family, &labels),
            None => name.to_owned(),
        };
        let message = format!("not available in {}: {}", run.name, unknown.why);
        let finding = Finding {
            code: Code::Unknown,
            effect,
            metric: Some(metric),
            rule: Some(at),
            message,
            numbers: None,
            allowed: None,
            contributors: Vec::new(),
            group: 0,
            cause: None,
        };
        findings.push((finding, at));
    }
    findings
}

/// The run's entry for these metrics, if it does not know them.
fn lacks<'a>(run: &'a RunMetrics, name: &str, label: Label<'_>) -> Option<&'a Unknown> {
    let unknown = &run.metrics.unknown;
    unknown.iter().find(|unknown| unknown.name == name && unknown.label() == label)
}

/// True if a selector selects these metrics explicitly, so that they must not be skipped silently:
/// by name, and by the label as well if only one of its values is unknown.
fn asks_for(selector: &Selector, name: &str, label: Label<'_>) -> bool {
    selector.is_named(name) && label.is_none_or(|(label, _)| selector.has_label(label))
}
