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

use crate::verdict::{Finding, Report};

/// The subject of a finding in a few words: a metric, a rule, the recordings.
fn subject<'a>(report: &'a Report, finding: &'a Finding) -> &'a str {
    match (&finding.metric, finding.rule) {
        (Some(metric), _) => metric,
        (None, Some(rule)) => report.rules.get(rule).map_or("", |rule| &rule.text),
        (None, None) => "the recordings",
    }
}

/// Where the rule of a finding is defined; empty if it has none.
fn origin(report: &Report, finding: &Finding) -> String {
    let rule = finding.rule.and_then(|rule| report.rules.get(rule));
    rule.map_or(String::new(), |rule| rule.origin.to_string())
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
