//! Determines by trying whether this user may trace by ptrace.

use std::io;

use crate::sys::{self, Tid};

/// Attaches to a child for a moment, as to a command that is recorded.
///
/// # Errors
/// With the reason why that is not possible.
pub fn may_trace() -> io::Result<()> {
    // SAFETY: the child makes only system calls, and never returns from here.
    let child: Tid = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        // SAFETY: waits for a signal, and ends without running anything of the parent's.
        0 => unsafe {
            libc::pause();
            libc::_exit(0)
        },
        child => child,
    };
    let seized = sys::seize(child, 0);
    // SAFETY: our own child, which has not been reaped.
    unsafe { libc::kill(child, libc::SIGKILL) };
    let mut status = 0;
    // SAFETY: waits for our own child and writes to this integer.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == child
        && !(libc::WIFEXITED(status) || libc::WIFSIGNALED(status))
    {}
    seized
}

#[cfg(test)]
mod tests {
    #[test]
    fn tests_run_where_tracing_is_possible() {
        super::may_trace().expect("ptrace");
    }
}
