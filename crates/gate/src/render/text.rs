//! The report for a terminal and a CI log: 80 columns, the most severe findings first.

use proctrace_report::escape::terminal;
use proctrace_report::fit::{beginning, columns};

use super::{
    ADVICE, ALSO, advice, brief, contributors_heading, heading, origin, other_effect, others,
    reason, related, subject,
};
use crate::verdict::{Effect, Finding, Group, Report, Verdict};

const WIDTH: usize = 80;

/// The report as text, limited to `most` groups of findings, and as many findings of each.
pub fn text(report: &Report, most: usize) -> String {
    let mut out = String::new();
    push(&mut out, 0, &report.headline());
    for group in report.groups.iter().take(most) {
        out.push('\n');
        push_group(&mut out, report, group, most);
    }
    if report.groups.len() > most {
        let left = report.groups.len() - most;
        let what = if left == 1 { "finding is" } else { "findings are" };
        let all = report.groups.len();
        push(&mut out, 0, &format!("\n{left} more {what} not shown: --top {all} shows all."));
    }
    let Some(first) = report.findings.first() else { return out };
    out.push('\n');
    if report.verdict == Verdict::Regression {
        push(&mut out, 0, "If the change is intended, record a new baseline or change the limit.");
        let fails = |group: &&Group| group.effect == Effect::Fails && group.cause.is_none();
        if report.baselines.is_empty() && report.groups.iter().any(|group| fails(&group)) {
            push(&mut out, 0, "With --baseline and a good run, more causes can be named.");
        }
    }
    push(&mut out, 0, &format!("For an explanation: proctrace gate explain {}", first.code));
    out
}

/// Appends a group in full, but at most so many further findings.
pub(super) fn push_group(out: &mut String, report: &Report, group: &Group, most: usize) {
    let Some(first) = report.first_of(group) else { return };
    push_heading(out, report, group, first);
    push_finding(out, report, first);
    let also: Vec<&Finding> = others(report, group).collect();
    if !also.is_empty() {
        push(out, 2, ALSO);
    }
    let shown = if also.len() > most { most.saturating_sub(1) } else { also.len() };
    for finding in &also[..shown] {
        let effect = other_effect(group, finding);
        let what = format!("{}: {}{effect}", subject(report, finding), brief(finding));
        push_with_origin(out, 4, &what, &origin(report, finding));
        if let Some(reason) = reason(report, finding) {
            push(out, 6, &format!("Reason for the limit: {reason}"));
        }
    }
    if also.len() > shown {
        let all = also.len();
        push(out, 4, &format!("{} more: --top {all} shows all.", all - shown));
    }
    let related = related(report, group, first);
    if !related.is_empty() {
        push(out, 2, contributors_heading(first));
    }
    for contributor in related {
        push_contributor(out, &contributor.metric, &contributor.message);
    }
    if !group.advice.is_empty() {
        push(out, 2, ADVICE);
    }
    for one in &group.advice {
        let (what, gain) = advice(one);
        push(out, 4, &what);
        push(out, 6, &gain);
    }
}

/// Appends those findings of a group that belong to a rule.
pub(super) fn push_part(out: &mut String, report: &Report, group: &Group, rule: usize) {
    let Some(first) = report.first_of(group) else { return };
    push(out, 0, &heading(group, first));
    for finding in others(report, group).filter(|finding| finding.rule == Some(rule)) {
        push_finding(out, report, finding);
    }
    if let Some(rule) = first.rule.and_then(|rule| report.rules.get(rule)) {
        push(out, 2, &format!("All limits exceeded for this reason: see {}", rule.text));
    }
}

/// Appends the heading of a group, with the location of the first finding's rule.
fn push_heading(out: &mut String, report: &Report, group: &Group, first: &Finding) {
    push_with_origin(out, 0, &heading(group, first), &origin(report, first));
}

/// Appends text and, right-aligned, the location of a rule; both on one line if they fit.
fn push_with_origin(out: &mut String, indent: usize, what: &str, origin: &str) {
    let (shown, origin) = (terminal(what), terminal(origin));
    let (left, right) = (indent + columns(&shown), columns(&origin));
    if left + 2 + right <= WIDTH && !what.contains('\n') {
        out.extend([&*" ".repeat(indent), &*shown]);
        if right > 0 {
            out.extend([&*" ".repeat(WIDTH - left - right), &*origin]);
        }
        out.push('\n');
        return;
    }
    push_hanging(out, indent, what);
    if right > 0 {
        push(out, indent + 2, &origin);
    }
}

/// Appends a finding without its heading: the metric, the numbers, and the reason for the limit.
fn push_finding(out: &mut String, report: &Report, finding: &Finding) {
    push(out, 2, subject(report, finding));
    push(out, 2, &finding.message);
    if let Some(reason) = reason(report, finding) {
        push(out, 2, &format!("Reason for the limit: {reason}"));
    }
}

