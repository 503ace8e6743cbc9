//! What the recorder waits for: its rings, its signals, the next tick.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use rustix::event::{Timespec, epoll};

use crate::ring::Ring;

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

/// Wakes the recorder for what cannot wait for its next tick.
#[derive(Debug)]
pub(crate) struct Alarm {
    epoll: OwnedFd,
}

impl Alarm {
    /// Of signals, and of rings that pass their mark.
    pub(crate) fn new(signals: &Signals, rings: [&Ring; 2]) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let none = epoll::EventData::new_u64(0);
        epoll::add(&epoll, &signals.descriptor, none, epoll::EventFlags::IN)?;
        for ring in rings {
            // A ring counts as readable for as long as anything is in it. Under a storm that is
            // always, and the recorder would never sleep; the programs wake it where it has to.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, ring, none, flags)?;
        }
        Ok(Self { epoll })
    }

    /// Sleeps until then, or until the time is over.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut happened = [const { MaybeUninit::uninit() }; 3];
        match epoll::wait(&self.epoll, &mut happened, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
