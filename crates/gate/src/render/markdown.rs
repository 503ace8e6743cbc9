//! Markdown for the summary of a CI job.

use std::fmt::Write as _;

use proctrace_report::escape::{links, unlinked};

use super::{
    ADVICE, ALSO, advice, brief, contributors_heading, heading, origin, other_effect, others,
    reason, related, subject,
};
use crate::verdict::{Check, Finding, Group, Report, Status};

/// Maximum size: GitHub limits the summary of a step to 1,024 KiB, and drops larger ones entirely
/// (docs.github.com, "Workflow commands", step isolation and limits). The rest is left for output
/// of other tools.
pub const MARKDOWN_MOST_BYTES: usize = 1_000_000;

/// Reserved for the sentence that reports what was left out.
const RESERVE: usize = 500;

/// Maximum number of contributor lines and table rows, for readability.
const MOST_ROWS: usize = 500;

/// The report as GitHub and GitLab Markdown, at most [`MARKDOWN_MOST_BYTES`] long. Omissions are
/// counted.
pub fn markdown(report: &Report) -> String {
    let mut out = format!("## proctrace gate\n\n**{}**\n\n", report.headline());
    let names = |names: &[String]| {
        let mut shown: Vec<String> = names.iter().take(10).map(|name| code(name)).collect();
        if names.len() > shown.len() {
            shown.push(format!("{} more", names.len() - shown.len()));
        }
        shown.join(", ")
    };
    let _ = write!(out, "Candidates: {}", names(&report.candidates));
    if !report.baselines.is_empty() {
        let _ = write!(out, " · baselines: {}", names(&report.baselines));
    }
    out.push_str("\n\n");
    let mut left_out = 0;
    for group in &report.groups {
        let part = one(report, group);
        if left_out == 0 && out.len() + part.len() + RESERVE <= MARKDOWN_MOST_BYTES {
            out.push_str(&part);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let _ = writeln!(out, "\n**{left_out} more findings do not fit here.**\n");
        return out;
    }
    let passed: Vec<&Check> =
        report.checks.iter().filter(|check| check.status == Status::Passed).collect();
    if passed.is_empty() {
        return out;
    }
    let end = "\n</details>\n";
    let _ = write!(
        out,
        "<details><summary>{} passed</summary>\n\n| metric | rule | result |\n|---|---|---|\n",
        report.passed()
    );
    for (at, check) in passed.iter().enumerate() {
        let origin = report.rules.get(check.rule).map(|rule| rule.origin.to_string());
        let row = format!(
            "| {} | {} | {} |\n",
            code(&check.metric),
            code(&origin.unwrap_or_default()),
            plain(&check.message)
        );
        if at == MOST_ROWS || out.len() + row.len() + RESERVE > MARKDOWN_MOST_BYTES {
            let _ = writeln!(out, "\n{} more that passed are left out.", passed.len() - at);
            break;
        }
        out.push_str(&row);
    }
    out.push_str(end);
    out
}

fn one(report: &Report, group: &Group) -> String {
    let Some(first) = report.first_of(group) else { return String::new() };
    let mut out = format!("### {}\n\n", plain(&heading(group, first)));
    out.push_str(&rule_of(report, first, &code(subject(report, first))));
    let _ = write!(out, "\n\n{}\n\n", plain(&first.message));
    if let Some(because) = reason(report, first) {
        let _ = write!(out, "Reason for the limit: {}\n\n", plain(because));
    }
    let also = others(report, group).count();
    if also > 0 {
        let _ = write!(out, "{ALSO}\n\n| metric | change and limit | rule |\n|---|---|---|\n");
    }
    for finding in others(report, group).take(MOST_ROWS) {
        let mut result = plain(&(brief(finding) + &other_effect(group, finding)));
        if let Some(because) = reason(report, finding) {
            let _ = write!(result, "; reason for the limit: {}", plain(because));
        }
        let _ = writeln!(
            out,
            "| {} | {result} | {} |",
            code(subject(report, finding)),
            code(&origin(report, finding))
        );
    }
    if also > 0 {
        out.push('\n');
    }
    if also > MOST_ROWS {
        let _ = write!(out, "{} more are left out.\n\n", also - MOST_ROWS);
    }
    let related = related(report, group, first);
    if !related.is_empty() {
        let _ = write!(out, "{}\n\n| metric | change |\n|---|---|\n", contributors_heading(first));
        for contributor in related {
            let _ = writeln!(
                out,
                "| {} | {} |",
                code(&contributor.metric),
                plain(&contributor.message)
            );
        }
        out.push('\n');
    }
    if !group.advice.is_empty() {
        let _ = write!(out, "{ADVICE}\n\n| change | predicted gain |\n|---|---|\n");
        for one in &group.advice {
            let (what, gain) = advice(one);
            let _ = writeln!(out, "| {} | {} |", plain(&what), plain(&gain));
        }
        out.push('\n');
    }
    out
}

/// Subject of a finding, with the location of its rule.
fn rule_of(report: &Report, finding: &Finding, what: &str) -> String {
    let origin = origin(report, finding);
    if origin.is_empty() { what.to_owned() } else { format!("{what}, rule at {}", code(&origin)) }
}

/// Maximum length of a name, which is truncated there: one name must not fill the whole summary.
const NAME_MOST_CHARACTERS: usize = 2_000;

/// A name formatted as code. HTML is used because backquotes allow no escaping inside, and a
/// table's bars would still be interpreted.
fn code(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("<code>{}</code>", plain(name)) }
}

