//! The gate: compares candidates with baselines and limits.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::{Budget, Inconclusive, Rule, Severity, Unmatched};
use crate::code::Code;
use crate::contributors::contributors;
use crate::group::{Exceeded, group};
use crate::growth::Changes;
use crate::judge::judge;
use crate::numbers::Numbers;
use crate::selector::Selector;
use crate::side::{Key, RunMetrics, Side, all_keys, busier};
use crate::unknown;
use crate::verdict::{Check, Effect, Finding, Report, RuleInfo, Status, Verdict};

/// Maximum findings with contributors: each of them scans all metrics.
const EXPLAINED: usize = 100;

/// Options of a gate beyond its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// True to accept recordings that cannot be trusted.
    pub allow_doubts: bool,
}

/// Errors of a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// A recording cannot be trusted.
    #[error(
        "{name} cannot be trusted: {}; record it again, or judge it anyway with --allow-doubts",
        doubts.join("; ")
    )]
    Refused {
        /// Name of the recording.
        name: String,
        /// The reasons.
        doubts: Vec<String>,
    },
    /// There is nothing to judge.
    #[error("no recording to judge: give at least one")]
    NoCandidate,
    /// There is no rule.
    #[error("no rules, so nothing would be checked: give a budget or a limit")]
    NoRule,
}

/// Judges the candidates by the budget: their metrics against its limits, and against those of the
/// baselines, if there are any. All candidates are runs of the same payload, and so are all
/// baselines.
///
/// # Errors
///
/// For recordings that cannot be trusted, and if there is no candidate or no rule.
pub fn gate(
    budget: &Budget,
    baselines: &[RunMetrics],
    candidates: &[RunMetrics],
    options: Options,
) -> Result<Report, GateError> {
    let first = candidates.first().ok_or(GateError::NoCandidate)?;
    if budget.rules.is_empty() {
        return Err(GateError::NoRule);
    }
    let doubtful: Vec<&RunMetrics> =
        baselines.iter().chain(candidates).filter(|run| !run.metrics.doubts.is_empty()).collect();
    if let (false, Some(run)) = (options.allow_doubts, doubtful.first()) {
        let doubts = run.metrics.doubts.clone();
        return Err(GateError::Refused { name: run.name.clone(), doubts });
    }
    let before = Side::of(baselines.iter().map(|run| &run.metrics));
    let after = Side::of(candidates.iter().map(|run| &run.metrics));
    let sides = Sides { before: (before.runs() > 0).then_some(&before), after: &after };

    let Decided { rules: decided, mut use_of_rule } =
        Decided::of(budget, &sides, baselines, candidates);
    let checks: Vec<Checked<'_>> =
        decided.iter().map(|(rule, key)| sides.check(budget, *rule, *key)).collect();
    let mut found: Vec<Found<'_>> = checks
        .iter()
        .filter_map(|checked| {
            let finding = finding(budget, checked)?;
            Some(Found { key: Some(checked.key), finding, beyond: checked.beyond })
        })
        .collect();
    let effect = if options.allow_doubts { Effect::Warns } else { Effect::Refuses };
    for (finding, rule) in unknown::findings(budget, baselines, candidates, effect) {
        use_of_rule[rule] = Use::Decides;
        found.push(Found { key: None, finding, beyond: 0.0 });
    }
    let others = (budget.rules.iter().zip(&use_of_rule).enumerate())
        .filter_map(|(at, (rule, used))| useless(at, rule, *used))
        .chain(about_recordings(baselines, candidates, &doubtful));
    found.extend(others.map(|finding| Found { key: None, finding, beyond: 0.0 }));
    found.sort_by(Found::worst_first);
    for Found { key, finding, .. } in found.iter_mut().take(EXPLAINED) {
        if let (Some(key), Some(rule)) = (key, finding.rule) {
            let worse = budget.rules[rule].worse.unwrap_or(key.family().worse);
            finding.contributors = contributors(*key, worse, sides.before, sides.after);
        }
    }
    let exceeded = exceeded(budget, &found, &checks);
    let changes = Changes::of(sides.before, sides.after, limits(budget, &checks));
    let mut findings: Vec<Finding> = found.into_iter().map(|found| found.finding).collect();
    let groups = group(&mut findings, &exceeded, &changes);
    Ok(Report {
        verdict: verdict(&findings),
        command: first.metrics.command.clone(),
        baselines: baselines.iter().map(|run| run.name.clone()).collect(),
        candidates: candidates.iter().map(|run| run.name.clone()).collect(),
        rules: budget.rules.iter().map(RuleInfo::of).collect(),
        findings,
        groups,
        checks: checks.into_iter().map(|checked| checked.check).collect(),
    })
}

