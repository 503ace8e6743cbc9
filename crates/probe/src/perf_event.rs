//! Attaches a program to a classic tracepoint by its id.
//!
//! aya's own function takes the tracepoint's name and needs a mounted tracefs to look it up.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use aya_obj::generated::{perf_event_attr, perf_type_id};

// linux/perf_event.h: _IO('$', 0) and _IOW('$', 8, __u32)
const PERF_EVENT_IOC_ENABLE: libc::Ioctl = 0x2400;
const PERF_EVENT_IOC_SET_BPF: libc::Ioctl = 0x4004_2408;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// Attaches `program` to the tracepoint with this id, on every CPU, until the descriptor is closed.
pub(crate) fn attach_tracepoint(id: u64, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: perf_event_attr consists of integers and unions of integers; zero is valid.
    let mut attr: perf_event_attr = unsafe { std::mem::zeroed() };
    attr.size = u32::try_from(size_of::<perf_event_attr>()).expect("it is 136 bytes");
    attr.type_ = perf_type_id::PERF_TYPE_TRACEPOINT as u32;
    attr.config = id;
    // One event on one CPU suffices: the program is attached to the tracepoint, not to the event.
    // SAFETY: perf_event_open(2) reads attr.size bytes of attr, which outlives the call.
    let event = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)
    };
    let event = match RawFd::try_from(event) {
        // SAFETY: the kernel has just returned this descriptor; nothing else owns it.
        Ok(fd) if fd >= 0 => unsafe { OwnedFd::from_raw_fd(fd) },
        _ => return Err(io::Error::last_os_error()),
    };
    // SAFETY: both requests take an integer, and both descriptors are open.
    let set = unsafe {
        libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_SET_BPF, program.as_raw_fd()) == 0
            && libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_ENABLE, 0) == 0
    };
    if set { Ok(event) } else { Err(io::Error::last_os_error()) }
}
