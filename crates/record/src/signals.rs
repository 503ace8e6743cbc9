//! The signals that a recorder handles itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

/// The signals a recorder handles itself; blocked while this lives, and delivered by descriptor.
///
/// Threads of the recorder are to be started after this: they inherit the blocked signals. One
/// that was started before would compete for SIGCHLD and could throw it away.
#[derive(Debug)]
pub struct Signals {
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
    /// Blocks them for this thread, and for those that it starts.
    ///
    /// # Errors
    /// When there is no descriptor for them.
    pub fn block() -> io::Result<Self> {
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

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Nothing can be done if it fails, and nothing is lost: the process is about to end.
        let _ = self.before.thread_set_mask();
    }
}
