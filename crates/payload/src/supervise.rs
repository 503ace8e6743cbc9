//! Starts the first process of a run and waits for all its descendants, detached processes
//! included.

use std::io::{PipeReader, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::{fs, io};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use proctrace_payload::Staged;

/// End of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As planned.
    Well,
    /// A process failed; the status is that of the first process.
    Badly(ExitStatus),
    /// This signal was received, and all processes were killed.
    Stopped(i32),
}

/// Runs the staged plan to its end.
pub(crate) fn run(staged: &Staged) -> io::Result<Ending> {
    // When stopped, clean up: kill all started processes and remove their directory.
    let mut stops = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        stops.add(signal);
    }
    stops.thread_block()?;
    let signals = SignalFd::with_flags(&stops, SfdFlags::SFD_CLOEXEC)?;

    // Every process of the run, detached or not, inherits the write end of a pipe: EOF at the read
    // end means that all of them have ended.
    let (all, held) = pipe()?;
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty())?;
    let mut command = Command::new(&staged.path);
    command.arg0(&staged.name).args(&staged.arguments).current_dir(&staged.directory);
    command.env_clear().envs(staged.environment.iter().map(|(name, value)| (name, value)));
    let mut first = command.spawn()?;
    let number = held.as_raw_fd();
    drop(held);

    let stopped = wait_for_all(&all, &signals, number)?;
    let status = first.wait()?;
    Ok(match stopped {
        Some(signal) => Ending::Stopped(signal),
        None if status.success() => Ending::Well,
        None => match status.signal() {
            // Ctrl-C signals the whole foreground process group of the terminal.
            Some(signal @ (2 | 15)) => Ending::Stopped(signal),
            _ => Ending::Badly(status),
        },
    })
}

/// Returns the signal that stopped it, if any.
fn wait_for_all(all: &PipeReader, signals: &SignalFd, number: i32) -> io::Result<Option<i32>> {
    let mut stopped = None;
    loop {
        let mut ready = [
            PollFd::new(all.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        // New processes may be created while others are being killed.
        let patience = if stopped.is_some() { PollTimeout::from(20_u8) } else { PollTimeout::NONE };
        match poll(&mut ready, patience) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_set = |fd: &PollFd<'_>| fd.revents().is_some_and(|flags| !flags.is_empty());
        if is_set(&ready[0]) {
            return Ok(stopped);
        }
        if is_set(&ready[1])
            && let Some(signal) = signals.read_signal()?
        {
            stopped = i32::try_from(signal.ssi_signo).ok();
        }
        if stopped.is_some() {
            kill_holders(all, number)?;
        }
    }
}

/// Kills all processes that hold the other end of this pipe, which each process of the run has at
/// this descriptor number, unless it closed it.
fn kill_holders(all: &PipeReader, number: i32) -> io::Result<()> {
    let ours = fs::read_link(Path::new("/proc/self/fd").join(all.as_raw_fd().to_string()))?;
    let me = std::process::id();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let held = fs::read_link(entry.path().join("fd").join(number.to_string()));
        if pid != me && held.is_ok_and(|held| held == ours) {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }
    Ok(())
}
