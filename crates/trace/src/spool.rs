//! Collecting records into blocks, written by a separate thread.
//!
//! The thread that drains the kernel's rings must never wait for a disk, or a slow write would fill
//! the rings. So it only copies records into a block; a full block goes through a bounded queue to
//! the thread that compresses and writes it. If that queue is full too, the first thread waits, and
//! the kernel counts the records that do not fit the rings meanwhile.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use proctrace_wire::Stream;

use crate::error::WriteError;
use crate::header::Trailer;
use crate::writer::Writer;

/// Bytes of records per block: large enough to compress well, small enough that losing one loses
/// little.
const BLOCK_BYTES: usize = 512 << 10;

/// Blocks that may wait to be written: 32 MiB, a second of the heaviest load.
const QUEUED_BLOCKS: usize = 64;

#[derive(Debug)]
struct Filled {
    stream: Stream,
    records: u32,
    first_ns: u64,
    last_ns: u64,
    bytes: Vec<u8>,
}

impl Filled {
    fn new(stream: Stream, bytes: Vec<u8>) -> Self {
        Self { stream, records: 0, first_ns: u64::MAX, last_ns: 0, bytes }
    }
}

/// Accepts records one by one and writes them in the background.
#[derive(Debug)]
pub struct Spool<W> {
    open: [Filled; Stream::ALL.len()],
    queue: SyncSender<Filled>,
    emptied: Receiver<Vec<u8>>,
    thread: JoinHandle<Result<Writer<W>, WriteError>>,
}

impl<W: Write + Send + 'static> Spool<W> {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// When the thread cannot be created.
    pub fn new(mut writer: Writer<W>) -> Result<Self, WriteError> {
        let (queue, filled) = sync_channel::<Filled>(QUEUED_BLOCKS);
        let (give_back, emptied) = sync_channel(QUEUED_BLOCKS);
        let thread =
            std::thread::Builder::new().name("proctrace-write".into()).spawn(move || {
                for block in filled {
                    let Filled { stream, records, first_ns, last_ns, mut bytes } = block;
                    writer.append(stream, records, first_ns, last_ns, &bytes)?;
                    bytes.clear();
                    // At the end the receiver is gone.
                    let _ = give_back.try_send(bytes);
                }
                Ok(writer)
            })?;
        Ok(Self {
            open: Stream::ALL.map(|stream| Filled::new(stream, Vec::with_capacity(BLOCK_BYTES))),
            queue,
            emptied,
            thread,
        })
    }

    /// Adds one record.
    ///
    /// # Errors
    /// When an earlier block could not be written; [`Spool::finish`] then returns the reason.
    #[inline]
    pub fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> Result<(), WriteError> {
        if self.open[stream as usize - 1].bytes.len() + record.len() > BLOCK_BYTES {
            self.hand_over(stream)?;
        }
        let block = &mut self.open[stream as usize - 1];
        block.bytes.extend_from_slice(record);
        block.records += 1;
        block.first_ns = block.first_ns.min(time_ns);
        block.last_ns = block.last_ns.max(time_ns);
        Ok(())
    }

    /// Queues all records collected so far for writing, so that a crash does not lose them.
    ///
    /// # Errors
    /// As [`Spool::push`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Stream::ALL.into_iter().try_for_each(|stream| self.hand_over(stream))
    }

    /// Writes everything and the trailer; returns the output and the bytes written.
    ///
    /// # Errors
    /// The first error of the writing thread.
    pub fn finish(mut self, trailer: &Trailer) -> Result<(W, u64), WriteError> {
        // If the thread has ended, joining it returns the reason.
        let flushed = self.flush();
        drop(self.queue);
        let writer = self.thread.join().map_err(|_| WriteError::ThreadGone)??;
        flushed?;
        writer.finish(trailer)
    }

    fn hand_over(&mut self, stream: Stream) -> Result<(), WriteError> {
        let open = &mut self.open[stream as usize - 1];
        if open.records == 0 {
            return Ok(());
        }
        let bytes = self.emptied.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK_BYTES));
        let full = std::mem::replace(open, Filled::new(stream, bytes));
        self.queue.send(full).map_err(|_| WriteError::ThreadGone)
    }
}
