//! A second pair of eyes on a run: how much memory the tracer takes, and that it comes to an end.

use std::fs;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::run::{as_root, is_root};

const POLL: Duration = Duration::from_millis(50);

/// A thread that looks at processes until it is told to stop.
pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Watched>,
}

/// What it saw.
pub(super) struct Watched {
    /// The most memory that the tracer's processes had, one by one added up.
    pub(super) peak_bytes: Option<u64>,
    pub(super) timed_out: bool,
}

impl Watch {
    /// Watches the memory of `tracers`, and kills the process groups `groups` after `limit`.
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

    /// What was seen until now. To be called before the processes are reaped, so that none is
    /// killed whose number is another's by then.
    pub(super) fn finish(self) -> Result<Watched> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow!("the watching thread panicked"))
    }
}

fn sum(peaks: &[Option<u64>]) -> Option<u64> {
    peaks.iter().copied().flatten().reduce(|one, other| one + other)
}

/// The peak of a process's resident memory.
fn peak_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The process itself, or what runs under it if it is sudo.
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

/// Tells a tracer to end, as Ctrl-C does.
pub(super) fn interrupt(pid: u32) {
    let pid = real(pid);
    if is_root() {
        // It may have ended by itself.
        let _ = kill(nix_pid(pid), Signal::SIGINT);
    } else {
        kill_by_command(&["-INT", "--", &pid.to_string()]);
    }
}

/// Ends a process group, whatever it does.
pub(super) fn kill_group(group: u32) {
    if is_root() {
        let _ = killpg(nix_pid(group), Signal::SIGKILL);
    } else {
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
        let began = Instant::now();
        let limit = Duration::from_millis(200);
        let watch = Watch::start(vec![child.id()], vec![child.id()], limit);
        assert!(!child.wait().unwrap().success());
        let watched = watch.finish().unwrap();
        assert!(watched.timed_out && began.elapsed() < Duration::from_secs(30));
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
