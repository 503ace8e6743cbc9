//! The signals handled by a recorder.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

use crate::dispositions::{Dispositions, dispose, is_ignored};

/// The signals handled by a recorder: blocked during the lifetime of this value, and delivered by
/// descriptor.
///
/// Start the recorder's threads after this, so that they inherit the blocked signals. A thread
/// started earlier would compete for SIGCHLD and could discard it.
///
/// Those with which the recorder was started as ignored stay ignored, for it and for the command: so nohup(1) works.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: Before,
}

/// What the command gets back.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) mask: SigSet,
    pub(crate) dispositions: Dispositions,
}

/// Signals that are passed on to the command. Batch systems use SIGUSR1 and SIGUSR2 to ask for a checkpoint.
const PASSED_ON: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

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
        let dispositions = Dispositions::at_start();
        if dispositions.ignores_children {
            dispose(Signal::SIGCHLD, false);
        }
        let mut handled = SigSet::empty();
        handled.add(Signal::SIGCHLD);
        // One that is blocked arrives even if it is ignored.
        PASSED_ON.into_iter().filter(|it| !is_ignored(*it)).for_each(|it| handled.add(it));
        // A limit of file sizes that is the command's must not end its recorder: write(2) fails instead.
        let mut blocked = handled;
        blocked.add(Signal::SIGXFSZ);
        // Threads started from here on inherit the mask.
        let mask = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&handled, flags)?;
        Ok(Self { descriptor, before: Before { mask, dispositions } })
    }

    /// What the payload gets back.
    pub(crate) fn before(&self) -> &Before {
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

/// Takes back a SIGXFSZ that is pending for this thread, and so would end the process when it is no longer blocked.
pub fn forget_file_limit() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    // Without a descriptor, the signal does what it would have done.
    if let Ok(descriptor) = SignalFd::with_flags(&signals, flags) {
        let _ = descriptor.read_signal();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        forget_file_limit();
        // A failure cannot be handled and does no harm: the process is about to end.
        let _ = self.before.mask.thread_set_mask();
        dispose(Signal::SIGCHLD, self.before.dispositions.ignores_children);
    }
}
