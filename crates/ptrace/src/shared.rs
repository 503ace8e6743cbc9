//! Memory shared by tracer and recorder: two rings of records, and counts.
//!
//! The tracer is the only one who writes records, and the recorder the only one who reads them. A
//! record is contiguous: if it does not fit before the end of a ring, a zero marks the rest as unused.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use proctrace_wire::{Frame, Frames, Kind, Stream};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::sys::own_cpu_ns;

/// The records of births, execs and ends, and those of look-ups: a storm of one does not displace the
/// others.
pub(crate) const STREAMS: [Stream; 2] = [Stream::Lifecycle, Stream::Lookups];

/// Bytes before the first ring: a page.
const HEAD_BYTES: usize = 4096;

/// Positions in a ring; they only grow. Each is in a cache line of its own.
#[repr(C, align(64))]
struct Positions {
    written: AtomicU64,
    _pad: [u64; 7],
    read: AtomicU64,
}

/// Counters and flags that precede the rings. All zeros is its first state.
#[repr(C)]
pub(crate) struct Board {
    rings: [Positions; STREAMS.len()],
    /// Traced tasks so far.
    pub(crate) born: AtomicU64,
    /// Number of these that have ended or were let go.
    pub(crate) ended: AtomicU64,
    /// Lost records by kind.
    lost: [AtomicU64; Kind::ALL.len() + 1],
    /// Calls of ptrace(2) that failed because the tracer traces the tasks.
    pub(crate) refused: AtomicU64,
    /// Tasks that were let go because another tracer was to have them. They count as ended.
    pub(crate) let_go: AtomicU64,
    /// Not 0 once the recorder needs no more records.
    pub(crate) stop: AtomicU32,
    /// Not 0 once no more records will be written.
    done: AtomicU32,
    /// CPU time of the tracer until then.
    pub(crate) user_ns: AtomicU64,
    pub(crate) system_ns: AtomicU64,
}

impl Board {
    /// True if no more records will be written.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) != 0
    }

    /// The tracer will write no more records.
    pub(crate) fn finish(&self) {
        let (user_ns, system_ns) = own_cpu_ns();
        self.user_ns.store(user_ns, Ordering::Release);
        self.system_ns.store(system_ns, Ordering::Release);
        self.done.store(1, Ordering::Release);
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

    fn ring(&self, at: usize) -> NonNull<u8> {
        // SAFETY: within the mapping: `at` is an index of STREAMS.
        unsafe { self.start.add(HEAD_BYTES + at * self.ring_bytes) }
    }

    /// Bytes that wait to be read in the fuller ring.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let waiting = |ring: &Positions| {
            let written = ring.written.load(Ordering::Acquire);
            written.saturating_sub(ring.read.load(Ordering::Acquire))
        };
        let most = self.board().rings.iter().map(waiting).max().unwrap_or(0);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Writes a record; returns false if there is no room. Only the tracer calls this.
    pub(crate) fn write(&self, stream: Stream, record: &[u8]) -> bool {
        let Some(ring_at) = STREAMS.iter().position(|known| *known == stream) else { return false };
        debug_assert!(record.len().is_multiple_of(8));
        let positions = &self.board().rings[ring_at];
        let ring = self.ring(ring_at);
        let mut written = positions.written.load(Ordering::Relaxed);
        let read = positions.read.load(Ordering::Acquire);
        let free = self.ring_bytes - usize::try_from(written - read).unwrap_or(self.ring_bytes);
        let at = written as usize & (self.ring_bytes - 1);
        let left = self.ring_bytes - at;
        let skipped = if record.len() > left { left } else { 0 };
        if skipped + record.len() > free {
            return false;
        }
        let mut to = at;
        if skipped > 0 {
            // SAFETY: positions are multiples of 8, so that 8 bytes are left before the end; they
            // are free, and the reader does not look at them before `written` has been raised.
            unsafe { ring.add(at).cast::<u64>().write(0) };
            written += skipped as u64;
            to = 0;
        }
        // SAFETY: this range is within the ring and free, as computed above, and as before.
        unsafe { ptr::copy_nonoverlapping(record.as_ptr(), ring.add(to).as_ptr(), record.len()) };
        positions.written.store(written + record.len() as u64, Ordering::Release);
        true
    }

    /// Passes the records that are there now to `take`; returns how many. Only the recorder calls this.
    pub(crate) fn drain(&self, stream: Stream, mut take: impl FnMut(Frame<'_>)) -> usize {
        let Some(ring_at) = STREAMS.iter().position(|known| *known == stream) else { return 0 };
        let positions = &self.board().rings[ring_at];
        let ring = self.ring(ring_at);
        let written = positions.written.load(Ordering::Acquire);
        let mut read = positions.read.load(Ordering::Relaxed);
        let mut taken = 0;
        while read < written {
            let at = read as usize & (self.ring_bytes - 1);
            let len = (self.ring_bytes - at).min(usize::try_from(written - read).unwrap_or(0));
            // SAFETY: within the ring, and written: the tracer does not touch it before `read` has been
            // raised.
            let bytes = unsafe { std::slice::from_raw_parts(ring.add(at).as_ptr(), len) };
            if bytes[..8] == [0; 8] {
                read += (self.ring_bytes - at) as u64;
                continue;
            }
            let Some(Ok(frame)) = Frames::new(bytes).next() else {
                // Only our own tracer writes here. Nothing behind this can be found.
                read = written;
                break;
            };
            take(frame);
            taken += 1;
            read += frame.bytes.len() as u64;
        }
        positions.read.store(read, Ordering::Release);
        taken
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

    #[test]
    fn records_come_out_as_they_went_in_around_the_end() {
        // 4096 is not a multiple of 24, so that a part of it is skipped each time.
        let shared = Shared::new(4096).expect("memory");
        let (mut next, mut expected) = (0, 0);
        for round in 0..100 {
            for _ in 0..round % 170 {
                if shared.write(Stream::Lookups, record(next).as_bytes()) {
                    next += 1;
                }
            }
            shared.drain(Stream::Lookups, |frame| {
                assert_eq!(frame.bytes, record(expected).as_bytes());
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
