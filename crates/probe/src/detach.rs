//! Letting go of the classic tracepoints without making anybody wait.

use std::os::fd::AsRawFd;

use crate::perf_event::TracepointLink;

/// Detaches all of these.
///
/// The kernel waits for grace periods of RCU, under a lock, for each one: 70 ms, a second for all
/// (perf_trace_event_unreg() in kernel/trace/trace_event_perf.c). So they are left to a process
/// that has nothing else to do. Until it is done, whoever makes one of these calls still runs a
/// program that finds no task to record.
pub(crate) fn in_background(links: Vec<TracepointLink>) {
    if links.is_empty() {
        return;
    }
    // SAFETY: the child makes system calls only, on values it has on its stack, and never returns.
    match unsafe { libc::fork() } {
        0 => {
            // A grandchild, so that nobody need wait for it.
            // SAFETY: as above.
            let pid = unsafe { libc::fork() };
            if pid != 0 {
                // SAFETY: ends this process without running anything of its parent's.
                unsafe { libc::_exit(0) };
            }
            hold_and_exit(&links)
        }
        // Without a process to leave it to, it is done here, when they are dropped.
        -1 => {}
        child => {
            // SAFETY: waits for our own child, which exits at once.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    }
}

/// Keeps nothing open but the links, in particular no pipe that someone reads to its end; then
/// exits, which closes them.
fn hold_and_exit(links: &[TracepointLink]) -> ! {
    let keep = |fd| links.iter().any(|link| link.as_raw_fd() == fd);
    let last = links.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(2);
    // SAFETY: these calls touch no memory; nobody uses the descriptors after this.
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
