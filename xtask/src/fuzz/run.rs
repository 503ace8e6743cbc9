//! Runs one target and collects the results.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{Target, is_empty, plain, regressions};

/// Limits of a target: total memory, one allocation, and seconds per input. A parser that exceeds
/// them for an input of 64 KiB is as faulty as one that panics.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-malloc_limit_mb=512", "-timeout=20"];

/// Maximum seconds for minimising a crash.
const MINIMISE: &str = "-max_total_time=30";

/// Number of last output lines to show when a target fails.
const SHOWN_LINES: usize = 60;

/// Number of last output lines that contain the statistics, which a dictionary may follow.
const KEPT_LINES: usize = 1000;

/// The result of a run.
pub(super) struct Done {
    pub(super) target: &'static str,
    inputs: u64,
    per_second: u64,
    peak_rss_mib: u64,
    /// Coverage counters reached, as reported by libFuzzer.
    coverage: u64,
    corpus: u64,
    /// Path of the kept failing input.
    pub(super) crash: Option<PathBuf>,
}

impl Done {
    pub(super) fn heading() -> &'static str {
        "target             inputs   per s   peak RSS   edges  corpus  failure"
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crash = self.crash.as_deref().map_or("none".into(), Path::to_string_lossy);
        write!(
            f,
            "{:<15}{:>10}{:>8}{:>7} MiB{:>8}{:>8}  {crash}",
            self.target,
            self.inputs,
            self.per_second,
            self.peak_rss_mib,
            self.coverage,
            self.corpus
        )
    }
}

/// Runs a target, and keeps the smallest failing input with the regressions.
pub(super) fn fuzz(target: &Target, program: &Path, corpus: &Path, seconds: u32) -> Result<Done> {
    println!("{}: {seconds} s", target.name);
    let artifacts = corpus.with_extension("artifacts");
    let _ = fs::remove_dir_all(&artifacts);
    fs::create_dir_all(&artifacts).context("cannot create a directory for crashes")?;
    let mut command = sanitized(program);
    command
        .args(LIMITS)
        .args([format!("-max_len={}", target.most_bytes), format!("-max_total_time={seconds}")])
        .args(["-print_final_stats=1".to_owned(), prefix(&artifacts)])
        .arg(corpus);
    let known = regressions(target.name);
    if !is_empty(&known) {
        command.arg(known);
    }
    let (succeeded, lines) = watch(&mut command)?;
    let mut done = done(target.name, &lines);
    if !succeeded {
        let shown = lines.len().saturating_sub(SHOWN_LINES);
        lines.iter().skip(shown).for_each(|line| println!("  {line}"));
        let found = fs::read_dir(&artifacts).context("cannot read the directory of crashes")?;
        let Some(crash) = found.flatten().map(|entry| entry.path()).next() else {
            bail!("{} failed without saving an input", target.name);
        };
        done.crash = Some(keep(target, program, &crash)?);
    }
    Ok(done)
}

fn sanitized(program: &Path) -> Command {
    let mut command = plain(program);
    // Freed memory quarantined to detect use after free counts against the limit.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0:quarantine_size_mb=64");
    command
}

fn prefix(directory: &Path) -> String {
    format!("-artifact_prefix={}/", directory.display())
}

/// Runs to completion; returns whether it succeeded, and the last output lines.
fn watch(command: &mut Command) -> Result<(bool, VecDeque<String>)> {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let mut lines = VecDeque::new();
    for line in BufReader::new(child.stderr.take().context("stderr is not piped")?).split(b'\n') {
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line?).into_owned());
    }
    Ok((child.wait()?.success(), lines))
}

/// Minimises a crash, and puts it where tests find it.
fn keep(target: &Target, program: &Path, crash: &Path) -> Result<PathBuf> {
    let smaller = crash.with_extension("smaller");
    let mut command = sanitized(program);
    command.args(LIMITS).args(["-minimize_crash=1", MINIMISE]);
    command.arg(format!("-exact_artifact_path={}", smaller.display())).arg(crash);
    // It exits with a failure, as expected.
    watch(&mut command)?;
    let smallest = if smaller.is_file() { &smaller } else { crash };
    let directory = regressions(target.name);
    fs::create_dir_all(&directory)?;
    let name = crash.file_name().context("a crash file has no name")?;
    let kept = directory.join(name);
    fs::copy(smallest, &kept).context("cannot save the crash")?;
    Ok(kept)
}

/// Parses the statistics that libFuzzer prints at its end.
fn done(target: &'static str, lines: &VecDeque<String>) -> Done {
    let stat = |name: &str| {
        let found = lines.iter().rev().find_map(|line| line.strip_prefix(name));
        found.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    // "#123 DONE cov: 1 ft: 2 corp: 3/4b …"
    let word_after = |name: &str| {
        lines.iter().rev().filter(|line| line.starts_with('#')).find_map(|line| {
            let mut words = line.split_whitespace();
            words.find(|word| *word == name)?;
            words.next()?.split('/').next()?.parse().ok()
        })
    };
    Done {
        target,
        inputs: stat("stat::number_of_executed_units:"),
        per_second: stat("stat::average_exec_per_sec:"),
        peak_rss_mib: stat("stat::peak_rss_mb:"),
        coverage: word_after("cov:").unwrap_or(0),
        corpus: word_after("corp:").unwrap_or(0),
        crash: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_is_understood() {
        let lines = [
            "#4\tNEW    cov: 7 ft: 8 corp: 2/2b lim: 4 exec/s: 0 rss: 40Mb",
            "#8192\tDONE   cov: 312 ft: 1020 corp: 57/4096b lim: 8192 exec/s: 2730 rss: 93Mb",
            "stat::number_of_executed_units: 8192",
            "stat::average_exec_per_sec:     2730",
            "stat::peak_rss_mb:              93",
        ];
        let done = done("rules", &lines.map(str::to_owned).into());
        assert_eq!((done.inputs, done.per_second, done.peak_rss_mib), (8192, 2730, 93));
        assert_eq!((done.coverage, done.corpus), (312, 57));
        assert!(done.to_string().contains("rules") && done.to_string().ends_with("none"));
    }
}
