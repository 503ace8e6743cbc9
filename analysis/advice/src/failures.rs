//! `failed-again`: a command that failed, and was tried again with the same arguments.

use proctrace_classify::fast::FastMap;
use proctrace_findings::{Advice, counted};

use super::Found;
use super::counter::is_of_tool;
use super::evidence::Evidence;
use super::names::called;
use super::rules::AdviceRules;

/// Minimum failures of a habit.
const FAILURES_MIN: usize = 3;
/// Commands whose exit status is an answer, not a failure.
const ANSWERS: [&str; 37] = [
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "rg",
    "test",
    "[",
    "diff",
    "cmp",
    "expr",
    "kill",
    "false",
    "which",
    "whereis",
    "pgrep",
    "pidof",
    "ps",
    "git",
    "hg",
    "getent",
    "id",
    "pkg-config",
    "pkgconf",
    "dpkg",
    "dpkg-query",
    "rpm",
    "apk",
    "systemctl",
    "mountpoint",
    "findmnt",
    "lsof",
    "fuser",
    "ping",
    "nc",
    "tput",
    "locale",
    "podman",
];
/// Options with which the exit status of any command is the answer.
const QUESTIONS: [&str; 9] = [
    "--exists",
    "--check",
    "--quiet",
    "-q",
    "--version",
    "--help",
    "--dry-run",
    "--list",
    "is-active",
];
/// Programs that try what works: what fails below them tells them something.
const PROBERS: [&str; 6] = ["configure", "cmake", "meson", "scons", "waf", "ldconfig"];

/// Per command line, directory and environment: all failures.
///
/// Wall and CPU: as [`Evidence::without`] for all of them; low is 0 if the same command succeeds later.
pub(super) fn find(evidence: &Evidence<'_>, rules: &AdviceRules) -> Vec<Found> {
    let calls = evidence.recording.calls().unwrap_or_default();
    let mut groups: FastMap<u64, Vec<u32>> = FastMap::default();
    for (process, it) in evidence.processes() {
        let failed = it.status().is_some_and(is_failure);
        let call = it.run().and_then(|run| calls.get(run as usize)).filter(|call| **call != 0);
        if let (true, true, Some(call)) = (failed, it.execs > 0, call) {
            groups.entry(*call).or_default().push(process);
        }
    }
    let mut found: Vec<Found> = groups
        .into_values()
        .filter(|runs| runs.len() >= FAILURES_MIN)
        .filter_map(|runs| advice(evidence, rules, &runs))
        .collect();
    found.sort_by(|one, other| one.advice.evidence.cmp(&other.advice.evidence));
    found
}

/// Returns whether the same command, in the same directory and environment, succeeds after one of these failures.
fn works_later(evidence: &Evidence<'_>, failures: &[u32]) -> bool {
    let calls = evidence.recording.calls().unwrap_or_default();
    let call = |process: u32| {
        evidence.process(process).run().and_then(|run| calls.get(run as usize)).copied()
    };
    let Some(first) = failures.first().copied() else { return false };
    let begun_ns = evidence.process(first).born_ns;
    evidence.processes().any(|(process, it)| {
        it.status() == Some(0) && it.born_ns >= begun_ns && call(process) == call(first)
    })
}

/// A status of wait(2) other than success, and other than the signals by which others end a process: HUP, INT,
/// KILL, PIPE, TERM.
pub(super) fn is_failure(status: u32) -> bool {
    status != 0 && ![1, 2, 9, 13, 15].contains(&(status & 0x7f))
}

fn advice(evidence: &Evidence<'_>, rules: &AdviceRules, runs: &[u32]) -> Option<Found> {
    let first = *runs.first()?;
    let (command, template) = (evidence.command(first)?, evidence.own_template(first)?);
    let asks = |word: &str| QUESTIONS.contains(&word);
    let by = evidence.spawner(first).and_then(|by| evidence.recording.templates().get(by as usize));
    let is_probe = by.is_some_and(|by| PROBERS.contains(&called(by)));
    if ANSWERS.contains(&command)
        || is_probe
        || by.is_some_and(|by| is_of_tool(by))
        || evidence.recording.line_of(evidence.process(first)).split(' ').any(asks)
        || rules.has_effects(command)
    {
        return None;
    }
    let mut removal = evidence.without(runs)?;
    // Who tries until it works may have waited for something.
    if works_later(evidence, runs) {
        (removal.wall.low, removal.cpu.low) = (0, 0);
    }
    let status = evidence.process(first).status().unwrap_or(0);
    let how = match status & 0x7f {
        0 => format!("exits with {}", status >> 8 & 0xff),
        signal => format!("is killed by signal {signal}"),
    };
    let advice = Advice {
        kind: "failed-again",
        what: format!("Find out why `{}` fails, or do not try it again", evidence.line(first)),
        evidence: format!(
            "{} of `{}` with the same arguments: it {how}{}",
            counted(runs.len() as u64, "failure", "failures"),
            evidence.line(first),
            evidence.started_by(first)
        ),
        commands: vec![command.to_owned()],
        method: evidence.method().into(),
        risk: "one of the attempts may be needed".into(),
        check: "record again: it does not fail any more".into(),
        ..Advice::default()
    };
    Some(Found::without(removal, advice).keyed(template))
}
