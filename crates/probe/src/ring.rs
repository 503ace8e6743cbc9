//! Reads a kernel ring buffer in place.
//!
//! Its layout is that of kernel/bpf/ringbuf.c: a page with the consumer's position, a page with the
//! producers', then the data, mapped twice in a row so that every record is contiguous. A record
//! consists of eight bytes, four of them its length and two flags, then its data, padded to eight.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use aya::maps::{Map, MapData};
use proctrace_wire::{Frame, Frames};
use rustix::mm::ProtFlags;

use crate::mapping::Mapping;

/// Flag of a record that a producer is still writing.
const BUSY: u32 = 1 << 31;
/// Flag of a record that the producer has discarded.
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

/// The consumer of a ring; each ring has one.
///
/// aya also has one, but updates the consumer position after every single record. The position is
/// in memory that each producer reads for each record, so updating it rarely saves both sides the
/// transfer of a cache line.
#[derive(Debug)]
pub(crate) struct Ring {
    map: MapData,
    consumer: Mapping,
    producer: Mapping,
    page_bytes: usize,
    data_bytes: usize,
    /// The position read up to, and the position published to the kernel.
    read: usize,
    told: usize,
}

impl Ring {
    /// Maps a ring with a data area of this size.
    pub(crate) fn new(map: Map, data_bytes: u32) -> io::Result<Self> {
        let Map::RingBuf(map) = map else {
            return Err(io::Error::other("the map is not a ring buffer"));
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

    /// The position behind the last record present now.
    pub(crate) fn end(&self) -> usize {
        self.producer.position(0).load(Ordering::Acquire)
    }

    /// Passes every record before `end`, a position of this ring, to `take`; returns their number. Records that
    /// arrive meanwhile are left for the next call, so that this always ends.
    pub(crate) fn drain(&mut self, end: usize, mut take: impl FnMut(Frame<'_>)) -> usize {
        let mut taken = 0;
        while self.read != end {
            let at = self.page_bytes + (self.read & (self.data_bytes - 1));
            let header = self.producer.word(at).load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let len = (header & !DISCARDED) as usize;
            // The kernel creates no record larger than its ring, so all of it is within the second
            // mapping. Anyone else who could write here could do anything.
            if len > self.data_bytes {
                break;
            }
            if header & DISCARDED == 0 {
                // One item is one record; anything else would be a bug in the BPF programs, and
                // the size in its head is verified before it is used.
                // SAFETY: a committed record is not written to before its space is released,
                // which happens below.
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

    /// Size of the data area.
    pub(crate) fn len_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Bytes not read yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.end().wrapping_sub(self.read)
    }

    /// Releases the space of the records read to the producers.
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
