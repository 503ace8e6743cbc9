//! Seccomp filters that forbid bpf(2): the default profiles of container engines do, whatever capabilities a container
//! has, and whatever descriptors it was handed.

use std::fs;
use std::io;

/// True if a seccomp filter forbids bpf(2) to this thread.
///
/// Asked with a command that does not exist, which the kernel itself answers with EINVAL, also to those who may not
/// use BPF (since Linux 6.0, which a broker needs anyway).
pub fn forbids_bpf() -> bool {
    has_filter() && {
        let nothing: *const libc::c_void = std::ptr::null();
        // SAFETY: with a size of 0 the kernel reads nothing from the pointer, and no command has this number.
        let answer = unsafe { libc::syscall(libc::SYS_bpf, libc::c_int::MAX, nothing, 0) };
        answer != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL)
    }
}

/// SECCOMP_MODE_FILTER of linux/seccomp.h, as proc_pid_status(5) shows it.
fn has_filter() -> bool {
    fs::read_to_string("/proc/thread-self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
    })
}
