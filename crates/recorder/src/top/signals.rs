//! The signals that end the view, and the end of the recorder that started it.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, getppid};

/// Events that end the view besides its user.
pub struct Ends {
    descriptor: SignalFd,
    /// The recorder, if it started the view.
    recorder: Option<Pid>,
}

impl Ends {
    /// Blocks the signals: they are read from a descriptor, so that the terminal is restored first.
    pub(super) fn new(of_record: bool) -> io::Result<Self> {
        let mut handled = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP] {
            handled.add(signal);
        }
        let mut blocked = handled;
        // A background process that restores the terminal is stopped otherwise.
        blocked.add(Signal::SIGTTOU);
        blocked.thread_set_mask()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&handled, flags)?;
        Ok(Self { descriptor, recorder: of_record.then(getppid).flatten() })
    }

    /// Returns whether to end. Under `record`, Ctrl-C is meant for the command as long as that runs.
    ///
    /// # Errors
    /// If signals cannot be read.
    pub fn is_over(&self, recording_is_over: bool) -> io::Result<bool> {
        while let Some(received) = self.descriptor.read_signal()? {
            let signal = i32::try_from(received.ssi_signo).ok().map(Signal::try_from);
            let from_keyboard = matches!(signal, Some(Ok(Signal::SIGINT | Signal::SIGQUIT)));
            if !(from_keyboard && self.recorder.is_some() && !recording_is_over) {
                return Ok(true);
            }
        }
        Ok(self.recorder.is_some() && getppid() != self.recorder)
    }
}
