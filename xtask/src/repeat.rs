//! Runs tests, and repeats those that fail, each alone: a test that fails only on a busy machine is named, and the run goes on.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::run::{cargo_that_can_be_interrupted, line};

/// Number of times that a test that failed is run again.
const REPETITIONS: usize = 2;
/// Maximum number of failed tests for repetition: if more fail, the machine is not the reason.
const FAILED_MAX: usize = 5;

/// Maximum number of lines that are repeated of what the tests that failed wrote.
const REASONS_MAX: usize = 80;

/// Time to wait for output after the command has ended.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

/// A test that failed among all others and passed alone.
#[derive(Debug, PartialEq, Eq)]
struct Flaky {
    name: String,
    /// Number of the repetition at which it passed.
    at: usize,
}

/// Tests that failed, of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    /// Arguments by which cargo selects the target: `--lib`, `--test it`.
    target: Vec<String>,
    tests: Vec<String>,
}

/// Runs `cargo test`, whose output is passed on, and repeats what failed. Returns the tests that passed when they were
/// repeated, in words for the end of the output.
///
/// # Errors
/// If a test fails alone, too, or if something else than a test failed.
pub(crate) fn run(tests: &mut Command, arguments: &[String]) -> Result<Option<String>> {
    println!("$ {}", line(tests));
    let Told { status, text, .. } = passed_on(tests)?;
    if status.success() {
        return Ok(None);
    }
    let Some(failed) = failed(&text) else { bail!("{} failed ({status})", line(tests)) };
    let count: usize = failed.iter().map(|failed| failed.tests.len()).sum();
    if count > FAILED_MAX {
        bail!("{} failed: {count} tests, too many to run them again", line(tests));
    }
    let (mut flaky, mut broken, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for failed in failed {
        for test in failed.tests {
            match repeat(tests, &failed.target, &test, arguments)? {
                Repeated::Passed(at) => flaky.push(Flaky { name: test, at }),
                Repeated::Failed(reason) => {
                    broken.push(format!("{} {test}", failed.target.join(" ")));
                    reasons.extend(reason);
                }
            }
        }
    }
    let summary = (!flaky.is_empty()).then(|| summary(&flaky));
    if !broken.is_empty() {
        // Again, at the end: who reads only the end of a long output is told why.
        println!("{}\n{}", summary.unwrap_or_default(), reasons.join("\n"));
        bail!("failed alone, too: {}", broken.join(", "));
    }
    Ok(summary)
}

/// What came of a test that ran alone.
enum Repeated {
    /// The number of the repetition at which it passed.
    Passed(usize),
    /// What it said at the last of them.
    Failed(Vec<String>),
}

/// Runs a test alone until it passes, [`REPETITIONS`] times at most.
fn repeat(
    tests: &Command,
    target: &[String],
    test: &str,
    arguments: &[String],
) -> Result<Repeated> {
    let mut reason = Vec::new();
    for at in 1..=REPETITIONS {
        let mut again = cargo_that_can_be_interrupted();
        // With the features of the whole workspace: otherwise its dependencies are built anew. With one thread, libtest
        // writes the name of a test before it runs, and its result into a line that others may have gone on with.
        again.args(["test", "--release", "--workspace", "--no-fail-fast"]).args(target);
        again.args(["--", "--exact", "--test-threads=2"]).args(arguments).arg(test);
        again.envs(tests.get_envs().filter_map(|(name, value)| Some((name, value?))));
        println!("\n$ {}", line(&again));
        let told = passed_on(&mut again)?;
        if told.status.success() && has_passed(&told.text, test) {
            return Ok(Repeated::Passed(at));
        }
        if !told.reasons.is_empty() {
            reason = told.reasons;
        }
    }
    Ok(Repeated::Failed(reason))
}

/// True if a test ran and passed: one that was ignored or not found fails nothing.
fn has_passed(text: &str, test: &str) -> bool {
    let passed = format!("test {test} ... ok");
    text.lines().any(|line| line == passed)
}

/// What a run of tests said.
struct Told {
    status: ExitStatus,
    /// The lines that [`failed`] and [`has_passed`] look at.
    text: String,
    /// What the tests that failed wrote, with a heading for each: [`REASONS_MAX`] lines at most.
    reasons: Vec<String>,
}

/// Runs a command; its output is shown, and the lines of it that tell something are returned.
fn passed_on(command: &mut Command) -> Result<Told> {
    // Both streams through one pipe: which target a test belongs to follows from the order of the lines.
    let (reader, writer) = std::io::pipe().context("cannot create a pipe")?;
    let copy = writer.try_clone().context("cannot create a pipe")?;
    let mut child = command
        .stdout(writer)
        .stderr(copy)
        .spawn()
        .with_context(|| format!("cannot run {}", line(command)))?;
    // The command keeps the ends of the pipe, which then has no end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || show(reader, &sender));
    let status = child.wait().with_context(|| format!("cannot run {}", line(command)))?;
    let (mut text, mut reasons, mut is_reason) = (String::new(), Vec::new(), false);
    // What a failed test has left behind may hold the pipe open for ever.
    let until = Instant::now() + LEFT_BEHIND;
    while let Ok(told) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        is_reason = told != FAILURES && (is_reason || begins_reason(&told));
        if tells(&told) {
            let _ = writeln!(text, "{told}");
        }
        if is_reason {
            // The last lines say why; the first one is the heading.
            if reasons.len() == REASONS_MAX {
                reasons.remove(1);
            }
            reasons.push(told);
        }
    }
    Ok(Told { status, text, reasons })
}

