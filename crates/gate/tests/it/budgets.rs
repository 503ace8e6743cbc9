//! Errors in budgets name file, line and column; any text yields a budget or an error.

use proctrace_gate::{Budget, Inconclusive, Severity, Unmatched};
use proptest::prelude::*;

fn error(text: &str) -> String {
    Budget::parse("ci/gate.toml", text).expect_err("it is a bad one").to_string()
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, wanted) in [
        ("[limits]\nexces = '5%'\n", "ci/gate.toml:2:1: unknown metric exces: did you mean execs?"),
        (
            "[limits]\n\n  'execs{comand=\"sed\"}' = '5%'\n",
            "ci/gate.toml:3:10: execs has no label comand: did you mean command?",
        ),
        (
            "[limits]\nexecs = '-5%'\n",
            "ci/gate.toml:2:10: -5 is negative: limits must be 0 or greater",
        ),
        ("[limits]\nexecs = '5%|-1'\n", "ci/gate.toml:2:13: -1 is negative"),
        ("[limits]\nexecs = { absolute = -5 }\n", "ci/gate.toml:2:22: -5 is negative"),
        ("[limits]\nexecs = { absolute = -0.5 }\n", "ci/gate.toml:2:22: -0.5 is negative"),
        ("[limits]\nexecs = { absolute = nan }\n", "ci/gate.toml:2:22: nan is not a number"),
        (
            "[limits]\nexecs = { absolute = '5' }\n",
            "ci/gate.toml:2:22: expected a decimal number, found a string",
        ),
        (
            "[limits]\nexecs = { absolute = 0x10 }\n",
            "ci/gate.toml:2:22: expected a decimal number, found an integer",
        ),
        (
            "[limits]\nexecs = 5\n",
            "ci/gate.toml:2:9: expected a limit such as \"5%|500\" or a table, found an integer",
        ),
        (
            "[limits]\nexecs = '5'\n",
            "ci/gate.toml:2:10: 5 is neither a relative nor an absolute limit",
        ),
        (
            "[limits]\nexecs = { relativ_percent = 5 }\n",
            "ci/gate.toml:2:11: unknown key relativ_percent: did you mean relative_percent?",
        ),
        (
            "[limits]\nexecs = { absolute = 5, severity = 'warning' }\n",
            "ci/gate.toml:2:36: expected \"deny\" or \"warn\", found \"warning\"",
        ),
        (
            "[limits]\nexecs = { absolute = 5, severity = 1 }\n",
            "ci/gate.toml:2:36: expected \"deny\" or \"warn\", found an integer",
        ),
        (
            "[limits]\nexecs = { absolute = 5, because = 1 }\n",
            "ci/gate.toml:2:35: expected a string, found an integer",
        ),
        (
            "[limits]\nexecs = {}\n",
            "ci/gate.toml:2:1: no limit given: set relative_percent or absolute",
        ),
        (
            "[limits]\nexecs = { absolute = 1, min_change = 1 }\n",
            "ci/gate.toml:2:1: min_change needs relative_percent",
        ),
        (
            "[limits]\nexecs = { relative_percent = 1, min_runs = 3 }\n",
            "ci/gate.toml:2:1: min_runs needs absolute",
        ),
        (
            "[limits]\nexecs = { absolute = 1, min_runs = 0 }\n",
            "ci/gate.toml:2:36: 0 is not a number of runs: write a whole number from 1 to 1000",
        ),
        ("[limit]\nexecs = '5%'\n", "ci/gate.toml:1:2: unknown key limit: did you mean limits?"),
        (
            "[defaults]\nseverty = 'deny'\n[limits]\n",
            "ci/gate.toml:2:1: unknown key severty: did you mean severity?",
        ),
        ("limits = 5\n", "ci/gate.toml:1:10: expected a table, found an integer"),
        ("", "ci/gate.toml:1:1: section [limits] is missing, so nothing would be checked"),
        ("[limits]\nexecs = \n", "ci/gate.toml:2:"),
        ("[limits]\nexecs = '5%'\nexecs = '6%'\n", "ci/gate.toml:3:1: duplicate key"),
        (
            "[limits]\n# grüße\n'wall*' = '5%'\n",
            "ci/gate.toml:3:2: unknown metric wall*: patterns do not match elapsed times",
        ),
    ] {
        let error = error(text);
        assert!(error.starts_with(wanted), "{text}\n{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn rules_are_in_the_order_of_the_file_with_its_defaults() {
    let text = r#"
[defaults]
severity = "warn"
inconclusive = "warn"
unmatched = "deny"

[limits]
total_execs = "5%"
'execs{command="*"}' = "0%|500"
"execs{command=\"sed\"}" = { relative_percent = 1.5, min_change = 3, severity = "deny", worse = "lower", because = "x" }

[limits.total_threads]
absolute = 1_000
"#;
    let budget = Budget::parse("gate.toml", text).unwrap();
    let rules: Vec<String> = budget.rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules,
        [
            "total_execs=5%",
            r#"execs{command="*"}=0%|500"#,
            r#"execs{command="sed"}=1.5%"#,
            "total_threads=|1000"
        ]
    );
    let lines: Vec<String> = budget.rules.iter().map(|rule| rule.origin.to_string()).collect();
    assert_eq!(lines, ["gate.toml:8", "gate.toml:9", "gate.toml:10", "gate.toml:12"]);
    let severities: Vec<Severity> = budget.rules.iter().map(|rule| rule.severity).collect();
    assert_eq!(severities, [Severity::Warn, Severity::Warn, Severity::Deny, Severity::Warn]);
    assert!(budget.rules.iter().all(|rule| rule.inconclusive == Inconclusive::Warn));
    assert!(budget.rules.iter().all(|rule| rule.unmatched == Unmatched::Deny));
}

#[test]
fn an_argument_that_is_wrong_is_shown_with_the_column() {
    let error = Budget::default().push_argument(r#"execs{command="sed"}=5"#).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(r#"--limit 'execs{command="sed"}=5', column 22: 5 is neither"#),
        "{text}"
    );
}

proptest! {
    #[test]
    fn any_text_gives_a_budget_or_an_error(text in "\\PC{0,200}|(.|\n){0,200}") {
        let _ = Budget::parse("f", &text);
    }

    #[test]
    fn nearly_right_text_gives_a_budget_or_an_error(
        key in r#"(execs|total_\*|wall_seconds|'execs\{command="[a*\\é]{0,4}"\}'|"execs\{command=\\"s\\"\}"|[a-z."' ]{0,9})"#,
        value in r#"('-?[0-9.]{0,4}%?\|?[0-9eE_.-]{0,5}'|\{ ?(absolute|relative_percent|min_change|min_runs|worse|severity|because|[a-z]{3}) = [-0-9.'a-z]{0,6} ?\}|[0-9]{1,30}|true|\[\])"#,
        head in r"(\[limits\]|\[defaults\]|\[limits.execs\]|)\n",
    ) {
        let text = format!("{head}{key} = {value}\n");
        if let Err(error) = Budget::parse("f", &text) {
            prop_assert!(error.line >= 1 && error.line <= 3 && error.column >= 1, "{error}");
        }
    }
}
