//! A ring buffer of the kernel's, emptied in place.
//!
//! Its shape is that of kernel/bpf/ringbuf.c: a page with the consumer's position, a page with the
//! producers', then the data, mapped twice in a row so that no record is ever torn. A record is eight
//! bytes of which four are its length and two flags, then its bytes, then padding to eight.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use aya::maps::{Map, MapData};
use proctrace_wire::{Frame, Frames};
use rustix::mm::ProtFlags;

use crate::mapping::Mapping;

/// Set while a producer is still writing a record.
const BUSY: u32 = 1 << 31;
/// Set where a producer has given a record up.
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

/// The reading end. There is one for each ring.
///
/// aya has one, too, but tells the kernel of every single record that it was read. The position
/// is in memory that each producer looks at for each record it writes, so telling it seldom spares both
/// sides a cache line on its way between them.
#[derive(Debug)]
pub(crate) struct Ring {
    map: MapData,
    consumer: Mapping,
    producer: Mapping,
    page_bytes: usize,
    data_bytes: usize,
    /// Up to where we have read, and up to where the kernel knows.
    read: usize,
    told: usize,
}

impl Ring {
    /// Maps a ring with this much room for data.
    pub(crate) fn new(map: Map, data_bytes: u32) -> io::Result<Self> {
        let Map::RingBuf(map) = map else {
            return Err(io::Error::other("a map is not the ring buffer it should be"));
        };
        let page_bytes = rustix::param::page_size();
        let data_bytes = data_bytes as usize;
        let descriptor = map.fd().as_fd();
        let write = ProtFlags::READ | ProtFlags::WRITE;
        let consumer = Mapping::new(descriptor, write, 0, page_bytes)?;
        let bytes = page_bytes + 2 * data_bytes;
        let producer = Mapping::new(descriptor, ProtFlags::READ, page_bytes, bytes)?;
        let read = consumer.position(0).load(Ordering::Acquire);
        Ok(Self { map, consumer, producer, page_bytes, data_bytes, read, told: read })
    }

    /// Hands every record that is there now to `take`; returns how many there were.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(Frame<'_>)) -> usize {
        let mut taken = 0;
        // Those that come meanwhile are for the next time, so that nobody is kept here for ever.
        let end = self.producer.position(0).load(Ordering::Acquire);
        while self.read != end {
            let at = self.page_bytes + (self.read & (self.data_bytes - 1));
            let header = self.producer.word(at).load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let len = (header & !DISCARDED) as usize;
            // The kernel gives no record that is larger than its ring, so the whole of it lies
            // within the second mapping. Whoever else could write here could do anything.
            if len > self.data_bytes {
                break;
            }
            if header & DISCARDED == 0 {
                // One item is one record; anything else would be a fault of our own programs, and
                // the size in its head is checked before it is believed.
                // SAFETY: a record that was committed is not written to before its place is
                // given back, which is done below.
                let bytes = unsafe { self.producer.bytes(at + HEADER_BYTES, len) };
                if let Some(Ok(frame)) = Frames::new(bytes).next() {
                    take(frame);
                }
                taken += 1;
            }
            self.read = self.read.wrapping_add((HEADER_BYTES + len).next_multiple_of(8));
            if self.read.wrapping_sub(self.told) > self.data_bytes / 64 {
                self.tell();
            }
        }
        self.tell();
        taken
    }

    /// Bytes that have come since we last looked.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.producer.position(0).load(Ordering::Acquire).wrapping_sub(self.read)
    }

    /// Gives what was read back to the producers.
    fn tell(&mut self) {
        if self.told != self.read {
            self.consumer.position(0).store(self.read, Ordering::Release);
            self.told = self.read;
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.fd().as_fd()
    }
}