/// True of the heading of what a test that failed wrote.
fn begins_reason(line: &str) -> bool {
    line.starts_with("---- ") && line.ends_with(" stdout ----")
}

/// Shows output as it comes, and sends its lines.
fn show(mut reader: impl Read, lines: &mpsc::Sender<String>) {
    let (mut chunk, mut line) = ([0; 8192], Vec::new());
    while let Ok(length @ 1..) = reader.read(&mut chunk) {
        let bytes = &chunk[..length];
        let mut out = std::io::stdout().lock();
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            return;
        }
        for byte in bytes {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if lines.send(text).is_err() {
                return;
            }
        }
    }
}

/// Heading of the names of the tests of a program that failed; the last of its kind before the result.
const FAILURES: &str = "failures:";

/// The name in a line of that list.
fn listed(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    ")?;
    (!name.is_empty() && !name.contains([' ', '`'])).then_some(name)
}

/// True if [`failed`] or [`has_passed`] looks at a line.
fn tells(line: &str) -> bool {
    line == FAILURES
        || listed(line).is_some()
        || line.ends_with(" ... ok")
        || line.starts_with("test result: FAILED")
        || line.starts_with("error")
}

/// The tests that failed; `None` if nothing did, or if not all of it is known to be tests.
fn failed(text: &str) -> Option<Vec<Failed>> {
    let (mut targets, mut tests) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for line in text.lines() {
        // Not the line of the test itself: with one thread, its name and its result are in different lines as soon as a
        // program that it starts writes something between them.
        if line == FAILURES {
            tests.clear();
        } else if let Some(name) = listed(line) {
            tests.push(name.to_owned());
        } else if line.starts_with("test result: FAILED") {
            let count: usize = line.split(' ').rev().zip(line.split(' ').rev().skip(1)).find_map(
                |(word, before)| (word == "failed;").then(|| before.parse().ok()).flatten(),
            )?;
            // A line of another program may have been written into the list.
            if count != tests.len() {
                return None;
            }
            found.push(std::mem::take(&mut tests));
        } else if let Some(pass) = line.strip_prefix("error: test failed, to rerun pass ") {
            targets.push(target(pass)?);
        } else if line.starts_with("error") && !line.ends_with(" failed:") {
            return None;
        }
    }
    // What crashed has no result.
    let is_complete = tests.is_empty() && !found.is_empty() && targets.len() == found.len();
    is_complete.then(|| {
        let with_tests = targets.into_iter().zip(found);
        with_tests.map(|(target, tests)| Failed { target, tests }).collect()
    })
}

/// The target that cargo says has failed: "`-p proctrace --test it`". Of examples in documentation, nothing is repeated.
fn target(pass: &str) -> Option<Vec<String>> {
    let words = pass.strip_prefix("`-p ")?.strip_suffix('`')?;
    let words: Vec<String> = words.split(' ').skip(1).map(str::to_owned).collect();
    let known = ["--lib", "--test", "--bin"];
    words.first().is_some_and(|first| known.contains(&first.as_str())).then_some(words)
}

