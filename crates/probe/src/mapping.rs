//! Memory of the kernel's.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// A part of a map's memory, or of a file that the kernel makes up.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps so many bytes of a map's memory from `at` on.
    pub(crate) fn new(
        map: BorrowedFd<'_>,
        access: ProtFlags,
        at: usize,
        bytes: usize,
    ) -> io::Result<Self> {
        Self::map(map, access, MapFlags::SHARED, at, bytes)
    }

    /// Maps so many bytes of a file, as they are now.
    pub(crate) fn of_file(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::map(file, ProtFlags::READ, MapFlags::PRIVATE, 0, bytes)
    }

    fn map(
        file: BorrowedFd<'_>,
        access: ProtFlags,
        flags: MapFlags,
        at: usize,
        bytes: usize,
    ) -> io::Result<Self> {
        let null = std::ptr::null_mut();
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe { mmap(null, bytes, access, flags, file, at as u64)? };
        // Forks need no part in it, and would take the longer for it.
        // SAFETY: it changes what a fork does, not what the memory holds.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxDontFork) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, bytes })
    }

    /// A word that the kernel writes as a whole (unsigned long).
    pub(crate) fn position(&self, at: usize) -> &AtomicUsize {
        let bytes = size_of::<usize>();
        assert!(
            at.is_multiple_of(bytes) && at + bytes <= self.bytes,
            "{at} is no place for a word"
        );
        // SAFETY: it lies within the mapping, which begins at a page, and is aligned.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// The same of half the size.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "{at} is no place for a word");
        // SAFETY: it lies within the mapping and is aligned; the kernel writes it as one word.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Bytes of it.
    ///
    /// # Safety
    /// Nobody writes to them while they are borrowed.
    pub(crate) unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        assert!(at + len <= self.bytes, "{len} bytes at {at} are too many");
        // SAFETY: they lie within the mapping, and the caller knows that they stay as they are.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is ours, and everything borrowed from it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