/// Appends a metric with its value, which are kept on one line; the rest wraps like other text.
fn push_contributor(out: &mut String, metric: &str, message: &str) {
    let (value, rest) = message.split_at(message.find(" (").unwrap_or(message.len()));
    let (first, rest) = (terminal(metric), terminal(rest));
    let first = format!("{first}: {}", terminal(value));
    push_words(
        out,
        [4; 2],
        std::iter::once(&*first).chain(words(rest.trim_start()).filter(|w| !w.is_empty())),
    );
}

/// Appends text wrapped at spaces to 80 columns where possible. Its line feeds are kept; all other
/// control characters are made visible.
fn push(out: &mut String, indent: usize, text: &str) {
    for line in text.split('\n') {
        push_words(out, [indent; 2], words(&terminal(line)));
    }
}

/// Appends text as [`push`], with lines after the first indented further.
fn push_hanging(out: &mut String, indent: usize, text: &str) {
    let lines = text.replace('\n', " ");
    push_words(out, [indent, indent + 2], words(&terminal(&lines)));
}

/// Appends one paragraph, with the indents of its first line and of the others. A metric longer than
/// a line is not broken, so that it can be copied; other long words, such as hostile names, are.
fn push_words<'w>(out: &mut String, indents: [usize; 2], words: impl Iterator<Item = &'w str>) {
    let [mut indent, others] = indents;
    let mut column = 0;
    for word in words {
        let whole = word.contains(LABEL);
        let mut word = word.to_owned();
        if column > indent && column + 1 + columns(&word) > WIDTH {
            out.push('\n');
            (column, indent) = (0, others);
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        while !word.is_empty() || column == 0 {
            if column == 0 {
                out.push_str(&" ".repeat(indent));
                column = indent;
                // Not even a word of a name begins a line with two colons.
                if word.starts_with("::") {
                    word.replace_range(..1, "\\x3a");
                }
            }
            let room = if whole { usize::MAX } else { WIDTH.saturating_sub(column) };
            let least = word.chars().next().map_or(0, char::len_utf8);
            let most = beginning(&word, room).len().max(least);
            // A line that begins with two colons may be interpreted as a command by a CI system.
            let may_end =
                |end: &usize| word.is_char_boundary(*end) && !word[*end..].starts_with("::");
            let rest = word.split_off((least..=most).rev().find(may_end).unwrap_or(least));
            column += columns(&word);
            out.push_str(&word);
            word = rest;
            if word.is_empty() {
                break;
            }
            out.push('\n');
            (column, indent) = (0, others);
        }
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}

/// The delimiter before a label value.
const LABEL: &str = "=\"";

/// Words separated by spaces; a label value is never broken, whatever it contains.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = word_end(text);
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

/// Byte offset of the end of the first word. An unclosed quote is an ordinary character.
fn word_end(text: &str) -> usize {
    let mut at = 0;
    loop {
        let space = text[at..].find(' ').map_or(text.len(), |found| at + found);
        let Some(label) = text[at..space].find(LABEL) else { return space };
        let value = at + label + LABEL.len();
        let mut escaped = false;
        let close = text[value..].find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        match close {
            Some(close) => at = value + close + 1,
            None => return space,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;
    use proptest::prelude::*;

    #[test]
    fn a_log_alone_says_what_to_fix() {
        let text = text(&sample::report("sed"), 10);
        assert_eq!(text, include_str!("sample.txt"));
    }

    #[test]
    fn findings_beyond_the_wanted_number_are_counted() {
        let text = text(&sample::report("sed"), 1);
        assert!(text.contains("2 more findings are not shown: --top 3 shows"), "{text}");
    }

    #[test]
    fn a_metric_can_be_copied_with_its_value() {
        let name = "a command whose name has spaces and is about as long as one line is wide";
        let text = text(&sample::report(name), 10);
        let spawns = format!("    spawns{{parent=\"poll.sh\",child=\"{name}\"}}: +600\n");
        assert!(text.contains(&spawns), "{text}");
        assert!(text.contains(&format!("  execs{{command=\"{name}\"}}\n")), "{text}");
    }

    #[test]
    fn words_end_at_spaces_outside_of_labels() {
        let words = |text: &'static str| words(text).collect::<Vec<_>>();
        assert_eq!(words("a b"), ["a", "b"]);
        assert_eq!(
            words(r#"x{a="b c",d="e \" f"}: +1 g"#),
            [r#"x{a="b c",d="e \" f"}:"#, "+1", "g"]
        );
        assert_eq!(words(r#"x{a="b c"#), [r#"x{a="b"#, "c"]);
    }

    proptest! {
        #[test]
        fn hostile_names_keep_to_the_width(name in "\\PC{0,300}|[\u{1b}\n \u{202e}a]{0,99}") {
            let text = text(&sample::report(&name), 10);
            for line in text.lines() {
                let fits = columns(line) <= WIDTH || line.contains(LABEL);
                prop_assert!(fits, "{}", line);
                let harmful = line.contains(|c: char| c.is_control() || c == '\u{202e}');
                prop_assert!(!harmful, "{}", line);
            }
        }
    }
}
