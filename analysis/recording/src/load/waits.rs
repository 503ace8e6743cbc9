//! Times off the CPU, and signals.

use std::fs::File;
use std::io::BufReader;

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
        waits.sort_unstable_by_key(|wait| (wait.task, wait.until_ns(), wait.since_ns()));
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
