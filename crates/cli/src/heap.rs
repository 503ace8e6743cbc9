//! Keeps the memory of large tables outside the heap, so that it can be returned.

#![expect(unsafe_code, reason = "a function of the C library that no crate wraps")]

/// Minimum size of an allocation that is mapped. Large enough that mapping costs little beside filling it.
const MAPPED_BYTES: libc::c_int = 1 << 20;

/// Fixes the size from which glibc maps an allocation instead of taking it from the heap. Otherwise that grows to
/// 32 MB with the first large table that is freed (mallopt(3), `M_MMAP_THRESHOLD`); tables that grow then leave holes in
/// the heap, a twelfth of the memory of a report.
pub(crate) fn map_large_allocations() {
    // SAFETY: takes two integers. No other thread has been started yet. If it fails, all that is lost is memory.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES) };
}
