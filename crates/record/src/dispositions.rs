//! Signals that the recorder was started with as ignored: the command gets them back like that.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;

/// True if SIGPIPE was ignored when this program was started. Rust's runtime ignores it before `main`, so that only what
/// runs earlier can find out. Written once, before there are other threads.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Entry of a section whose functions run before the runtime's own (System V ABI, initialization functions).
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_PIPE: extern "C" fn() = note_pipe;

extern "C" fn note_pipe() {
    PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// True if this process ignores a signal.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, sigaction(2) only writes the present one to a struct that outlives the call.
    let got = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value, and the kernel may have filled it.
    got == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Signals that a command is to ignore although the recorder does not, or the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dispositions {
    pub(crate) ignores_pipe: bool,
    /// A recorder that ignores SIGCHLD could not learn how its command has ended: wait(2).
    pub(crate) ignores_children: bool,
}

impl Dispositions {
    /// Dispositions with which this process was started; it must still have them, except that of
    /// SIGPIPE.
    pub(crate) fn at_start() -> Self {
        Self {
            ignores_pipe: PIPE_WAS_IGNORED.load(Ordering::Relaxed),
            ignores_children: is_ignored(libc::SIGCHLD),
        }
    }

    /// Makes them those of this process. Only system calls: a forked child may use it.
    pub(crate) fn restore(self) {
        dispose(Signal::SIGPIPE, self.ignores_pipe);
        dispose(Signal::SIGCHLD, self.ignores_children);
    }
}

/// Ignores a signal, or does with it what is usual.
pub(crate) fn dispose(signal: Signal, ignore: bool) {
    let disposition = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: signal(2) with one of two constants.
    unsafe { libc::signal(signal as i32, disposition) };
}
