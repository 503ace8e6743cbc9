//! Wake-ups of the recorder before its next tick: signals, and the source.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use crate::signals::Signals;
use crate::source::Waker;

/// Wakes the recorder for events that cannot wait for its next tick.
#[derive(Debug)]
pub(crate) struct Alarm {
    epoll: OwnedFd,
}

impl Alarm {
    /// Wakes for signals and for the source's wakers.
    pub(crate) fn new(signals: &Signals, wakers: &[Waker<'_>]) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let none = epoll::EventData::new_u64(0);
        epoll::add(&epoll, signals, none, epoll::EventFlags::IN)?;
        for waker in wakers {
            let mut flags = epoll::EventFlags::IN;
            flags.set(epoll::EventFlags::ET, waker.edge_triggered);
            epoll::add(&epoll, waker.descriptor, none, flags)?;
        }
        Ok(Self { epoll })
    }

    /// Sleeps until a wake-up, at most for `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut happened = [const { MaybeUninit::uninit() }; 3];
        match epoll::wait(&self.epoll, &mut happened, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
