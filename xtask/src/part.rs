//! A part of the checks and its results, from what nextest says in the format of JUnit.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::run::{line, root};

/// Maximum number of lines that are repeated of what a test that failed wrote: the last ones say why.
const LINES_MAX: usize = 60;

/// A part of the checks, with its results.
#[derive(Debug)]
pub(crate) struct Part {
    name: &'static str,
    took: Duration,
    /// Number of tests that passed, those that were repeated included; `None` for checks of another kind.
    passed: Option<usize>,
    /// Names of the tests that failed once, and passed when they were repeated.
    flaky: Vec<String>,
    failed: Vec<Failed>,
}

/// A test or another check that failed, and what it wrote last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    name: String,
    said: String,
}

impl Part {
    /// Checks that are not tests.
    pub(crate) fn of_checks(name: &'static str, check: impl FnOnce() -> Result<()>) -> Self {
        println!("\n== {name}");
        let begin = Instant::now();
        let failed =
            check().err().map(|error| Failed { name: name.into(), said: format!("{error:#}") });
        let failed = failed.into_iter().collect();
        Self { name, took: begin.elapsed(), passed: None, flaky: Vec::new(), failed }
    }

    /// Tests of a profile of nextest, whose name the part has. That they cannot run is one that failed.
    pub(crate) fn of_tests(profile: &'static str, tests: &mut Command) -> Self {
        println!("\n== {profile}\n$ {}", line(tests));
        let begin = Instant::now();
        let part = Self::ran(profile, tests, begin);
        part.unwrap_or_else(|error| {
            let failed = vec![Failed { name: profile.into(), said: format!("{error:#}") }];
            Self { name: profile, took: begin.elapsed(), passed: None, flaky: Vec::new(), failed }
        })
    }

    fn ran(profile: &'static str, tests: &mut Command, begin: Instant) -> Result<Self> {
        let results = root().join("target/nextest").join(profile).join("junit.xml");
        // Those of an earlier run are not taken for those of this one.
        if results.exists() {
            fs::remove_file(&results)
                .with_context(|| format!("cannot remove {}", results.display()))?;
        }
        let status = tests.status().with_context(|| format!("cannot run {}", line(tests)))?;
        let Ok(text) = fs::read_to_string(&results) else {
            bail!("{} failed ({status}), and left no results", line(tests));
        };
        let part = Self::of_results(profile, begin.elapsed(), &text)?;
        if status.success() != part.failed.is_empty() {
            bail!("{} ended with {status}, and {} tests failed", line(tests), part.failed.len());
        }
        Ok(part)
    }

    /// Tests whose results stand in a file in the format of JUnit, as nextest writes it.
    ///
    /// # Errors
    /// If the file is not in that format.
    fn of_results(name: &'static str, took: Duration, results: &str) -> Result<Self> {
        let document = roxmltree::Document::parse(results)
            .with_context(|| format!("the results of the part {name} are damaged"))?;
        let mut part = Self { name, took, passed: Some(0), flaky: Vec::new(), failed: Vec::new() };
        for case in document.descendants().filter(|node| node.has_tag_name("testcase")) {
            let of = |attribute| case.attribute(attribute).unwrap_or_default();
            let test = format!("{} {}", of("classname"), of("name"));
            let has = |tags: [&str; 2]| {
                case.children().any(|node| tags.contains(&node.tag_name().name()))
            };
            if has(["failure", "error"]) {
                let streams = case
                    .children()
                    .filter(|node| ["system-out", "system-err"].contains(&node.tag_name().name()));
                let said: String = streams.filter_map(|node| node.text()).collect();
                part.failed.push(Failed { name: test, said: last_lines(&said) });
                continue;
            }
            part.passed = part.passed.map(|passed| passed + 1);
            if has(["flakyFailure", "flakyError"]) {
                part.flaky.push(test);
            }
        }
        Ok(part)
    }

