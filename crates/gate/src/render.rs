//! Renders a gate's report for terminals, CI systems and readers, with all payload-supplied text
//! escaped for the output format.

mod annotations;
mod junit;
mod markdown;
mod text;

pub use annotations::annotations;
pub use junit::{JunitError, junit};
pub use markdown::{MARKDOWN_MOST_BYTES, markdown};
pub use text::text;

use proctrace_findings::MetricFamily;
use proctrace_report::advice_head;

use crate::verdict::{Contributor, Finding, Group, GroupAdvice, Report};
use crate::words;

/// The subject of a finding in a few words: a metric, a rule, the recordings.
fn subject<'a>(report: &'a Report, finding: &'a Finding) -> &'a str {
    match (&finding.metric, finding.rule) {
        (Some(metric), _) => metric,
        (None, Some(rule)) => report.rules.get(rule).map_or("", |rule| &rule.text),
        (None, None) => "the recordings",
    }
}

/// Place at which the rule of a finding is defined; empty if it has none.
fn origin(report: &Report, finding: &Finding) -> String {
    let rule = finding.rule.and_then(|rule| report.rules.get(rule));
    rule.map_or(String::new(), |rule| rule.origin.to_string())
}

/// Subject of a group: its cause, or the kind of the problem.
fn headline<'a>(group: &'a Group, first: &Finding) -> &'a str {
    group.cause.as_ref().map_or(first.code.title(), |cause| &cause.text)
}

/// The heading of a group: "PT001 failure: +12 sed, started by build.sh: 130 -> 142 processes".
fn heading(group: &Group, first: &Finding) -> String {
    format!("{} {}: {}", first.code, group.effect.word(), headline(group, first))
}

/// The findings of a group after the first one.
fn others<'a>(report: &'a Report, group: &'a Group) -> impl Iterator<Item = &'a Finding> {
    group.findings.iter().skip(1).filter_map(|at| report.findings.get(*at))
}

/// The change and the limit in a few words: "5,804 -> 6,404 (+600), at most 6,094".
fn brief(finding: &Finding) -> String {
    let name = finding.metric.as_deref().unwrap_or_default();
    let name = name.split('{').next().unwrap_or_default();
    let (Some(family), Some(numbers)) = (MetricFamily::named(name), finding.numbers) else {
        return finding.message.clone();
    };
    let after = words::value(family, numbers.after.centre);
    let values = match (numbers.before, numbers.change) {
        (Some(before), Some(change)) => format!(
            "{} -> {after} ({})",
            words::value(family, before.centre),
            words::change(family, change)
        ),
        _ => after,
    };
    match &finding.allowed {
        Some(allowed) => format!("{values}, {allowed}"),
        None => values,
    }
}

/// The effect of a finding on the verdict, where it differs from that of its group.
fn other_effect(group: &Group, finding: &Finding) -> String {
    if finding.effect == group.effect {
        String::new()
    } else {
        format!(" ({})", finding.effect.word())
    }
}

/// The author's reason for the limit of a finding.
fn reason<'a>(report: &'a Report, finding: &Finding) -> Option<&'a str> {
    report.rules.get(finding.rule?)?.because.as_deref()
}

/// Contributors that changed along with the first finding, except those that are findings of the
/// group itself.
fn related<'a>(report: &'a Report, group: &'a Group, first: &'a Finding) -> Vec<&'a Contributor> {
    let is_finding = |metric: &str| {
        others(report, group).any(|finding| finding.metric.as_deref() == Some(metric))
    };
    first.contributors.iter().filter(|one| !is_finding(&one.metric)).collect()
}

/// The heading for further limits that are exceeded for the same reason.
const ALSO: &str = "Also over the limit:";

/// The heading for advice.
const ADVICE: &str = "What proctrace advise says about it:";

/// Advice in two parts: what to do, and what that is predicted to gain.
fn advice(advice: &GroupAdvice) -> (String, String) {
    (advice_head(&advice.advice), format!("wall {}; CPU {}", advice.wall, advice.cpu))
}

/// The heading for contributors.
fn contributors_heading(finding: &Finding) -> &'static str {
    if finding.contributors.iter().any(|one| one.before.is_some()) {
        "Related changes:"
    } else {
        "Largest contributors:"
    }
}

#[cfg(test)]
pub(crate) mod sample;
