//! Keeps the programs of all recordings attached, in a process of its own that outlives the broker.
//!
//! Recorders must not have the descriptors of programs and links. Whoever has a program's can attach it again any
//! number of times (BPF_RAW_TRACEPOINT_OPEN takes no rights), and whoever has a link's can pin it, or pass it on, and
//! so keep programs attached that nobody counts any more. So this process has them, and closes them when the recorder
//! says so, when its connection is closed, or when it ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctrace_probe::Attachments;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::{Deserialize, Serialize};

use crate::error::BrokerError;
use crate::passing;
use crate::protocol::{DESCRIPTORS_MAX, Statistics, TURN_BYTES_MAX, Turn};
use crate::sandbox::{self, Role};

/// Bytes of a packet from the broker: names of programs.
const TRUST_BYTES_MAX: usize = 16 << 10;

/// Descriptors beside those that keep programs attached: the connection and the process.
const OTHERS: usize = 2;

/// Pause after a recorder's question, so that one that does nothing but ask takes little of a CPU.
const REST: Duration = Duration::from_millis(5);

/// The process, as the broker refers to it.
#[derive(Debug)]
pub(crate) struct Keeper {
    socket: OwnedFd,
}

/// The descriptors that come with it, in this order: connection, process, programs, links, tracepoints.
#[derive(Debug, Serialize, Deserialize)]
struct Trust {
    programs: Vec<String>,
    links: usize,
    tracepoints: usize,
}

impl Keeper {
    /// Starts it; there must be no other threads yet.
    ///
    /// # Errors
    /// When there can be no further process.
    pub(crate) fn start() -> Result<Self, BrokerError> {
        let kind = SocketType::SEQPACKET;
        let (here, there) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
            .map_err(BrokerError::system("create a pair of sockets"))?;
        // SAFETY: there are no other threads, so the child may do whatever this process may.
        match unsafe { libc::fork() } {
            0 => {
                drop(here);
                let run = std::panic::AssertUnwindSafe(|| run(there));
                let code = i32::from(!matches!(std::panic::catch_unwind(run), Ok(Ok(()))));
                // SAFETY: ends the child without running any of the parent's code.
                unsafe { libc::_exit(code) }
            }
            -1 => Err(BrokerError::system("start the process that keeps programs")(
                io::Error::last_os_error(),
            )),
            _ => Ok(Self { socket: here }),
        }
    }

    /// True if this many programs, links and tracepoints can be handed over.
    pub(crate) fn can_keep(attached: &Attachments) -> bool {
        let kept = attached.programs.len() + attached.links.len() + attached.tracepoints.len();
        kept + OTHERS <= DESCRIPTORS_MAX
    }

    /// Hands over what keeps the programs of a recording attached.
    ///
    /// # Errors
    /// When the process has ended.
    pub(crate) fn keep(
        &self,
        connection: BorrowedFd<'_>,
        process: BorrowedFd<'_>,
        attached: &Attachments,
    ) -> io::Result<()> {
        let trust = Trust {
            programs: attached.programs.iter().map(|(name, _)| name.clone()).collect(),
            links: attached.links.len(),
            tracepoints: attached.tracepoints.len(),
        };
        let programs = attached.programs.iter().map(|(_, program)| program);
        let kept = programs.chain(&attached.links).chain(&attached.tracepoints).map(AsFd::as_fd);
        let descriptors: Vec<_> = [connection, process].into_iter().chain(kept).collect();
        passing::send(self.socket.as_fd(), &serde_json::to_vec(&trust)?, &descriptors)
    }

    /// Becomes ready with POLLHUP when the process has ended.
    pub(crate) fn end(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// True if the process has ended: then nothing can be recorded any more.
    pub(crate) fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::HUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::HUP)
    }
}

/// A recording.
struct Kept {
    /// Closed before the connection: the programs rely on the recorder's credentials, which the connection refers to.
    attached: Option<Attachments>,
    connection: Arc<OwnedFd>,
    process: OwnedFd,
    rests_until: Option<Instant>,
}

/// The process: until the broker has ended, and all recordings.
fn run(broker: OwnedFd) -> Result<(), BrokerError> {
    leave(&broker)?;
    sandbox::enter(Role::Keeper)?;
    let mut broker = Some(broker);
    let mut recordings: Vec<Kept> = Vec::new();
    while broker.is_some() || !recordings.is_empty() {
        let now = Instant::now();
        for kept in &mut recordings {
            kept.rests_until = kept.rests_until.filter(|until| *until > now);
        }
        let ready = wait(broker.as_ref(), &recordings, now)?;
        if let (Some(socket), true) = (&broker, ready.broker) {
            match receive(socket) {
                Ok(Some(kept)) => recordings.push(kept),
                Ok(None) => broker = None,
                // Not from our broker: such a packet keeps nothing.
                Err(_) => {}
            }
        }
        // Those that came just now have not been waited for.
        let mut at = 0;
        recordings.retain_mut(|kept| {
            let (asks, ended) = ready.recordings.get(at).copied().unwrap_or((false, false));
            at += 1;
            let goes_on = !ended && (!asks || kept.answer().is_ok());
            if !goes_on {
                kept.detach();
            }
            goes_on
        });
    }
    Ok(())
}

