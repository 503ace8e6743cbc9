//! Times off the CPU, and signals.

use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::counters;
use proctrace_classify::names::comm;
use proctrace_lineage::Register;
use proctrace_replay::records;
use proctrace_trace::Reader;
use proctrace_wire::layout::{self, SIGNAL_BY_INTERRUPT, WAIT_BY_END};
use proctrace_wire::{Architecture, Record, Stream, WaitFor, Woken};

use super::Loader;
use crate::waits::{SentSignal, Wait, Waker};

impl Loader<'_> {
    /// Reads all times off the CPU.
    pub(super) fn read_waits(&mut self, reader: &mut Reader<BufReader<File>>) {
        if reader.header().waits_min_ns.is_none() {
            return;
        }
        reader.rewind();
        let architecture = Architecture::of_machine(&reader.header().machine);
        let mut waits = Vec::new();
        let decoded = records(reader, Stream::Waits, |record| {
            if let Record::Wait(wait) = record {
                match self.wait(&wait, architecture) {
                    Some(wait) => waits.push(wait),
                    None => self.made.counts.orphans += 1,
                }
            }
        });
        self.made.undecodable += decoded.undecodable;
        order_by_task(&mut waits, self.made.tasks.len());
        self.made.waits = waits;
    }

    fn wait(&self, wait: &layout::Wait, architecture: Architecture) -> Option<Wait> {
        let task = u32::try_from(self.task_of_serial.get(wait.head.task)?).ok()?;
        let until_ns = wait.head.time_ns;
        let since_ns = wait.since_ns.min(until_ns);
        let waker = match Woken::of(wait, architecture) {
            Woken::ByTask(serial) => self.waker(serial, wait.waker_tgid),
            Woken::ByOutsider(pid) => Waker::Outside(pid),
            Woken::ByInterrupt => Waker::Interrupt,
            Woken::NotAsleep => Waker::None,
            Woken::Unknown => Waker::Unknown,
        };
        let ended = wait.bits & WAIT_BY_END != 0;
        let times_ns = [since_ns, wait.woken_ns.clamp(since_ns, until_ns), until_ns];
        Some(Wait::new(task, WaitFor::of(wait, architecture), (waker, ended), times_ns))
    }

    /// The task with a serial number, or its process if it is not in the recording.
    fn waker(&self, serial: u32, pid: i32) -> Waker {
        let task = self.task_of_serial.get(serial).and_then(|task| u32::try_from(task).ok());
        task.map_or(Waker::Outside(pid), Waker::Task)
    }

    pub(super) fn signal(&mut self, signal: &layout::Signal) {
        let Some(process) = self.process(signal.process) else {
            self.made.counts.orphans += 1;
            return;
        };
        let by_interrupt = signal.bits & SIGNAL_BY_INTERRUPT != 0;
        let sender = match signal.sender {
            _ if by_interrupt => Waker::Interrupt,
            0 => Waker::Outside(signal.sender_tgid),
            serial => self.waker(serial, signal.sender_tgid),
        };
        self.made.signals.push(SentSignal {
            time_ns: signal.head.time_ns,
            process: u32::try_from(process).unwrap_or(u32::MAX),
            signal: signal.signal,
            code: signal.code,
            sender,
            sender_name: if by_interrupt { String::new() } else { comm(&signal.sender_comm) },
        });
    }
}

/// Puts waits in order of their tasks, those of a task in order of their ends and begins.
///
/// Tasks are numbered in order of birth, and a task's waits arrive in order but for those that two CPUs recorded: what
/// is counted by task hardly needs sorting. Each wait is moved to its place by exchanges, without memory for a copy.
fn order_by_task(waits: &mut [Wait], tasks: usize) {
    // Where the waits of each task begin; while places are given out, the next one.
    let mut next = counters(tasks + 1);
    for wait in &*waits {
        next[wait.task as usize + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let place = |wait: &Wait| {
        let next = &mut next[wait.task as usize];
        *next += 1;
        *next - 1
    };
    let mut places: Vec<u32> = waits.iter().map(place).collect();
    for at in 0..waits.len() {
        while places[at] as usize != at {
            let place = places[at] as usize;
            waits.swap(at, place);
            places.swap(at, place);
        }
    }
    let key = |wait: &Wait| (wait.until_ns(), wait.since_ns());
    for of_task in waits.chunk_by_mut(|one, other| one.task == other.task) {
        if !of_task.is_sorted_by_key(key) {
            of_task.sort_unstable_by_key(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proctrace_wire::WaitFor;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn waits_are_in_the_order_of_a_sort(
            times in proptest::collection::vec((0..5_u32, 0..9_u64, 0..9_u64), 0..60),
        ) {
            let wait = |(task, since_ns, lasts_ns): &(u32, u64, u64)| {
                let until_ns = since_ns + lasts_ns;
                let times_ns = [*since_ns, until_ns, until_ns];
                Wait::new(*task, WaitFor::Timer, (Waker::None, false), times_ns)
            };
            let mut waits: Vec<Wait> = times.iter().map(wait).collect();
            let mut sorted = waits.clone();
            sorted.sort_by_key(|wait| (wait.task, wait.until_ns(), wait.since_ns()));
            order_by_task(&mut waits, 5);
            prop_assert_eq!(waits, sorted);
        }
    }
}
