//! Unpacking blocks on several threads, and handing them out in the order of the file.

use std::collections::VecDeque;
use std::io::{self, Read, Seek};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use crate::Reader;
use crate::block::{BlockInfo, RawHeader};
use crate::unpack::Unpacker;

/// So many blocks of each thread are read before the first of them is taken: one that it unpacks,
/// one that waits for it.
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
    /// Begins a thread, which ends when this is dropped.
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
    /// Hands the records of every block that `wanted` says yes to, from here on, to `take`, in the
    /// order of the file.
    ///
    /// `threads` threads unpack blocks while others are taken; with 0 the caller's own does both. How
    /// many there are changes nothing of what is handed out, nor of [`Reader::damage`] and
    /// [`Reader::trailer`], which are whole when this returns. Two blocks of each thread are in
    /// memory at a time.
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
            // With fewer threads than were asked for it takes longer, and that is all.
            let workers: Vec<Worker> =
                (0..threads).map_while(|_| Worker::spawn(scope).ok()).collect();
            if workers.is_empty() {
                return self.each_block_here(wanted, take);
            }
            let mut waiting = VecDeque::with_capacity(IN_FLIGHT * workers.len());
            let mut spare: Vec<Job> = Vec::new();
            // Each thread gets every n-th block, so that they come back in order.
            let (mut sent, mut taken) = (0, 0);
            let mut more = true;
            loop {
                while more && waiting.len() < IN_FLIGHT * workers.len() {
                    let mut job = spare.pop().unwrap_or_default();
                    let Some(found) = self.next_stored(&wanted, &mut job.stored) else {
                        more = false;
                        break;
                    };
                    // A thread that is gone took its channel with it, as is seen below.
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
