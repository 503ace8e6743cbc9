//! Detaches the classic tracepoints without delaying the recorder.

use std::io::{PipeReader, PipeWriter, pipe};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Detaches all of these.
///
/// For each one, the kernel waits for RCU grace periods, under a lock: 70 ms, a second for all, or three with 16 CPUs
/// (perf_trace_event_unreg() in kernel/trace/trace_event_perf.c). So this is left to a background
/// process. Until it is done, tasks that make one of these calls still run a program that finds no
/// task to record.
pub(crate) fn in_background(links: Vec<OwnedFd>) {
    if links.is_empty() {
        return;
    }
    let held = hold(&links);
    // Whoever closes a link last waits. If nobody holds them, that is this process.
    drop(links);
    drop(held);
}

/// Starts a process that holds these descriptors until what is returned has been dropped; `None` if it could not be
/// started.
///
/// Without that it may have gone before this process closes its own: with 16 CPUs, in every tenth recording.
fn hold(links: &[OwnedFd]) -> Option<PipeWriter> {
    let (released, release) = pipe().ok()?;
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
            hold_and_exit(links, &released, &release)
        }
        -1 => None,
        child => {
            // SAFETY: waits for our own child, which exits at once.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Some(release)
        }
    }
}

/// Closes all descriptors except the links, in particular pipes that someone reads until EOF; then
/// exits when the pipe ends, which closes the links. Its own copy of the other end would keep it from ending.
fn hold_and_exit(links: &[OwnedFd], released: &PipeReader, release: &PipeWriter) -> ! {
    let keep =
        |fd: RawFd| fd == released.as_raw_fd() || links.iter().any(|link| link.as_raw_fd() == fd);
    let last = links.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(2).max(released.as_raw_fd());
    // SAFETY: these calls touch only the byte on the stack; the descriptors are not used after this.
    unsafe {
        libc::close(release.as_raw_fd());
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"proctrace-end".as_ptr());
        libc::syscall(libc::SYS_close_range, last + 1, libc::c_uint::MAX, 0);
        for fd in (0..=last).filter(|fd| !keep(*fd)) {
            libc::close(fd);
        }
        let mut byte = 0_u8;
        // Nobody writes: it ends when the other end is closed. A signal ends the wait as well, and only makes it shorter.
        libc::read(released.as_raw_fd(), (&raw mut byte).cast(), 1);
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if the other end of a pipe is closed within this time.
    fn ends(reader: &PipeReader, limit_ms: i32) -> bool {
        let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor of ours, in memory of ours.
        unsafe { libc::poll(&raw mut poll, 1, limit_ms) };
        poll.revents & libc::POLLHUP != 0
    }

    #[test]
    fn links_are_held_until_the_recorder_has_closed_its_own() {
        let (reader, writer) = pipe().unwrap();
        let links = vec![OwnedFd::from(writer)];
        let held = hold(&links).unwrap();
        drop(links);
        assert!(!ends(&reader, 300), "the recorder was the last to close a link");
        drop(held);
        assert!(ends(&reader, 60_000), "nobody closed the link");
    }

    #[test]
    fn all_are_closed_in_the_end() {
        let (reader, writer) = pipe().unwrap();
        in_background(vec![OwnedFd::from(writer)]);
        assert!(ends(&reader, 60_000));
    }
}