/// Keeps none of the broker's descriptors, its terminal and its signals.
fn leave(broker: &OwnedFd) -> Result<(), BrokerError> {
    use std::os::fd::AsRawFd;
    #[expect(clippy::disallowed_methods, reason = "it is a device")]
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(BrokerError::system("open /dev/null"))?;
    let own = broker.as_raw_fd();
    // SAFETY: these calls touch no memory but a constant string, and the descriptors that are closed belong to values
    // of the parent, which are never used or dropped in this process.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"proctrace-keep".as_ptr());
        for standard in 0..3 {
            libc::dup2(null.as_raw_fd(), standard);
        }
        libc::syscall(libc::SYS_close_range, 3, own - 1, 0);
        libc::syscall(libc::SYS_close_range, own + 1, libc::c_uint::MAX, 0);
    }
    // It is closed already.
    std::mem::forget(null);
    Ok(())
}

/// The connections that can be served now.
struct Ready {
    broker: bool,
    /// For each recording, two flags: true if it asks something, and if its recorder has ended.
    recordings: Vec<(bool, bool)>,
}

fn wait(broker: Option<&OwnedFd>, recordings: &[Kept], now: Instant) -> Result<Ready, BrokerError> {
    let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(1 + 2 * recordings.len());
    polled.extend(broker.map(|socket| PollFd::new(socket, PollFlags::IN)));
    let first = polled.len();
    for kept in recordings {
        let asks = if kept.rests_until.is_some() { PollFlags::empty() } else { PollFlags::IN };
        // POLLHUP and POLLERR are always reported.
        polled.push(PollFd::new(&*kept.connection, asks));
        polled.push(PollFd::new(&kept.process, PollFlags::IN));
    }
    let rest = recordings.iter().filter_map(|kept| kept.rests_until).min();
    let rest = rest.map(|until| Timespec {
        tv_sec: 0,
        tv_nsec: until.saturating_duration_since(now).subsec_nanos().into(),
    });
    match poll(&mut polled, rest.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(BrokerError::system("wait")(error)),
    }
    let is_ready = |polled: &PollFd<'_>| !polled.revents().is_empty();
    let ended = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    let recordings = polled[first..].chunks_exact(2).map(|pair| {
        let asks = pair[0].revents().contains(PollFlags::IN);
        (asks, pair[0].revents().intersects(ended) || is_ready(&pair[1]))
    });
    let recordings = recordings.collect();
    Ok(Ready { broker: first == 1 && is_ready(&polled[0]), recordings })
}

/// Receives the recording that the broker hands over; none at its end.
fn receive(broker: &OwnedFd) -> io::Result<Option<Kept>> {
    let (text, descriptors) = passing::receive(broker.as_fd(), TRUST_BYTES_MAX)?;
    if text.is_empty() {
        return Ok(None);
    }
    let trust: Trust = serde_json::from_slice(&text)?;
    let mut descriptors = descriptors.into_iter();
    let missing = || io::Error::other("fewer descriptors than it says");
    let connection = Arc::new(descriptors.next().ok_or_else(missing)?);
    let process = descriptors.next().ok_or_else(missing)?;
    let attached = Attachments {
        programs: trust.programs.into_iter().zip(descriptors.by_ref()).collect(),
        links: descriptors.by_ref().take(trust.links).collect(),
        tracepoints: descriptors.take(trust.tracepoints).collect(),
    };
    Ok(Some(Kept { attached: Some(attached), connection, process, rests_until: None }))
}

impl Kept {
    /// Answers one question of the recorder.
    ///
    /// # Errors
    /// When it is at its end, asks for nothing that there is, or does not take answers.
    fn answer(&mut self) -> io::Result<()> {
        let (text, _) = passing::receive(self.connection.as_fd(), TURN_BYTES_MAX)?;
        let turn: Turn = serde_json::from_slice(&text)?;
        let statistics = match (&self.attached, turn) {
            (Some(attached), Turn::Statistics | Turn::Detach) => attached.known_statistics(),
            (None, _) | (_, Turn::Taken) => return Err(io::Error::other("nothing to ask")),
        };
        if turn == Turn::Detach {
            self.detach();
        }
        let statistics: Vec<Statistics> = statistics.into_iter().map(Into::into).collect();
        passing::send_now(self.connection.as_fd(), &serde_json::to_vec(&statistics)?)?;
        self.rests_until = Some(Instant::now() + REST);
        Ok(())
    }

    /// Detaches the programs; those of classic tracepoints in the background, because the kernel waits for grace
    /// periods for each: a second for all.
    fn detach(&mut self) {
        let Some(Attachments { programs, links, tracepoints }) = self.attached.take() else {
            return;
        };
        drop(links);
        let connection = Arc::clone(&self.connection);
        let thread = std::thread::Builder::new().name("detach".to_owned());
        // If there is no thread, they are closed here, with what it would have done.
        let _ = thread.spawn(move || {
            drop(tracepoints);
            drop(programs);
            drop(connection);
        });
    }
}