/// Limit of each of the findings, if all runs exceed it.
fn exceeded<'a>(
    budget: &Budget,
    found: &[Found<'a>],
    checks: &[Checked<'a>],
) -> Vec<Option<Exceeded<'a>>> {
    let exceeded: BTreeSet<Key<'a>> = (checks.iter())
        .filter(|checked| checked.check.status == Status::Regression)
        .map(|checked| checked.key)
        .collect();
    let one = |found: &Found<'a>| {
        let key = found.key.filter(|key| exceeded.contains(key))?;
        let rule = &budget.rules[found.finding.rule?];
        Some(Exceeded { key, worse: rule.worse.unwrap_or(key.family().worse) })
    };
    found.iter().map(one).collect()
}

/// The absolute limits that are exceeded.
fn limits<'a>(budget: &Budget, checks: &[Checked<'a>]) -> BTreeMap<Key<'a>, f64> {
    checks
        .iter()
        .filter(|checked| checked.check.status == Status::Regression)
        .filter_map(|checked| Some((checked.key, budget.rules[checked.check.rule].limit.absolute?)))
        .collect()
}

/// The metrics that each rule decides about.
struct Decided<'a> {
    /// Sorted by rule; within a rule in the order of the metrics.
    rules: Vec<(usize, Key<'a>)>,
    use_of_rule: Vec<Use>,
}

impl<'a> Decided<'a> {
    /// The last rule that matches a metric decides about it; those before it are shadowed.
    fn of(
        budget: &Budget,
        sides: &Sides<'_, 'a>,
        baselines: &[RunMetrics],
        candidates: &[RunMetrics],
    ) -> Self {
        let keys = match sides.before {
            Some(before) => all_keys(&[before, sides.after]),
            None => all_keys(&[sides.after]),
        };
        let mut use_of_rule = vec![Use::Nothing; budget.rules.len()];
        let mut rules = Vec::new();
        for key in keys {
            let mut matching = (0..budget.rules.len())
                .rev()
                .filter(|at| budget.rules[*at].selector.matches(key.family(), key.labels));
            if let Some(rule) = matching.next() {
                use_of_rule[rule] = Use::Decides;
                // Reported once for all of them, by name; see `unknown`.
                if !unknown::is_unknown(&budget.rules[rule], key, baselines, candidates) {
                    rules.push((rule, key));
                }
            }
            for rule in matching {
                use_of_rule[rule] = use_of_rule[rule].max(Use::Shadowed);
            }
        }
        rules.sort_by_key(|(rule, _)| *rule);
        Self { rules, use_of_rule }
    }
}

/// The verdict is that of the most severe finding.
fn verdict(findings: &[Finding]) -> Verdict {
    match findings.iter().map(|finding| finding.effect).min() {
        Some(Effect::Refuses) => Verdict::Refused,
        Some(Effect::Fails) => Verdict::Regression,
        Some(Effect::Inconclusive) => Verdict::Inconclusive,
        Some(Effect::Warns) | None => Verdict::Pass,
    }
}

/// A finding, its metric, and how far the metric exceeds its limit, relative to the limit.
struct Found<'a> {
    key: Option<Key<'a>>,
    finding: Finding,
    beyond: f64,
}

impl Found<'_> {
    /// Orders by effect on the verdict, then by relative excess over the limit, then by size of the
    /// change, then by rule.
    fn worst_first(&self, other: &Self) -> std::cmp::Ordering {
        let (a, b) = (&self.finding, &other.finding);
        let size = |finding: &Finding| {
            finding.numbers.and_then(|numbers| numbers.change).map_or(0.0, f64::abs)
        };
        (a.effect.cmp(&b.effect))
            .then(other.beyond.total_cmp(&self.beyond))
            .then(size(b).total_cmp(&size(a)))
            .then((a.rule.is_none(), a.rule).cmp(&(b.rule.is_none(), b.rule)))
    }
}

/// Use of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Nothing,
    Shadowed,
    Decides,
}

/// A check, its metric, how far that exceeds its limit, and the limit in a few words.
struct Checked<'a> {
    key: Key<'a>,
    check: Check,
    beyond: f64,
    allowed: Option<String>,
}

struct Sides<'s, 'a> {
    before: Option<&'s Side<'a>>,
    after: &'s Side<'a>,
}

