//! The protocol by which one process writes what another reads: a ring of records, and the counts beside it.
//!
//! It is generic over atomic numbers and memory, so that tests can go through its interleavings with those of loom.

use std::sync::atomic::{AtomicU64, Ordering};

use proctrace_wire::{Frame, Frames};

/// An atomic number.
pub(crate) trait Number {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
}

impl Number for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_add(value, order)
    }
}

/// The memory of a ring: a power of two of bytes.
pub(crate) trait Memory {
    fn bytes(&self) -> usize;

    /// Copies bytes to an offset.
    ///
    /// # Safety
    /// The range is within the memory, and nobody else uses it.
    unsafe fn put(&self, at: usize, bytes: &[u8]);

    /// Passes a range to a function.
    ///
    /// # Safety
    /// The range is within the memory, and nobody writes to it.
    unsafe fn look<T>(&self, at: usize, len: usize, at_bytes: impl FnOnce(&[u8]) -> T) -> T;
}

/// Positions in a ring; they only grow. Each is in a cache line of its own. All zeros is its first state.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct Positions<N> {
    written: N,
    _pad: [u64; 7],
    read: N,
}

impl<N: Number> Positions<N> {
    /// Bytes that wait to be read.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let written = self.written.load(Ordering::Acquire);
        written.saturating_sub(self.read.load(Ordering::Acquire))
    }
}

/// A ring with one writer and one reader. A record is contiguous: if it does not fit before the end, a zero marks the rest
/// as unused.
pub(crate) struct Ring<'a, N, M> {
    pub(crate) positions: &'a Positions<N>,
    pub(crate) memory: M,
}

/// What is found at a position.
enum Found {
    Record { len: usize },
    Unused,
    Broken,
}

impl<N: Number, M: Memory> Ring<'_, N, M> {
    /// Writes a record; returns false if there is no room. Only the writer calls this.
    pub(crate) fn write(&self, record: &[u8]) -> bool {
        debug_assert!(record.len().is_multiple_of(8));
        let ring_bytes = self.memory.bytes();
        let mut written = self.positions.written.load(Ordering::Relaxed);
        let read = self.positions.read.load(Ordering::Acquire);
        let free = ring_bytes - usize::try_from(written - read).unwrap_or(ring_bytes);
        let at = written as usize & (ring_bytes - 1);
        let left = ring_bytes - at;
        let skipped = if record.len() > left { left } else { 0 };
        if skipped + record.len() > free {
            return false;
        }
        let mut to = at;
        if skipped > 0 {
            // SAFETY: positions are multiples of 8, so that 8 bytes are left before the end; they
            // are free, and the reader does not look at them before `written` has been raised.
            unsafe { self.memory.put(at, &[0; 8]) };
            written += skipped as u64;
            to = 0;
        }
        // SAFETY: this range is within the ring and free, as computed above, and as before.
        unsafe { self.memory.put(to, record) };
        self.positions.written.store(written + record.len() as u64, Ordering::Release);
        true
    }

    /// Passes the records that are there now to `take`; returns how many. Only the reader calls this.
    pub(crate) fn drain(&self, mut take: impl FnMut(Frame<'_>)) -> usize {
        let ring_bytes = self.memory.bytes();
        let written = self.positions.written.load(Ordering::Acquire);
        let mut read = self.positions.read.load(Ordering::Relaxed);
        let mut taken = 0;
        while read < written {
            let at = read as usize & (ring_bytes - 1);
            let len = (ring_bytes - at).min(usize::try_from(written - read).unwrap_or(0));
            let look = |bytes: &[u8]| {
                if bytes[..8] == [0; 8] {
                    return Found::Unused;
                }
                let Some(Ok(frame)) = Frames::new(bytes).next() else { return Found::Broken };
                take(frame);
                Found::Record { len: frame.bytes.len() }
            };
            // SAFETY: within the ring, and written: the writer does not touch it before `read` has been
            // raised.
            match unsafe { self.memory.look(at, len, look) } {
                Found::Record { len } => {
                    taken += 1;
                    read += len as u64;
                }
                Found::Unused => read += (ring_bytes - at) as u64,
                // Only our own tracer writes here. Nothing behind this can be found.
                Found::Broken => read = written,
            }
        }
        self.positions.read.store(read, Ordering::Release);
        taken
    }
}

/// Traced tasks. All zeros is its first state.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Tasks<N> {
    born: N,
    ended: N,
}

impl<N: Number> Tasks<N> {
    /// Counts a birth; returns the number of those before it.
    pub(crate) fn bear(&self) -> u64 {
        self.born.fetch_add(1, Ordering::AcqRel)
    }

    /// Counts an end, or that a task was let go. The record of it is written before: the recorder waits for this count, and
    /// then reads what is left.
    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
    }

    /// Numbers of births and of ends.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // In this order, so that none seems to have ended before it was born.
        let ended = self.ended.load(Ordering::Acquire);
        (self.born.load(Ordering::Acquire), ended)
    }
}

/// The end of the writing. All zeros is its first state.
#[repr(C)]
#[derive(Default)]
pub(crate) struct End<N> {
    done: N,
    user_ns: N,
    system_ns: N,
}

impl<N: Number> End<N> {
    /// The writer, which has used this user and system time, will write no more.
    pub(crate) fn set(&self, (user_ns, system_ns): (u64, u64)) {
        self.user_ns.store(user_ns, Ordering::Release);
        self.system_ns.store(system_ns, Ordering::Release);
        self.done.store(1, Ordering::Release);
    }

    /// True if no more records will be written.
    pub(crate) fn is_set(&self) -> bool {
        self.done.load(Ordering::Acquire) != 0
    }

    /// User and system time of the writer until its end.
    pub(crate) fn cpu_ns(&self) -> (u64, u64) {
        (self.user_ns.load(Ordering::Acquire), self.system_ns.load(Ordering::Acquire))
    }
}

#[cfg(all(test, loom))]
mod tests;
