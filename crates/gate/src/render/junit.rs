//! JUnit XML: one test case per rule, so that names are stable between runs.

use proctrace_report::escape::xml;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::text::{push_group, push_part};
use crate::verdict::{Effect, Finding, Group, Report};

/// Serialisation of the XML failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write JUnit XML: {0}")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// Maximum findings of a rule that are included: a rule may select thousands of metrics.
const MOST: usize = 50;

/// The report as JUnit XML. There is no standard; the output conforms to the schema of Jenkins'
/// xUnit plug-in. The text is in the body of each element, where every CI system shows it.
///
/// A rule that fails is a failure, an undecided one an error, and one that only warns passes with
/// the warning as its output.
///
/// # Errors
///
/// None known: names are escaped before they are written.
pub fn junit(report: &Report) -> Result<String, JunitError> {
    let mut suite = TestSuite::new("proctrace gate");
    for (at, rule) in report.rules.iter().enumerate() {
        suite.add_test_case(case(report, &rule.text, Some(at)));
    }
    if report.findings.iter().any(|finding| finding.rule.is_none()) {
        suite.add_test_case(case(report, "the recordings", None));
    }
    let mut whole = quick_junit::Report::new("proctrace");
    whole.add_test_suite(suite);
    let text = whole.to_string()?;
    // The schema does not allow this attribute on the outermost element, only on its suite.
    let skipped = format!(" skipped=\"{}\"", whole.skipped);
    Ok(text.replacen(&skipped, "", 1))
}

/// The case of a rule, or of the recordings. A group is described in full in the case of the rule of
/// its first finding; the cases of the other rules have their own findings of the group.
fn case(report: &Report, name: &str, rule: Option<usize>) -> TestCase {
    let findings: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.rule == rule).collect();
    let groups: Vec<&Group> = (report.groups.iter())
        .filter(|group| findings.iter().any(|finding| is_in(finding, group, report)))
        .collect();
    let mut body = String::from("\n");
    for group in groups.iter().take(MOST) {
        match rule {
            Some(at) if report.first_of(group).is_some_and(|first| first.rule != Some(at)) => {
                push_part(&mut body, report, group, at);
            }
            _ => push_group(&mut body, report, group, MOST),
        }
        body.push('\n');
    }
    if groups.len() > MOST {
        body.push_str(&format!("{} more findings of this rule\n", groups.len() - MOST));
    }
    let worst = findings.iter().min_by_key(|finding| finding.effect);
    let status = match worst.map(|finding| finding.effect) {
        Some(effect @ (Effect::Refuses | Effect::Fails | Effect::Inconclusive)) => {
            let kind = if effect == Effect::Fails {
                NonSuccessKind::Failure
            } else {
                NonSuccessKind::Error
            };
            let mut status = TestCaseStatus::non_success(kind);
            if let Some(worst) = worst {
                status
                    .set_type(worst.code.name())
                    .set_message(xml(&message(worst)).into_owned())
                    .set_description(body.as_str());
            }
            status
        }
        Some(Effect::Warns) | None => TestCaseStatus::success(),
    };
    let passes = matches!(status, TestCaseStatus::Success { .. });
    let mut case = TestCase::new(xml(name).into_owned(), status);
    case.set_classname("proctrace.gate");
    if passes && !findings.is_empty() {
        case.set_system_out(body.as_str());
    }
    case
}

fn is_in(finding: &Finding, group: &Group, report: &Report) -> bool {
    report.groups.get(finding.group).is_some_and(|own| std::ptr::eq(own, group))
}

/// The message of a finding with its cause.
fn message(finding: &Finding) -> String {
    match &finding.cause {
        Some(cause) => format!("{}; cause: {cause}", finding.message),
        None => finding.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;

    #[test]
    fn each_rule_is_a_case_with_the_text_in_its_body() {
        let report = sample::report("sed");
        let text = junit(&report).unwrap();
        assert!(text.contains(r#"<testsuite name="proctrace gate" tests="4""#), "{text}");
        assert!(text.contains(r#"<failure message="5,804 before, 6,404 after"#), "{text}");
        assert!(text.contains("cause: +600 sed, started by poll.sh: 5,804"), "{text}");
        assert!(
            text.contains("spawns{parent=&quot;poll.sh&quot;,child=&quot;sed&quot;}: +600"),
            "{text}"
        );
        assert!(text.contains(r#"type="PT005""#) && text.contains("<system-out>"), "{text}");
    }

    #[test]
    fn it_is_read_back_by_the_crate_that_wrote_it() {
        for name in
            ["sed", "a\u{1b}[31m\u{0}b", "]]></failure>&\"'<x>", "\u{fffe}", "skipped=\"0\""]
        {
            let text = junit(&sample::report(name)).unwrap();
            let read = quick_junit::Report::deserialize_from_str(&text).unwrap();
            assert_eq!(read.test_suites[0].test_cases.len(), 4, "{text}");
        }
    }
}
