//! Runs of our programs that the kernel skipped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_prog_info};

/// How often the kernel did not run a program because it was running on that CPU already. Each
/// is an event that left no record. (aya has the field, but no way to read it.)
pub(crate) fn recursion_misses(program: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: both consist of integers, bit fields and unions of them; zero is valid.
    let (mut info, mut attr): (bpf_prog_info, bpf_attr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    attr.info.bpf_fd = u32::try_from(program.as_raw_fd()).unwrap_or(u32::MAX);
    attr.info.info_len = u32::try_from(size_of::<bpf_prog_info>()).expect("it is 232 bytes");
    attr.info.info = (&raw mut info) as u64;
    // SAFETY: the kernel writes at most info_len bytes to info, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            bpf_cmd::BPF_OBJ_GET_INFO_BY_FD,
            &raw mut attr,
            size_of::<bpf_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(info.recursion_misses) }
}
