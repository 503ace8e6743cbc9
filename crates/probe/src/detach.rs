//! Detaches the classic tracepoints without delaying the recorder.

use std::os::fd::{AsRawFd, OwnedFd};

/// Detaches all of these.
///
/// For each one, the kernel waits for RCU grace periods, under a lock: 70 ms, a second for all
/// (perf_trace_event_unreg() in kernel/trace/trace_event_perf.c). So this is left to a background
/// process. Until it is done, tasks that make one of these calls still run a program that finds no
/// task to record.
pub(crate) fn in_background(links: Vec<OwnedFd>) {
    if links.is_empty() {
        return;
    }
    // SAFETY: the child makes only system calls, on values on its stack, and never returns.
    match unsafe { libc::fork() } {
        0 => {
            // A grandchild, so that no process needs to wait for it.
            // SAFETY: as above.
            let pid = unsafe { libc::fork() };
            if pid != 0 {
                // SAFETY: exits without running any of the parent's code.
                unsafe { libc::_exit(0) };
            }
            hold_and_exit(&links)
        }
        // If fork fails, the links are closed here, when they are dropped.
        -1 => {}
        child => {
            // SAFETY: waits for our own child, which exits at once.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    }
}

/// Closes all descriptors except the links, in particular pipes that someone reads until EOF; then
/// exits, which closes the links.
fn hold_and_exit(links: &[OwnedFd]) -> ! {
    let keep = |fd| links.iter().any(|link| link.as_raw_fd() == fd);
    let last = links.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(2);
    // SAFETY: these calls touch no memory; the descriptors are not used after this.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"proctrace-end".as_ptr());
        libc::syscall(libc::SYS_close_range, last + 1, libc::c_uint::MAX, 0);
        for fd in (0..=last).filter(|fd| !keep(*fd)) {
            libc::close(fd);
        }
        libc::_exit(0)
    }
}
