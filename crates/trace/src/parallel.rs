//! Unpacking blocks on several threads, and returning them in file order.

use std::collections::VecDeque;
use std::io::{self, Read, Seek};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use crate::Reader;
use crate::block::{BlockInfo, RawHeader};
use crate::unpack::Unpacker;

/// Blocks read ahead per thread: one being unpacked, one queued.
const IN_FLIGHT: usize = 2;

/// A block on its way to a thread, or back.
#[derive(Default)]
struct Job {
    stored: Vec<u8>,
    raw: Vec<u8>,
    sound: bool,
}

/// A thread that unpacks blocks, one after the other.
struct Worker {
    jobs: Sender<(RawHeader, Job)>,
    done: Receiver<Job>,
}

impl Worker {
    /// Starts a thread, which ends when this is dropped.
    fn spawn<'scope>(scope: &'scope Scope<'scope, '_>) -> io::Result<Self> {
        let (jobs, to_do) = channel::<(RawHeader, Job)>();
        let (finished, done) = channel();
        std::thread::Builder::new().name("unpack".into()).spawn_scoped(scope, move || {
            let mut unpacker = Unpacker::default();
            while let Ok((header, mut job)) = to_do.recv() {
                job.sound = unpacker.unpack(&header, &job.stored, &mut job.raw);
                if finished.send(job).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs, done })
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Passes the records of every following block that `wanted` accepts to `take`, in file order.
    ///
    /// `threads` threads unpack blocks while `take` runs; with 0 the caller's own thread does both.
    /// The number of threads affects neither the records passed nor [`Reader::damage`] and
    /// [`Reader::trailer`], which are complete on return. Two blocks per thread are in memory at a
    /// time.
    pub fn each_block(
        &mut self,
        threads: usize,
        wanted: impl Fn(&BlockInfo) -> bool,
        mut take: impl FnMut(&BlockInfo, &[u8]),
    ) {
        if threads == 0 {
            return self.each_block_here(wanted, take);
        }
        std::thread::scope(|scope| {
            // Fewer threads than requested only take longer.
            let workers: Vec<Worker> =
                (0..threads).map_while(|_| Worker::spawn(scope).ok()).collect();
            if workers.is_empty() {
                return self.each_block_here(wanted, take);
            }
            let mut waiting = VecDeque::with_capacity(IN_FLIGHT * workers.len());
            let mut spare: Vec<Job> = Vec::new();
            // Blocks are distributed round-robin, so that they can be collected in order.
            let (mut sent, mut taken) = (0, 0);
            let mut more = true;
            loop {
                while more && waiting.len() < IN_FLIGHT * workers.len() {
                    let mut job = spare.pop().unwrap_or_default();
                    let Some(found) = self.next_stored(&wanted, &mut job.stored) else {
                        more = false;
                        break;
                    };
                    // If a thread has ended, its channel is closed, which is detected below.
                    let _ = workers[sent % workers.len()].jobs.send((found.header, job));
                    sent += 1;
                    waiting.push_back(found);
                }
                let Some(found) = waiting.pop_front() else { return };
                let job = workers[taken % workers.len()].done.recv().unwrap_or_default();
                taken += 1;
                if let Some(info) = self.settle(&found, job.sound.then_some(&job.raw)) {
                    take(&info, &job.raw);
                }
                spare.push(job);
            }
        });
    }

    /// The same on this thread.
    fn each_block_here(
        &mut self,
        wanted: impl Fn(&BlockInfo) -> bool,
        mut take: impl FnMut(&BlockInfo, &[u8]),
    ) {
        let mut unpacker = Unpacker::default();
        let Job { mut stored, mut raw, .. } = Job::default();
        while let Some(found) = self.next_stored(&wanted, &mut stored) {
            let sound = unpacker.unpack(&found.header, &stored, &mut raw);
            if let Some(info) = self.settle(&found, sound.then_some(&raw)) {
                take(&info, &raw);
            }
        }
    }
}