/// Text without markup: any character that could be markup becomes a character reference, which
/// CommonMark never interprets as structure (section 2.5 of its specification).
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let visible = proctrace_report::escape::terminal(text);
    for (number, (at, c)) in visible.char_indices().enumerate() {
        if number == NAME_MOST_CHARACTERS {
            out.push('…');
            break;
        }
        if links(&visible[..at], c, &visible[at + c.len_utf8()..]) {
            out.push_str(&unlinked(c));
            continue;
        }
        let is_harmless = c.is_alphanumeric() || matches!(c, ',' | '/' | '%' | ';' | '…' | 'µ');
        // A sign or a point between digits is harmless, but leading spaces may begin a code block.
        let is_in_number = matches!(c, ' ' | '.' | '+' | '-' | '(' | ')' | '=')
            && !out.is_empty()
            && !is_item(&out, c);
        if is_harmless || is_in_number {
            out.push(c);
        } else {
            let _ = write!(out, "&#{};", u32::from(c));
        }
    }
    out
}

/// True if this character would turn a number at the start of a paragraph into a list item.
fn is_item(before: &str, c: char) -> bool {
    matches!(c, '.' | ')') && before.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    /// The visible contents of all table cells, and the number of headings and links.
    fn read(text: &str) -> (Vec<String>, usize, usize) {
        let mut cells: Vec<String> = Vec::new();
        let (mut inside, mut headings, mut links) = (false, 0, 0);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            match event {
                Event::Start(Tag::TableCell) => {
                    inside = true;
                    cells.push(String::new());
                }
                Event::End(pulldown_cmark::TagEnd::TableCell) => inside = false,
                Event::Start(Tag::Heading { .. }) => headings += 1,
                Event::Start(
                    Tag::Link { .. } | Tag::Image { .. } | Tag::Emphasis | Tag::Strikethrough,
                ) => links += 1,
                Event::Text(text) if inside => cells.last_mut().unwrap().push_str(&text),
                Event::Html(html) | Event::InlineHtml(html) => {
                    let known = [
                        "<!-- -->",
                        "<code>",
                        "</code>",
                        "<details>",
                        "</details>",
                        "<summary>",
                        "</summary>",
                    ];
                    let html = html.trim();
                    assert!(
                        known.contains(&html) || html.starts_with("<details><summary>"),
                        "{html}"
                    );
                }
                _ => {}
            }
        }
        (cells, headings, links)
    }

    #[test]
    fn a_summary_says_what_is_wrong() {
        let text = markdown(&sample::report("sed"));
        assert!(text.contains("### PT001 failure&#58; +600 sed, started by poll"), "{text}");
        let (cells, headings, links) = read(&text);
        assert_eq!((headings, links), (4, 0), "{text}");
        assert!(cells.contains(&r#"spawns{parent="poll.sh",child="sed"}"#.to_owned()), "{cells:?}");
    }

    #[test]
    fn a_long_report_is_cut_and_says_so() {
        let mut report = sample::report("sed");
        let first = report.groups[0].clone();
        report.groups = vec![first; 20_000];
        let text = markdown(&report);
        assert!(text.len() < MARKDOWN_MOST_BYTES && text.len() > MARKDOWN_MOST_BYTES * 9 / 10);
        assert!(text.contains("more findings do not fit here"));
        let mut report = sample::report(&"*".repeat(10_000_000));
        assert!(markdown(&report).len() < MARKDOWN_MOST_BYTES);
        report.groups.clear();
        let passed =
            report.checks.iter().find(|check| check.status == Status::Passed).unwrap().clone();
        report.checks = vec![passed; 2_000];
        assert!(markdown(&report).contains("1500 more that passed are left out"));
    }

    proptest! {
        #[test]
        fn hostile_names_are_only_names(name in r"([|`*_\[\]()<>&#!\\@:~-]|www\.|https?://|[a-z]|<!--|\$){1,16}") {
            let text = markdown(&sample::report(&name));
            let (cells, headings, links) = read(&text);
            prop_assert_eq!((headings, links), (4, 0), "{}", text);
            let written = crate::pattern::quoted(&name);
            let wanted = format!("spawns{{parent=\"poll.sh\",child=\"{written}\"}}");
            prop_assert!(cells.contains(&wanted), "{} {:?}", wanted, cells);
        }
    }
}
