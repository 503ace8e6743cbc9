//! The signals handled by a recorder.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

/// The signals handled by a recorder: blocked during the lifetime of this value, and delivered by
/// descriptor.
///
/// Start the recorder's threads after this, so that they inherit the blocked signals. A thread
/// started earlier would compete for SIGCHLD and could discard it.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

/// A signal and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: Signal,
    /// Whether it is from the terminal, which sends it to the whole foreground process group,
    /// including the payload.
    pub(crate) from_terminal: bool,
}

impl Signals {
    /// Blocks them for this thread, and for threads started later.
    ///
    /// # Errors
    /// When the descriptor cannot be created.
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

    /// The signal mask for the payload.
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
        // A failure cannot be handled and does no harm: the process is about to end.
        let _ = self.before.thread_set_mask();
    }
}
