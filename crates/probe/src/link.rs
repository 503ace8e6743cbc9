//! Attaches programs of the types that the kernel links by their BTF, by one call each.
//!
//! aya attaches as well, but keeps the link with the program; these links can be passed to another process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::{bpf_attach_type, bpf_attr, bpf_cmd};

/// Attaches a loaded tp_btf, fentry or fexit program to what it was loaded for, until the link is closed.
pub(crate) fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: bpf_attr is a union of structs of integers; zero is valid.
    let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
    // The name is null: the program knows its target.
    attr.raw_tracepoint.prog_fd = number(program);
    bpf(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &attr)
}

/// Links a loaded task iterator.
pub(crate) fn attach_iterator(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: as above.
    let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
    attr.link_create.__bindgen_anon_1.prog_fd = number(program);
    attr.link_create.attach_type = bpf_attach_type::BPF_TRACE_ITER as u32;
    bpf(bpf_cmd::BPF_LINK_CREATE, &attr)
}

/// A file that is one run of an iterator.
pub(crate) fn open_iterator(link: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: as above.
    let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
    attr.iter_create.link_fd = number(link);
    bpf(bpf_cmd::BPF_ITER_CREATE, &attr)
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).unwrap_or(u32::MAX)
}

/// bpf(2), for the commands that return a descriptor.
fn bpf(command: bpf_cmd, attr: &bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads size_of::<bpf_attr>() bytes of attr, which outlives the call.
    let made = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attr), size_of::<bpf_attr>())
    };
    match i32::try_from(made) {
        // SAFETY: the kernel has just returned this descriptor; nothing else owns it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
