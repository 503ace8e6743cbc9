//! A pass over all tasks, with a task iterator that is read like a file.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya::programs::Iter;
use aya_obj::generated::{bpf_attach_type, bpf_attr, bpf_cmd};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::error::ProbeError;

/// Maximum bytes that the kernel returns per read (bpf_seq_read() in kernel/bpf/bpf_iter.c).
const ROOM_BYTES: usize = 32 << 10;

/// A program for all tasks, ready to run. It is linked once: aya creates and drops a link for each
/// pass, which takes as long as visiting all tasks of a small machine.
#[derive(Debug)]
pub(crate) struct TaskIterator {
    link: OwnedFd,
}

impl TaskIterator {
    /// Links a loaded program.
    pub(crate) fn new(program: &Iter) -> io::Result<Self> {
        // SAFETY: bpf_attr is a union of structs of integers; zero is valid.
        let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
        let descriptor = program.fd().map_err(io::Error::other)?.as_fd();
        attr.link_create.__bindgen_anon_1.prog_fd = number(descriptor);
        attr.link_create.attach_type = bpf_attach_type::BPF_TRACE_ITER as u32;
        Ok(Self { link: bpf(bpf_cmd::BPF_LINK_CREATE, &attr)? })
    }

    /// Visits all tasks once and stores the records that the program writes in `buffer`.
    pub(crate) fn pass(&self, buffer: &mut Vec<u8>) -> Result<(), ProbeError> {
        buffer.clear();
        // SAFETY: as above.
        let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
        attr.iter_create.link_fd = number(self.link.as_fd());
        // Such a file serves for one pass.
        let file = bpf(bpf_cmd::BPF_ITER_CREATE, &attr).map_err(ProbeError::set_up("iterator"))?;
        loop {
            buffer.reserve(ROOM_BYTES);
            match rustix::io::read(&file, spare_capacity(buffer)) {
                Ok(0) => return Ok(()),
                // EAGAIN: the kernel pauses after a million tasks without a record.
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => {
                    return Err(ProbeError::System {
                        what: "read the samples",
                        source: errno.into(),
                    });
                }
            }
        }
    }
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
