//! The signals handled by a recorder.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::unistd::Pid;

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

/// Signal mask and dispositions that the command gets back.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) mask: SigSet,
    pub(crate) dispositions: Dispositions,
}

/// Signals that keep their meaning for the recorder. SIGKILL and SIGSTOP cannot be passed on; SIGCHLD is about the
/// command; those of job control stop and continue a whole process group; the others are errors of the recorder's own.
const KEPT: [libc::c_int; 11] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSYS,
];

/// Signals that are passed on to the command: all that can be. Batch systems let their users choose by which one a job is
/// asked for a checkpoint (`sbatch --signal`, `scancel -s`, HTCondor's KillSig).
fn passed_on() -> impl Iterator<Item = libc::c_int> {
    let standard = (1..=31).filter(|number| !KEPT.contains(number));
    // The C library keeps two of the real-time signals for itself.
    standard.chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// A signal and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) number: libc::c_int,
    /// True if it is from the terminal, which sends it to the whole foreground process group, including the
    /// payload, or about the recorder's own limits, timers and files.
    pub(crate) is_kernels: bool,
    /// The value with which it was queued: sigqueue(3).
    value: Option<u64>,
}

impl Received {
    /// Sends the same signal to a process.
    pub(crate) fn pass_on(self, to: Pid) {
        // SAFETY: a struct of integers, pointers and unions of them; zero is valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        match self.value {
            Some(value) => {
                info.si_signo = self.number;
                info.si_code = libc::SI_QUEUE;
                // The fields after si_code, at least 24 bytes: pid, uid, value (sigaction(2)).
                let fields = QueuedInfo {
                    number: self.number,
                    error: 0,
                    code: libc::SI_QUEUE,
                    pad: 0,
                    pid: i32::try_from(std::process::id()).unwrap_or(0),
                    uid: nix::unistd::getuid().as_raw(),
                    value,
                };
                // SAFETY: both are plain data, and the struct is the smaller of the two.
                unsafe {
                    std::ptr::from_mut(&mut info).cast::<QueuedInfo>().write(fields);
                    libc::syscall(
                        libc::SYS_rt_sigqueueinfo,
                        to.as_raw(),
                        self.number,
                        std::ptr::from_ref(&info),
                    );
                }
            }
            // SAFETY: kill(2) takes two integers. Numbers of real-time signals are not in nix's enum.
            None => unsafe {
                libc::kill(to.as_raw(), self.number);
            },
        }
    }
}

/// `siginfo_t` of a queued signal on 64-bit machines: include/uapi/asm-generic/siginfo.h.
#[repr(C)]
struct QueuedInfo {
    number: i32,
    error: i32,
    code: i32,
    pad: i32,
    pid: i32,
    uid: u32,
    value: u64,
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
        // One that is blocked arrives even if it is ignored. That of a closed pipe is ignored by Rust's runtime.
        let is_left = |number: &libc::c_int| match *number {
            libc::SIGPIPE => dispositions.ignores_pipe,
            number => is_ignored(number),
        };
        let numbers = passed_on().filter(|number| !is_left(number)).chain([libc::SIGCHLD]);
        let handled = set_of(numbers);
        // A limit of file sizes that is the command's must not end its recorder: write(2) fails instead.
        let mut blocked = handled;
        blocked.add(Signal::SIGXFSZ);
        // Threads started from here on inherit the mask.
        let mask = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&handled, flags)?;
        Ok(Self { descriptor, before: Before { mask, dispositions } })
    }

    /// Mask and dispositions that the payload gets back.
    pub(crate) fn before(&self) -> &Before {
        &self.before
    }

    /// The next signal, if one is pending.
    pub(crate) fn next(&self) -> io::Result<Option<Received>> {
        Ok(self.descriptor.read_signal()?.and_then(|info: siginfo| {
            let number = i32::try_from(info.ssi_signo).ok()?;
            // SIGPIPE by the recorder's own writing says so.
            let is_own = info.ssi_pid == std::process::id();
            // A timer outlives exec(2): whoever has set it before it started the recorder means the command.
            let is_timer = number == libc::SIGALRM;
            let is_kernels = (info.ssi_code == libc::SI_KERNEL && !is_timer) || is_own;
            let value = (info.ssi_code == libc::SI_QUEUE).then_some(info.ssi_ptr);
            Some(Received { number, is_kernels, value })
        }))
    }
}

fn set_of(numbers: impl Iterator<Item = libc::c_int>) -> SigSet {
    // SAFETY: sigemptyset(3) initialises the set, and sigaddset(3) refuses numbers that are none.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, number);
        }
        SigSet::from_sigset_t_unchecked(set)
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
