//! Runs tests, and those that failed again, alone: a test that a busy machine failed once is named, and does not fail the run.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use crate::run::{cargo_that_can_be_interrupted, line};

/// How often a test that failed is run again.
const REPETITIONS: usize = 2;
/// If more tests fail, it is not for the machine, and none is run again.
const FAILED_MAX: usize = 5;

/// A test that failed among all others and passed alone.
#[derive(Debug, PartialEq, Eq)]
struct Flaky {
    name: String,
    /// At which repetition it passed.
    at: usize,
}

/// Tests that failed, of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    /// As cargo selects the target: `--lib`, `--test gate`.
    target: Vec<String>,
    tests: Vec<String>,
}

/// Runs `cargo test`, whose output is passed on, and repeats what failed.
///
/// # Errors
/// If a test fails alone, too, or if something else than a test failed.
pub(crate) fn run(tests: &mut Command, arguments: &[String]) -> Result<()> {
    println!("$ {}", line(tests));
    let (status, text) = passed_on(tests)?;
    if status.success() {
        return Ok(());
    }
    let Some(failed) = failed(&text) else { bail!("{} failed ({status})", line(tests)) };
    let count: usize = failed.iter().map(|failed| failed.tests.len()).sum();
    if count > FAILED_MAX {
        bail!("{} failed: {count} tests, too many to run them again", line(tests));
    }
    let mut flaky = Vec::new();
    for failed in failed {
        flaky.extend(repeated(tests, failed, arguments)?);
    }
    print!("{}", summary(&flaky));
    Ok(())
}

/// Runs the tests of a target alone until each has passed.
fn repeated(tests: &Command, mut failed: Failed, arguments: &[String]) -> Result<Vec<Flaky>> {
    let mut flaky = Vec::new();
    for at in 1..=REPETITIONS {
        let mut again = cargo_that_can_be_interrupted();
        // With the features of the whole workspace: otherwise its dependencies are built anew.
        again.args(["test", "--release", "--workspace", "--no-fail-fast"]).args(&failed.target);
        again.args(["--", "--exact", "--test-threads=1"]).args(arguments).args(&failed.tests);
        again.envs(tests.get_envs().filter_map(|(name, value)| Some((name, value?))));
        println!("\n$ {}", line(&again));
        let (status, text) = passed_on(&mut again)?;
        let still = match self::failed(&text) {
            Some(still) => still.into_iter().flat_map(|failed| failed.tests).collect(),
            None if status.success() => Vec::new(),
            None => bail!("{} failed ({status})", line(&again)),
        };
        let (stay, pass) = failed.tests.into_iter().partition(|test| still.contains(test));
        let pass: Vec<String> = pass;
        flaky.extend(pass.into_iter().map(|name| Flaky { name, at }));
        failed.tests = stay;
        if failed.tests.is_empty() {
            return Ok(flaky);
        }
    }
    bail!("failed alone, too: {}", failed.tests.join(", "));
}

/// Runs a command; its output is shown and returned.
fn passed_on(command: &mut Command) -> Result<(ExitStatus, String)> {
    // Both streams through one pipe: which target a test belongs to follows from the order of the lines.
    let (reader, writer) = std::io::pipe().context("cannot create a pipe")?;
    let copy = writer.try_clone().context("cannot create a pipe")?;
    let mut child = command
        .stdout(writer)
        .stderr(copy)
        .spawn()
        .with_context(|| format!("cannot run {}", line(command)))?;
    // The command keeps the ends of the pipe, which then has no end.
    command.stdout(std::process::Stdio::inherit()).stderr(std::process::Stdio::inherit());
    let text = shown(reader)?;
    let status = child.wait().with_context(|| format!("cannot run {}", line(command)))?;
    Ok((status, text))
}

/// Shows lines as they come, and returns those that tell what ran and what failed.
fn shown(reader: impl Read) -> Result<String> {
    let mut reader = BufReader::new(reader);
    let (mut kept, mut bytes) = (String::new(), Vec::new());
    while reader.read_until(b'\n', &mut bytes).context("cannot read the output of tests")? > 0 {
        let mut out = std::io::stdout().lock();
        out.write_all(&bytes).context("cannot write")?;
        out.flush().context("cannot write")?;
        let line = String::from_utf8_lossy(&bytes);
        if tells(line.trim_end()) {
            let _ = writeln!(kept, "{}", line.trim_end());
        }
        bytes.clear();
    }
    Ok(kept)
}

/// Whether [`failed`] looks at a line.
fn tells(line: &str) -> bool {
    line.ends_with(" ... FAILED")
        || line.starts_with("test result: FAILED")
        || line.starts_with("error")
}

/// What failed; `None` if nothing did, or if not all of it is known to be tests.
fn failed(text: &str) -> Option<Vec<Failed>> {
    let (mut targets, mut tests) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" ... FAILED") {
            tests.push(name.strip_prefix("test ")?.to_owned());
        } else if line.starts_with("test result: FAILED") {
            let count: usize = line.split(' ').rev().zip(line.split(' ').rev().skip(1)).find_map(
                |(word, before)| (word == "failed;").then(|| before.parse().ok()).flatten(),
            )?;
            // A line of another program may have been written into that of a test.
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

/// The target that cargo says has failed: "`-p proctrace --test gate`". Of examples in documentation, nothing is repeated.
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

    const SEVERAL: &str = "test a::b ... FAILED
test result: FAILED. 24 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 109.10s
error: test failed, to rerun pass `-p proctrace --test backends`
test c ... FAILED
test d ... FAILED
test result: FAILED. 2 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.10s
error: test failed, to rerun pass `-p proctrace-wire --lib`
error: 2 targets failed:
    `-p proctrace --test backends`
    `-p proctrace-wire --lib`";

    #[test]
    fn what_failed_is_known_with_its_target() {
        let of = |target: &[&str], tests: &[&str]| Failed {
            target: target.iter().map(|&word| word.to_owned()).collect(),
            tests: tests.iter().map(|&word| word.to_owned()).collect(),
        };
        let expected = vec![of(&["--test", "backends"], &["a::b"]), of(&["--lib"], &["c", "d"])];
        assert_eq!(failed(SEVERAL), Some(expected));
    }

    #[test]
    fn what_is_no_test_is_not_repeated() {
        let compiles = SEVERAL.replace("error: 2 targets failed:", "error[E0425]: cannot find x");
        let doc = SEVERAL.replace("--lib", "--doc");
        let crashed = "error: test failed, to rerun pass `-p proctrace --test backends`";
        let cut = SEVERAL.replace("test c ... FAILED", "c ... FAILED");
        let more = SEVERAL.replace("2 failed;", "3 failed;");
        for text in ["", "error: could not compile `x`", crashed, &doc, &cut, &more, &compiles] {
            assert_eq!(failed(text), None, "{text}");
        }
    }
}