fn summary(flaky: &[Flaky]) -> String {
    let mut out = format!("\nFLAKY: {} failed among the others and passed alone:\n", flaky.len());
    for Flaky { name, at } in flaky {
        let _ = writeln!(out, "  {name} (at repetition {at})");
    }
    out.push_str("A test that fails on a busy machine is a defect: of it, or of what it tests.\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVERAL: &str = "failures:
    what
failures:
    a::b
test result: FAILED. 24 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 109.10s
error: test failed, to rerun pass `-p proctrace --test it`
failures:
    c
    d
test result: FAILED. 2 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.10s
error: test failed, to rerun pass `-p proctrace-wire --lib`
error: 2 targets failed:
    `-p proctrace --test it`
    `-p proctrace-wire --lib`";

    #[test]
    fn what_failed_is_known_with_its_target() {
        let of = |target: &[&str], tests: &[&str]| Failed {
            target: target.iter().map(|&word| word.to_owned()).collect(),
            tests: tests.iter().map(|&word| word.to_owned()).collect(),
        };
        let expected = vec![of(&["--test", "it"], &["a::b"]), of(&["--lib"], &["c", "d"])];
        assert_eq!(failed(SEVERAL), Some(expected));
    }

    #[test]
    fn a_result_in_a_line_of_its_own_is_known() {
        let told = "test alone::a ... proctrace: 10 processes, 5.65 s
proctrace: exit 0
FAILED

failures:

---- alone::a stdout ----

thread 'alone::a' (26453) panicked at a.rs:307:9:
    indented

failures:
    alone::a

test result: FAILED. 44 passed; 1 failed; 0 ignored; 0 measured; 466 filtered out; finished in 262.48s

error: test failed, to rerun pass `-p proctrace --test it`
error: 1 target failed:
    `-p proctrace --test it`";
        let kept: Vec<&str> = told.lines().filter(|line| tells(line)).collect();
        let found = failed(&kept.join("\n")).unwrap();
        assert_eq!(found[0].tests, ["alone::a"]);
        assert_eq!(found[0].target, ["--test", "it"]);
    }

    #[test]
    fn a_test_that_did_not_run_has_not_passed() {
        let ok = "test a::b ... ok";
        assert!(has_passed(&format!("running 1 test\n{ok}\n"), "a::b"));
        for text in ["", "test a::b ... ignored", "test a::bc ... ok", "xtest a::b ... ok"] {
            assert!(!has_passed(text, "a::b"), "{text}");
        }
    }

    #[test]
    fn what_a_failed_test_said_is_kept() {
        let said = "---- a::b stdout ----\n\npanicked at a.rs:1:\nleft: 1";
        let text = format!("test c ... ok\nfailures:\n\n{said}\n\nfailures:\n    a::b\n");
        let mut command = Command::new("printf");
        let told = passed_on(command.args(["%s", &text])).unwrap();
        assert_eq!(told.reasons.join("\n").trim_end(), said);
        let much = format!("{}{}\nthe end", "---- a::b stdout ----\n", "line\n".repeat(200));
        let told = passed_on(Command::new("printf").args(["%s\n", &much])).unwrap();
        assert_eq!(told.reasons.len(), REASONS_MAX);
        assert!(begins_reason(&told.reasons[0]));
        assert_eq!(told.reasons.last().unwrap(), "the end");
    }

    /// As `sh -c 'while :; do :; done'` of a test that panics before it kills it.
    #[test]
    fn what_is_left_behind_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo 'test a ... ok'; echo $!"]);
        let told = passed_on(&mut command).unwrap();
        assert!(told.status.success());
        assert_eq!(told.text, "test a ... ok\n");
        // It is ours: nobody else sleeps for so long in this way.
        let _ = Command::new("pkill").args(["-xf", "sleep 1000"]).status();
    }

    #[test]
    fn what_is_no_test_is_not_repeated() {
        let compiles = SEVERAL.replace("error: 2 targets failed:", "error[E0425]: cannot find x");
        let doc = SEVERAL.replace("--lib", "--doc");
        let crashed = "error: test failed, to rerun pass `-p proctrace --test it`";
        let cut = SEVERAL.replace("    c\n", "    proctrace: exit 0c\n");
        let more = SEVERAL.replace("2 failed;", "3 failed;");
        for text in ["", "error: could not compile `x`", crashed, &doc, &cut, &more, &compiles] {
            assert_eq!(failed(text), None, "{text}");
        }
    }
}