impl<'a> Sides<'_, 'a> {
    fn check(&self, budget: &Budget, at: usize, key: Key<'a>) -> Checked<'a> {
        let rule = &budget.rules[at];
        let family = key.family();
        let metric = key.to_string();
        let before = self.before.map(|side| side.values(key));
        // A missing baseline measurement matters as much as a missing candidate one, if the rule
        // needs it.
        let lacks_before = rule.limit.relative_percent.is_some() && before == Some(None);
        let before = before.flatten();
        let after = self.after.values(key).filter(|_| !lacks_before);
        let measured = after.and_then(|after| {
            let numbers = Numbers::of(family.kind, before.as_deref(), &after)?;
            Some((after, numbers))
        });
        let Some((after, numbers)) = measured else {
            let check = Check {
                metric,
                rule: at,
                status: Status::Unjudged,
                code: Some(Code::NotMeasured),
                numbers: None,
                p_value: None,
                message: "not measured in every run".into(),
            };
            return Checked { key, check, beyond: 0.0, allowed: None };
        };
        let judgement = judge(rule, family, before.as_deref(), &after, &numbers);
        let check = Check {
            metric,
            rule: at,
            status: judgement.status,
            code: judgement.code,
            numbers: Some(numbers),
            p_value: judgement.p_value,
            message: judgement.message,
        };
        Checked { key, check, beyond: judgement.beyond, allowed: judgement.allowed }
    }
}

/// The finding for a metric that did not pass.
fn finding(budget: &Budget, checked: &Checked<'_>) -> Option<Finding> {
    let check = &checked.check;
    let rule = &budget.rules[check.rule];
    let effect = match (check.status, rule.severity, rule.inconclusive) {
        (Status::Passed, _, _) => return None,
        (_, Severity::Warn, _) | (_, _, Inconclusive::Warn)
            if check.status != Status::Regression =>
        {
            Effect::Warns
        }
        (Status::Regression, Severity::Warn, _) => Effect::Warns,
        (Status::Regression, Severity::Deny, _) => Effect::Fails,
        (Status::Inconclusive | Status::Unjudged, _, _) => Effect::Inconclusive,
    };
    Some(Finding {
        code: check.code?,
        effect,
        metric: Some(check.metric.clone()),
        rule: Some(check.rule),
        message: check.message.clone(),
        numbers: check.numbers,
        allowed: checked.allowed.clone(),
        contributors: Vec::new(),
        group: 0,
        cause: None,
    })
}

/// The finding for a rule that decides nothing.
fn useless(at: usize, rule: &Rule, used: Use) -> Option<Finding> {
    let (code, message) = match used {
        Use::Decides => return None,
        Use::Shadowed => (
            Code::Shadowed,
            format!("every metric that {} matches is decided by a later rule", rule.selector),
        ),
        Use::Nothing => (Code::Unmatched, unmatched(&rule.selector)),
    };
    let effect = match rule.unmatched {
        Unmatched::Allow => return None,
        Unmatched::Warn => Effect::Warns,
        Unmatched::Deny => Effect::Fails,
    };
    Some(Finding {
        code,
        effect,
        metric: None,
        rule: Some(at),
        message,
        numbers: None,
        allowed: None,
        contributors: Vec::new(),
        group: 0,
        cause: None,
    })
}

fn unmatched(selector: &Selector) -> String {
    if selector.families().all(|family| family.labels.is_empty()) {
        format!("{selector} was not measured in any run")
    } else {
        format!("no recorded metric matches {selector}: it no longer occurs, or is misspelt")
    }
}

/// Findings about the recordings themselves.
fn about_recordings<'a>(
    baselines: &'a [RunMetrics],
    candidates: &'a [RunMetrics],
    doubtful: &[&'a RunMetrics],
) -> impl Iterator<Item = Finding> {
    let about = |code, message| Finding {
        code,
        effect: Effect::Warns,
        metric: None,
        rule: None,
        message,
        numbers: None,
        allowed: None,
        contributors: Vec::new(),
        group: 0,
        cause: None,
    };
    let mut findings: Vec<Finding> = doubtful
        .iter()
        .map(|run| {
            let doubts = run.metrics.doubts.join("; ");
            about(Code::Doubtful, format!("{} cannot be trusted: {doubts}", run.name))
        })
        .collect();
    let cores = |runs: &[RunMetrics]| -> Vec<u32> {
        let mut cores: Vec<u32> = runs.iter().map(|run| run.metrics.cores).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    };
    let (before, after) = (cores(baselines), cores(candidates));
    if !baselines.is_empty() && before != after {
        let list = |cores: &[u32]| cores.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let message =
            format!("baselines: {} CPUs, candidates: {} CPUs", list(&before), list(&after));
        findings.push(about(Code::OtherMachine, message));
    }
    findings.extend(busier(baselines, candidates).map(|message| about(Code::Busy, message)));
    findings.into_iter()
}
