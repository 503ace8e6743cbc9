//! What the recorder waits for: its rings, its signals, the next tick.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

/// The signals a recorder handles itself; blocked while this lives, and delivered by descriptor.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

/// A signal and where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: Signal,
    /// From the terminal, whose whole foreground process group has it: the payload, too.
    pub(crate) from_terminal: bool,
}

impl Signals {
    pub(crate) fn block() -> io::Result<Self> {
        let mut handled = SigSet::empty();
        for signal in
            [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP]
        {
            handled.add(signal);
        }
        // Threads started from here on inherit the mask.
        let before = handled.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { descriptor: SignalFd::with_flags(&handled, flags)?, before })
    }

    /// The mask that the payload gets.
    pub(crate) fn mask_before(&self) -> &SigSet {
        &self.before
    }

    /// The next signal, if one is pending.
    pub(crate) fn next(&self) -> io::Result<Option<Received>> {
        Ok(self.descriptor.read_signal()?.and_then(|info: siginfo| {
            let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
            Some(Received { signal, from_terminal: info.ssi_code == libc::SI_KERNEL })
        }))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Nothing can be done if it fails, and nothing is lost: the process is about to end.
        let _ = self.before.thread_set_mask();
    }
}

/// Sleeps until a ring passes its mark, a signal comes, or the time is over.
pub(crate) fn wait(
    rings: [BorrowedFd<'_>; 2],
    signals: &Signals,
    timeout: Duration,
) -> io::Result<()> {
    let mut descriptors = [
        PollFd::new(rings[0], PollFlags::POLLIN),
        PollFd::new(rings[1], PollFlags::POLLIN),
        PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN),
    ];
    // Rounded up: waking a fraction too early would only mean another poll.
    let timeout = timeout + Duration::from_micros(999);
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    match poll(&mut descriptors, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
