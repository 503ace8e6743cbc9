//! Reference event counts of third-party payloads by strace, which stops the payload at each event
//! and so cannot miss any.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use xtask::run::{exists, target_dir};

use super::counts::Counts;
use super::site::plain;
use super::strace;

/// The events of a command; unknown without strace.
pub(super) fn count(command: &[OsString]) -> Result<Counts> {
    if !exists("strace") {
        return Ok(Counts::default());
    }
    let log = target_dir()?.join("bench").join("truth.strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-e", strace::CALLS, "-o"]).arg(&log).args(command);
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = plain(&mut strace).status().context("cannot run strace")?;
    ensure!(status.success(), "the payload failed under strace ({status})");
    let counts = strace::count_file(&log)?.counts;
    std::fs::remove_file(log).context("cannot remove a log")?;
    // The process started by the stopwatch is an additional fork.
    Ok(Counts { forks: counts.forks.map(|forks| forks + 1), ..counts })
}

/// The failed opens of a command that repeats the same work n times: those of the first repetition
/// and the increment per further one, since counting all would take strace minutes.
pub(super) fn failed_opens_of_repetition(
    times: &dyn Fn(u64) -> Result<Vec<OsString>>,
    n: u64,
) -> Result<Option<u64>> {
    let [one, two] = [count(&times(1)?)?, count(&times(2)?)?];
    Ok(extrapolated(one.failed_opens, two.failed_opens, n))
}

fn extrapolated(one: Option<u64>, two: Option<u64>, n: u64) -> Option<u64> {
    let (one, two) = (one?, two?);
    one.checked_add(two.checked_sub(one)?.checked_mul(n.checked_sub(1)?)?)
}

#[cfg(test)]
mod tests {
    use super::extrapolated;

    #[test]
    fn each_time_adds_as_much() {
        assert_eq!(extrapolated(Some(110), Some(210), 300), Some(110 + 299 * 100));
        assert_eq!(extrapolated(None, Some(1), 3), None);
        assert_eq!(extrapolated(Some(2), Some(1), 3), None);
    }
}
