//! Reaping the command.

use std::io;
use std::mem::MaybeUninit;

use nix::unistd::Pid;
use proctrace_trace::PayloadUsage;
use proctrace_wire::Outcome;

use crate::clock::boot_ns;

/// Reaps a child if it has ended; returns the usage of it and all its reaped descendants.
///
/// # Errors
/// When it cannot be waited for: it is not a child, or has already been reaped.
pub fn reap(root: Pid) -> io::Result<Option<PayloadUsage>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: wait4(2) writes to these two, which outlive the call. nix does not provide wait4.
    let waited =
        unsafe { libc::wait4(root.as_raw(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    if waited == 0 || !(libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) {
        return Ok(None);
    }
    // SAFETY: all zeros is a valid value, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Some(PayloadUsage {
        outcome: Outcome::of_status(status.cast_unsigned()),
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
