//! GitHub Actions workflow commands, which annotate the line of a rule in a pull request.

use std::fmt::Write as _;

use super::{
    ADVICE, ALSO, advice, brief, contributors_heading, headline, other_effect, others, related,
    subject,
};
use crate::budget::Origin;
use crate::verdict::{Effect, Group, Report};

/// GitHub shows 10 errors and 10 warnings per step, and silently drops the others (docs.github.com,
/// "Workflow commands for GitHub Actions", and its limits on annotations).
const MOST: usize = 10;

/// Further findings of a group in its annotation, for readability.
const MOST_ALSO: usize = 20;

/// One line per group of findings, up to GitHub's limit; the last line counts those left out.
pub fn annotations(report: &Report) -> String {
    let mut out = String::new();
    for (command, is_error) in [("error", true), ("warning", false)] {
        let groups: Vec<&Group> = (report.groups.iter())
            .filter(|group| (group.effect != Effect::Warns) == is_error)
            .collect();
        let shown = if groups.len() > MOST { MOST - 1 } else { groups.len() };
        for group in &groups[..shown] {
            push(&mut out, command, report, group);
        }
        if groups.len() > shown {
            let left = groups.len() - shown;
            // Writing to a String cannot fail.
            let _ =
                writeln!(out, "::{command} title=proctrace gate::{left} more findings in the log");
        }
    }
    out
}

fn push(out: &mut String, command: &str, report: &Report, group: &Group) {
    let Some(first) = report.first_of(group) else { return };
    let mut properties = String::new();
    if let Some(Origin::File { file, line, column }) =
        first.rule.and_then(|rule| report.rules.get(rule)).map(|rule| &rule.origin)
    {
        let _ = write!(properties, "file={},line={line},col={column},", property(file));
    }
    let title = format!("{} {}", first.code, headline(group, first));
    let mut message = format!("{}: {}", subject(report, first), first.message);
    let also = others(report, group).count();
    if also > 0 {
        let _ = write!(message, "\n{ALSO}");
    }
    for finding in others(report, group).take(MOST_ALSO) {
        let (what, effect) = (subject(report, finding), other_effect(group, finding));
        let _ = write!(message, "\n  {what}: {}{effect}", brief(finding));
    }
    if also > MOST_ALSO {
        let _ = write!(message, "\n  {} more, in the log", also - MOST_ALSO);
    }
    let related = related(report, group, first);
    if !related.is_empty() {
        let _ = write!(message, "\n{}", contributors_heading(first));
    }
    for contributor in related {
        let _ = write!(message, "\n  {}: {}", contributor.metric, contributor.message);
    }
    if !group.advice.is_empty() {
        let _ = write!(message, "\n{ADVICE}");
    }
    for one in &group.advice {
        let (what, gain) = advice(one);
        let _ = write!(message, "\n  {what} ({gain})");
    }
    let _ = writeln!(out, "::{command} {properties}title={}::{}", property(&title), data(&message));
}

/// Escapes a message like the runner's own toolkit (actions/toolkit, packages/core, command.ts),
/// after making control characters visible, except our own line feeds.
fn data(text: &str) -> String {
    let visible: Vec<_> = text.split('\n').map(proctrace_report::escape::terminal).collect();
    visible.join("\n").replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property like the same toolkit.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;
    use proptest::prelude::*;

    #[test]
    fn errors_and_warnings_name_the_line_of_their_rule() {
        let text = annotations(&sample::report("sed"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(
            "::error file=gate.toml,line=3,col=1,title=PT001 +600 sed%2C started by poll.sh%3A 5%2C804 -> 6%2C404 execs::"
        ), "{text}");
        assert!(lines[0].contains("%0A  spawns{parent=\"poll.sh\""));
        assert!(
            lines[0].contains("%0A  total_execs: 5,804 -> 6,404 (+600), at most 6,094"),
            "{text}"
        );
        assert!(lines[1].contains("line=4"));
        assert!(lines.last().unwrap().starts_with("::warning file=gate.toml,line=5"), "{text}");
    }

    #[test]
    fn what_github_would_drop_is_counted() {
        let mut report = sample::report("sed");
        let first = report.groups[0].clone();
        report.groups = vec![first; 12];
        let text = annotations(&report);
        assert_eq!(text.lines().count(), MOST);
        assert!(text.ends_with("::3 more findings in the log\n"));
    }

    proptest! {
        #[test]
        fn a_hostile_name_is_no_command(name in "(::|\n|\r|%0A|,|:|[a-z\u{85}\u{2028}]){0,12}") {
            let report = sample::report(&name);
            let text = annotations(&report);
            prop_assert_eq!(text.lines().count(), report.groups.len());
            for line in text.lines() {
                prop_assert!(line.starts_with("::error ") || line.starts_with("::warning "));
            }
        }
    }
}
