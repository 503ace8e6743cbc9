//! Monitors a run: measures the tracer's memory, and enforces the time limit.

use std::fs;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use xtask::run::as_root;

const POLL: Duration = Duration::from_millis(50);

/// A thread that samples processes until it is told to stop.
pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Watched>,
}

/// The results of the monitoring.
pub(super) struct Watched {
    /// The sum of the peak RSS of each of the tracer's processes.
    pub(super) peak_bytes: Option<u64>,
    pub(super) timed_out: bool,
}

impl Watch {
    /// Monitors the memory of `tracers`, and kills the process groups `groups` after `limit`.
    pub(super) fn start(tracers: Vec<u32>, groups: Vec<u32>, limit: Duration) -> Self {
        let (stop, stopped) = channel::<()>();
        let deadline = Instant::now() + limit;
        let thread = std::thread::spawn(move || {
            let mut peaks = vec![None; tracers.len()];
            loop {
                for (pid, peak) in tracers.iter().zip(&mut peaks) {
                    *peak = (*peak).max(peak_bytes(real(*pid)));
                }
                match stopped.recv_timeout(POLL) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return Watched { peak_bytes: sum(&peaks), timed_out: false },
                }
                if Instant::now() > deadline {
                    for group in &groups {
                        kill_group(*group);
                    }
                    return Watched { peak_bytes: sum(&peaks), timed_out: true };
                }
            }
        });
        Self { stop, thread }
    }

    /// Stops and returns the results. To be called before the processes are reaped, so that no
    /// process that reused a pid is killed.
    pub(super) fn finish(self) -> Result<Watched> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow!("the monitoring thread panicked"))
    }
}

fn sum(peaks: &[Option<u64>]) -> Option<u64> {
    peaks.iter().copied().flatten().reduce(|one, other| one + other)
}

/// A process's peak RSS.
fn peak_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The process itself, or its child if it is sudo.
pub(super) fn real(pid: u32) -> u32 {
    let mut pid = pid;
    while fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sudo\n") {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let Some(child) =
            children.ok().and_then(|children| children.split_whitespace().next()?.parse().ok())
        else {
            break;
        };
        pid = child;
    }
    pid
}

/// Interrupts a tracer, as Ctrl-C does.
pub(super) fn interrupt(pid: u32) {
    let pid = real(pid);
    // It may have exited already.
    if kill(nix_pid(pid), Signal::SIGINT) == Err(Errno::EPERM) {
        kill_by_command(&["-INT", "--", &pid.to_string()]);
    }
}

/// Kills a process group.
pub(super) fn kill_group(group: u32) {
    // EPERM: every process of the group belongs to root.
    if killpg(nix_pid(group), Signal::SIGKILL) == Err(Errno::EPERM) {
        kill_by_command(&["-KILL", "--", &format!("-{group}")]);
    }
}

fn kill_by_command(arguments: &[&str]) {
    let _ = as_root("kill").args(arguments).stderr(Stdio::null()).status();
}

pub(super) fn nix_pid(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_takes_too_long_is_ended_and_measured_until_then() {
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let limit = Duration::from_millis(200);
        let watch = Watch::start(vec![child.id()], vec![child.id()], limit);
        assert!(!child.wait().unwrap().success());
        let watched = watch.finish().unwrap();
        assert!(watched.timed_out);
        assert!(watched.peak_bytes.is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn what_ends_by_itself_is_let_be() {
        let watch = Watch::start(Vec::new(), Vec::new(), Duration::from_secs(60));
        let watched = watch.finish().unwrap();
        assert!(!watched.timed_out);
        assert_eq!(watched.peak_bytes, None);
    }
}
