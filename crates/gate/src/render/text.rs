//! The report for a terminal and a CI log: 80 columns, the most severe findings first.

use proctrace_report::escape::terminal;

use super::{contributors_heading, origin, subject};
use crate::verdict::{Finding, Report, Verdict};

const WIDTH: usize = 80;

/// The report as text, limited to `most` findings.
pub fn text(report: &Report, most: usize) -> String {
    let mut out = String::new();
    push(&mut out, 0, &report.headline());
    for finding in report.findings.iter().take(most) {
        out.push('\n');
        push_finding(&mut out, report, finding);
    }
    if report.findings.len() > most {
        let left = report.findings.len() - most;
        let what = if left == 1 { "finding is" } else { "findings are" };
        let all = report.findings.len();
        push(&mut out, 0, &format!("\n{left} more {what} not shown: --top {all} shows all."));
    }
    let Some(first) = report.findings.first() else { return out };
    out.push('\n');
    if report.verdict == Verdict::Regression {
        push(&mut out, 0, "If the change is intended, record a new baseline or change the limit.");
    }
    push(&mut out, 0, &format!("For an explanation: proctrace gate explain {}", first.code));
    out
}

/// Appends one finding in full.
pub(super) fn push_finding(out: &mut String, report: &Report, finding: &Finding) {
    let heading = format!("{} {}: {}", finding.code, finding.effect.word(), finding.code.title());
    let origin = terminal(&origin(report, finding)).into_owned();
    // Both go on one line if they fit, with the location of the rule right-aligned.
    let (left, right) = (heading.chars().count(), origin.chars().count());
    if left + 2 + right <= WIDTH {
        let gap = if right > 0 { WIDTH - left - right } else { 0 };
        out.extend([heading.as_str(), &" ".repeat(gap), &origin, "\n"]);
    } else {
        out.extend([heading.as_str(), "\n"]);
        push(out, 2, &origin);
    }
    push(out, 2, subject(report, finding));
    push(out, 2, &finding.message);
    let rule = finding.rule.and_then(|rule| report.rules.get(rule));
    if let Some(because) = rule.and_then(|rule| rule.because.as_ref()) {
        push(out, 2, &format!("Reason for the limit: {because}"));
    }
    if !finding.contributors.is_empty() {
        push(out, 2, contributors_heading(finding));
        for contributor in &finding.contributors {
            push_contributor(out, &contributor.metric, &contributor.message);
        }
    }
}

/// Appends a metric with its value, which are kept on one line; the rest wraps like other text.
fn push_contributor(out: &mut String, metric: &str, message: &str) {
    let (value, rest) = message.split_at(message.find(" (").unwrap_or(message.len()));
    let (first, rest) = (terminal(metric), terminal(rest));
    let first = format!("{first}: {}", terminal(value));
    push_words(out, 4, std::iter::once(&*first).chain(words(rest.trim_start())));
}

/// Appends text wrapped at spaces to 80 columns where possible. Its line feeds are kept; all other
/// control characters are made visible.
fn push(out: &mut String, indent: usize, text: &str) {
    for line in text.split('\n') {
        push_words(out, indent, words(&terminal(line)));
    }
}

/// Appends one paragraph. A metric longer than a line is not broken, so that it can be copied;
/// other long words, such as hostile names, are.
fn push_words<'w>(out: &mut String, indent: usize, words: impl Iterator<Item = &'w str>) {
    let mut column = 0;
    for word in words {
        let whole = word.contains(LABEL);
        let mut word: Vec<char> = word.chars().collect();
        if column > indent && column + 1 + word.len() > WIDTH {
            out.push('\n');
            column = 0;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        while !word.is_empty() || column == 0 {
            if column == 0 {
                out.push_str(&" ".repeat(indent));
                column = indent;
            }
            let room = if whole { word.len() } else { WIDTH.saturating_sub(column).max(1) };
            let mut end = word.len().min(room);
            // A line that begins with two colons may be interpreted as a command by a CI system.
            while end > 1 && word[end..].starts_with(&[':', ':']) {
                end -= 1;
            }
            let rest = word.split_off(end);
            column += word.len();
            out.extend(word);
            word = rest;
            if word.is_empty() {
                break;
            }
            out.push('\n');
            column = 0;
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
        assert!(text.contains("3 more findings are not shown: --top 4 shows"), "{text}");
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
                let fits = line.chars().count() <= WIDTH || line.contains(LABEL);
                prop_assert!(fits, "{}", line);
                let harmful = line.contains(|c: char| c.is_control() || c == '\u{202e}');
                prop_assert!(!harmful, "{}", line);
            }
        }
    }
}