    /// One line for each part, and the names of the tests that passed only when they were repeated.
    pub(crate) fn table(parts: &[Self]) -> String {
        let mut out = format!(
            "\n{:<10} {:>6} {:>6} {:>6} {:>10}\n",
            "part", "passed", "flaky", "failed", "time"
        );
        for part in parts {
            let passed = part.passed.map_or_else(|| "-".into(), |passed| passed.to_string());
            let seconds = part.took.as_secs();
            let time = format!("{} min {:02} s", seconds / 60, seconds % 60);
            let (flaky, failed) = (part.flaky.len(), part.failed.len());
            let _ =
                writeln!(out, "{:<10} {passed:>6} {flaky:>6} {failed:>6} {time:>10}", part.name);
        }
        let flaky: Vec<&String> = parts.iter().flat_map(|part| &part.flaky).collect();
        if !flaky.is_empty() {
            out.push_str("\nFLAKY: these failed once and passed when they were repeated. A test that fails on a busy\n");
            out.push_str("machine is a defect: of it, or of what it tests.\n");
            for name in flaky {
                let _ = writeln!(out, "  {name}");
            }
        }
        out
    }

    /// Prints what failed, with what it said, and how many passed.
    ///
    /// # Errors
    /// If anything failed.
    pub(crate) fn verdict(parts: &[Self]) -> Result<()> {
        let failed: Vec<&Failed> = parts.iter().flat_map(|part| &part.failed).collect();
        for Failed { name, said } in &failed {
            println!("\nFAILED: {name}\n{said}");
        }
        let passed: usize = parts.iter().filter_map(|part| part.passed).sum();
        let (word, count) = (if failed.is_empty() { "ok" } else { "FAILED" }, failed.len());
        println!("\ntest result: {word}. {passed} passed; {count} failed");
        if !failed.is_empty() {
            let names: Vec<&str> = failed.iter().map(|failed| failed.name.as_str()).collect();
            bail!("failed: {}", names.join(", "));
        }
        Ok(())
    }
}

/// The last [`LINES_MAX`] lines of a text.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="0" timestamp="0" time="1.5">
    <testsuite name="proctrace::it" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="a::b" classname="proctrace::it" timestamp="0" time="0.1"></testcase>
        <testcase name="a::flaky" classname="proctrace::it" timestamp="0" time="0.1">
            <flakyFailure timestamp="0" time="0.1" message="at a.rs:1:1" type="test failure">left</flakyFailure>
        </testcase>
        <testcase name="a::broken" classname="proctrace::it" timestamp="0" time="0.1">
            <failure type="test failure with exit code 101">at a.rs:2:2</failure>
            <rerunFailure timestamp="0" time="0.1" type="test failure">at a.rs:2:2</rerunFailure>
            <system-out>running 1 test&#10;</system-out>
            <system-err>panicked at a.rs:2:2&#10;left: 1&#10;</system-err>
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn each_test_has_passed_or_is_named() {
        let part = Part::of_results("root", Duration::from_secs(61), RESULTS).unwrap();
        assert_eq!(part.passed, Some(2));
        assert_eq!(part.flaky, ["proctrace::it a::flaky"]);
        let said = "running 1 test\npanicked at a.rs:2:2\nleft: 1".to_owned();
        assert_eq!(part.failed, [Failed { name: "proctrace::it a::broken".into(), said }]);
        let table = Part::table(std::slice::from_ref(&part));
        assert!(table.contains("root            2      1      1 1 min 01 s\n"), "{table}");
        assert!(
            table.contains("FLAKY") && table.ends_with("  proctrace::it a::flaky\n"),
            "{table}"
        );
        assert!(Part::verdict(&[part]).unwrap_err().to_string().contains("a::broken"));
    }

    #[test]
    fn what_fails_is_a_failure_of_its_part() {
        let part = Part::of_checks("lint", || bail!("not formatted"));
        assert_eq!(part.failed.len(), 1);
        assert!(Part::of_checks("lint", || Ok(())).failed.is_empty());
        assert!(Part::of_results("root", Duration::ZERO, "<testsuites>").is_err());
        let none = Part::of_tests("no-such-profile", &mut Command::new("false"));
        assert!(none.failed[0].said.contains("left no results"), "{none:?}");
        let many = "line\n".repeat(LINES_MAX + 1);
        assert_eq!(last_lines(&many).lines().count(), LINES_MAX);
    }
}
