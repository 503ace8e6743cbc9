//! The report for a terminal and a CI log: 80 columns, the worst first.

use proctrace_report::escape::terminal;

use super::{contributors_heading, origin, subject};
use crate::verdict::{Finding, Report, Verdict};

const WIDTH: usize = 80;

/// The report as text, with at most so many findings.
pub fn text(report: &Report, most: usize) -> String {
    let mut out = String::new();
    push(&mut out, 0, &report.headline());
    for finding in report.findings.iter().take(most) {
        out.push('\n');
        push_finding(&mut out, report, finding);
    }
    if report.findings.len() > most {
        let left = report.findings.len() - most;
        push(&mut out, 0, &format!("\n{left} more findings are not shown here."));
    }
    let Some(first) = report.findings.first() else { return out };
    out.push('\n');
    if report.verdict == Verdict::Regression {
        push(&mut out, 0, "If this is wanted, record a new baseline or change the limit.");
    }
    push(&mut out, 0, &format!("More on a code: proctrace gate explain {}", first.code));
    out
}

/// One finding in full.
pub(super) fn push_finding(out: &mut String, report: &Report, finding: &Finding) {
    let heading = format!("{} {}: {}", finding.code, finding.effect.word(), finding.code.title());
    let origin = terminal(&origin(report, finding)).into_owned();
    // Both on one line if they fit, the place of the rule on the right.
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
        push(out, 2, &format!("Why there is a limit: {because}"));
    }
    if !finding.contributors.is_empty() {
        push(out, 2, contributors_heading(finding));
        for contributor in &finding.contributors {
            push(out, 4, &format!("{}: {}", contributor.metric, contributor.message));
        }
    }
}

/// Appends text in lines of at most 80 columns, broken at spaces where that is possible. Its own
/// line feeds stay; every other control character becomes visible.
fn push(out: &mut String, indent: usize, text: &str) {
    for line in text.split('\n') {
        let line = terminal(line);
        let mut column = 0;
        for word in line.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            if column > 0 && column + 1 + word.len() > WIDTH {
                out.push('\n');
                column = 0;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            // A path may be longer than a line.
            while !word.is_empty() || column == 0 {
                if column == 0 {
                    out.push_str(&" ".repeat(indent));
                    column = indent;
                }
                let rest = word.split_off(word.len().min(WIDTH - column));
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
        assert!(text.contains("more findings are not shown"), "{text}");
    }

    proptest! {
        #[test]
        fn hostile_names_keep_to_the_width(name in "\\PC{0,300}|[\u{1b}\n \u{202e}a]{0,99}") {
            let text = text(&sample::report(&name), 10);
            for line in text.lines() {
                prop_assert!(line.chars().count() <= WIDTH, "{}", line);
                let harmful = line.contains(|c: char| c.is_control() || c == '\u{202e}');
                prop_assert!(!harmful, "{}", line);
            }
        }
    }
}
