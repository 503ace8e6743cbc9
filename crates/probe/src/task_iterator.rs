//! A pass over all tasks, with a task iterator that is read like a file.

use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::error::ProbeError;
use crate::link;

/// Maximum bytes that the kernel returns per read (bpf_seq_read() in kernel/bpf/bpf_iter.c).
const ROOM_BYTES: usize = 32 << 10;

/// A program for all tasks, ready to run. It is linked once: aya creates and drops a link for each
/// pass, which takes as long as visiting all tasks of a small machine.
#[derive(Debug)]
pub(crate) struct TaskIterator {
    pub(crate) link: OwnedFd,
}

impl TaskIterator {
    /// Visits all tasks once and stores the records that the program writes in `buffer`.
    pub(crate) fn pass(&self, buffer: &mut Vec<u8>) -> Result<(), ProbeError> {
        buffer.clear();
        // Such a file serves for one pass.
        let file =
            link::open_iterator(self.link.as_fd()).map_err(ProbeError::set_up("iterator"))?;
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
