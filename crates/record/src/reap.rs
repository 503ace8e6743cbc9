//! Collecting the command when it has ended.

use std::io;
use std::mem::MaybeUninit;

use nix::unistd::Pid;
use proctrace_trace::{Outcome, PayloadUsage};

use crate::clock::boot_ns;

/// Collects a child if it has ended, with what it and all it waited for have used.
///
/// # Errors
/// When it cannot be waited for: it is no child of ours, or someone else has collected it.
pub fn reap(root: Pid) -> io::Result<Option<PayloadUsage>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: wait4(2) writes to the two, which outlive the call. nix has no wait4.
    let waited =
        unsafe { libc::wait4(root.as_raw(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    if waited == 0 || !(libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) {
        return Ok(None);
    }
    // SAFETY: it was zeroed, which is a value, and filled by the kernel.
    let usage = unsafe { usage.assume_init() };
    Ok(Some(PayloadUsage {
        outcome: if libc::WIFSIGNALED(status) {
            Outcome::Signal(libc::WTERMSIG(status))
        } else {
            Outcome::Code(libc::WEXITSTATUS(status))
        },
        exited_ns: boot_ns(),
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        maxrss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

fn timeval_ns(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
}
