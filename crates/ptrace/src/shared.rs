//! Memory shared by tracer and recorder: two rings of records, and counts.
//!
//! The tracer is the only one who writes records, and the recorder the only one who reads them (ring.rs).

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use proctrace_wire::{Frame, Kind, Stream};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::ring::{End, Memory, Positions, Ring, Tasks};
use crate::sys::own_cpu_ns;

/// The records of births, execs and ends, and those of look-ups: a storm of one does not displace the
/// others.
pub(crate) const STREAMS: [Stream; 2] = [Stream::Lifecycle, Stream::Lookups];

/// Bytes before the first ring: a page.
const HEAD_BYTES: usize = 4096;

/// Counters and flags that precede the rings. All zeros is its first state.
#[repr(C)]
pub(crate) struct Board {
    rings: [Positions<AtomicU64>; STREAMS.len()],
    pub(crate) tasks: Tasks<AtomicU64>,
    /// Lost records by kind.
    lost: [AtomicU64; Kind::ALL.len() + 1],
    /// Calls of ptrace(2) that failed because the tracer traces the tasks.
    pub(crate) refused: AtomicU64,
    /// Tasks that were let go because another tracer was to have them. They count as ended.
    pub(crate) let_go: AtomicU64,
    /// Not 0 once the recorder needs no more records.
    pub(crate) stop: AtomicU32,
    /// The end of the writing, and the CPU time of the tracer until then.
    pub(crate) end: End<AtomicU64>,
}

impl Board {
    /// The tracer will write no more records.
    pub(crate) fn finish(&self) {
        self.end.set(own_cpu_ns());
    }
}

/// The memory.
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<u8>,
    ring_bytes: usize,
}

// SAFETY: the memory belongs to the process, not to a thread, and is only used as documented above.
unsafe impl Send for Shared {}

impl Shared {
    /// Two rings of this size, a power of two.
    pub(crate) fn new(ring_bytes: usize) -> io::Result<Self> {
        const { assert!(size_of::<Board>() <= HEAD_BYTES) };
        let bytes = HEAD_BYTES + STREAMS.len() * ring_bytes;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, ring_bytes })
    }

    pub(crate) fn board(&self) -> &Board {
        // SAFETY: the mapping is zeroed, large enough and aligned to a page; both processes change
        // it by atomic operations only.
        unsafe { self.start.cast().as_ref() }
    }

    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    fn ring(&self, stream: Stream) -> Option<Ring<'_, AtomicU64, Mapped>> {
        let at = STREAMS.iter().position(|known| *known == stream)?;
        // SAFETY: within the mapping: `at` is an index of STREAMS.
        let start = unsafe { self.start.add(HEAD_BYTES + at * self.ring_bytes) };
        let memory = Mapped { start, bytes: self.ring_bytes };
        Some(Ring { positions: &self.board().rings[at], memory })
    }

    /// Bytes that wait to be read in the fuller ring.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let most = self.board().rings.iter().map(Positions::waiting_bytes).max().unwrap_or(0);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Writes a record; returns false if there is no room. Only the tracer calls this.
    pub(crate) fn write(&self, stream: Stream, record: &[u8]) -> bool {
        self.ring(stream).is_some_and(|ring| ring.write(record))
    }

    /// Passes the records that are there now to `take`; returns how many. Only the recorder calls this.
    pub(crate) fn drain(&self, stream: Stream, take: impl FnMut(Frame<'_>)) -> usize {
        self.ring(stream).map_or(0, |ring| ring.drain(take))
    }

    /// Counts a record that was lost.
    pub(crate) fn lose(&self, kind: u16) {
        if let Some(lost) = self.board().lost.get(usize::from(kind)) {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The numbers of lost records.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (Kind, u64)> {
        Kind::ALL.into_iter().filter_map(|kind| {
            let lost = self.board().lost.get(kind as usize)?.load(Ordering::Relaxed);
            (lost > 0).then_some((kind, lost))
        })
    }
}

/// The memory of one ring.
struct Mapped {
    start: NonNull<u8>,
    bytes: usize,
}

impl Memory for Mapped {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn put(&self, at: usize, bytes: &[u8]) {
        // SAFETY: the range is within the ring, and nobody else uses it, as the caller says.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at).as_ptr(), bytes.len())
        };
    }

    unsafe fn look<T>(&self, at: usize, len: usize, at_bytes: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the range is within the ring, and nobody writes to it, as the caller says.
        at_bytes(unsafe { std::slice::from_raw_parts(self.start.add(at).as_ptr(), len) })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let bytes = HEAD_BYTES + STREAMS.len() * self.ring_bytes;
        // SAFETY: this value owns the mapping, and no borrow of it remains.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use proctrace_wire::IntoBytes;
    use proctrace_wire::layout::{Again, Head};

    use super::*;

    fn record(number: u32) -> Again {
        let head = Head { kind: Kind::LookupAgain as u16, size: 24, task: 7, time_ns: 1 };
        Again { head, number, pad: 0 }
    }

    /// A record of 24 to 72 bytes: of different lengths, so that older bytes are where a part of a ring is not used.
    fn record_of_some_length(number: u32) -> Vec<u8> {
        let size = 24 + 8 * (number * number % 7) as u16;
        let head = Head { kind: Kind::LookupAgain as u16, size, task: 7, time_ns: 1 };
        let rest = number.to_ne_bytes().into_iter().cycle().take(usize::from(size) - 16);
        head.as_bytes().iter().copied().chain(rest).collect()
    }

    #[test]
    fn records_come_out_as_they_went_in_around_the_end() {
        let shared = Shared::new(256).expect("memory");
        let (mut next, mut expected) = (1, 1);
        // Every fourth time until it is full.
        for round in 0..4000 {
            for _ in 0..if round % 4 == 0 { 256 } else { round % 5 } {
                if !shared.write(Stream::Lookups, &record_of_some_length(next)) {
                    break;
                }
                next += 1;
            }
            assert!(shared.waiting_bytes() <= 256);
            shared.drain(Stream::Lookups, |frame| {
                assert_eq!(frame.bytes, record_of_some_length(expected));
                expected += 1;
            });
            assert_eq!((expected, shared.waiting_bytes()), (next, 0));
        }
        assert!(next > 4000);
        assert_eq!(shared.drain(Stream::Lifecycle, |_| ()), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let shared = Shared::new(4096).expect("memory");
        let mut fitted = 0;
        while shared.write(Stream::Lookups, record(fitted).as_bytes()) {
            fitted += 1;
        }
        assert_eq!(fitted, 4096 / 24);
        assert!(shared.write(Stream::Lifecycle, record(0).as_bytes()), "it has its own ring");
        assert!(!shared.write(Stream::Samples, record(0).as_bytes()), "it has no ring");
        shared.lose(Kind::LookupAgain as u16);
        shared.lose(999);
        assert_eq!(shared.lost().collect::<Vec<_>>(), [(Kind::LookupAgain, 1)]);
    }
}
