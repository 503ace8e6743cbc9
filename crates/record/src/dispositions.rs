//! Signals that the recorder was started with as ignored, and standard streams that were closed: the command gets them
//! back like that.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use nix::sys::signal::Signal;

/// True if SIGPIPE was ignored when this program was started. Rust's runtime ignores it before `main`, so that only what
/// runs earlier can find out. Written once, before there are other threads.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Standard streams that were closed when this program was started, one bit each. Rust's runtime opens /dev/null in their
/// place before `main`, so that no file gets their number.
static STREAMS_CLOSED: AtomicU8 = AtomicU8::new(0);

/// Descriptors of the standard streams.
const STREAMS: [libc::c_int; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];

/// Entry of a section whose functions run before the runtime's own (System V ABI, initialization functions).
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    // SAFETY: it reads the flags of a descriptor; of one that is closed it fails (EBADF).
    let is_closed = |stream: libc::c_int| unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0;
    let closed = STREAMS.into_iter().filter(|stream| is_closed(*stream));
    STREAMS_CLOSED.store(closed.fold(0, |all, stream| all | 1 << stream), Ordering::Relaxed);
}

/// True if this process ignores a signal.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, sigaction(2) only writes the present one to a struct that outlives the call.
    let got = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value, and the kernel may have filled it.
    got == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Signals that a command is to ignore although the recorder does not, or the other way round, and streams that it is not
/// to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dispositions {
    pub(crate) ignores_pipe: bool,
    /// A recorder that ignores SIGCHLD could not learn how its command has ended: wait(2).
    pub(crate) ignores_children: bool,
    /// Standard streams that were closed, one bit each.
    streams_closed: u8,
}

impl Dispositions {
    /// Dispositions with which this process was started; it must still have them, except that of
    /// SIGPIPE.
    pub(crate) fn at_start() -> Self {
        Self {
            ignores_pipe: PIPE_WAS_IGNORED.load(Ordering::Relaxed),
            ignores_children: is_ignored(libc::SIGCHLD),
            streams_closed: STREAMS_CLOSED.load(Ordering::Relaxed),
        }
    }

    /// Makes them those of this process. Only system calls: a forked child may use it.
    pub(crate) fn restore(self) {
        dispose(Signal::SIGPIPE, self.ignores_pipe);
        dispose(Signal::SIGCHLD, self.ignores_children);
        for stream in STREAMS.into_iter().filter(|stream| self.streams_closed & 1 << stream != 0) {
            // SAFETY: it closes what the runtime opened there, which nobody else uses in a child that is to run a command.
            unsafe { libc::close(stream) };
        }
    }
}

/// Ignores a signal, or does with it what is usual.
pub(crate) fn dispose(signal: Signal, ignore: bool) {
    let disposition = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: signal(2) with one of two constants.
    unsafe { libc::signal(signal as i32, disposition) };
}
