//! Passes over all live tasks, read from /proc by the recorder.

use std::collections::BTreeMap;

use proctrace_record::{Pass, boot_ns};
use proctrace_wire::layout::{SAMPLE_FINAL, SAMPLE_WITHHELD, Sample, Tick};
use proctrace_wire::{BlindSpot, Frame, IntoBytes, Kind, Record};
use zerocopy::FromZeros;

use crate::procfs::{Io, Usage};
use crate::records::head;
use crate::sys::Tid;

/// The tasks that are alive as far as the recorder has read.
#[derive(Debug, Default)]
pub(crate) struct Alive {
    /// Tasks by serial.
    tasks: BTreeMap<u32, Sampled>,
}

/// A live task and its last sample.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    process: u32,
    tgid: Tid,
    tid: Tid,
    /// None before the first.
    run_ns: Option<u64>,
    state: u8,
}

impl Alive {
    /// Notes who has come and gone.
    pub(crate) fn note(&mut self, frame: Frame<'_>) {
        const CONCERNED: [Kind; 5] =
            [Kind::Attach, Kind::Fork, Kind::Exec, Kind::Exit, Kind::Blind];
        if !CONCERNED.iter().any(|kind| *kind as u16 == frame.head.kind) {
            return;
        }
        let mut add = |serial, process, tgid, tid| {
            self.tasks.insert(serial, Sampled { process, tgid, tid, run_ns: None, state: 0 });
        };
        match Record::decode(frame) {
            Ok(Record::Attach(attach)) => {
                add(attach.head.task, attach.process, attach.tgid, attach.tid);
            }
            Ok(Record::Fork(fork)) => {
                add(fork.child, fork.child_process, fork.child_tgid, fork.child_tid);
            }
            Ok(Record::Exec(exec)) => {
                if let Some(task) = self.tasks.get_mut(&exec.fixed.head.task) {
                    task.tid = exec.fixed.tid;
                }
            }
            Ok(Record::Exit(exit)) => {
                self.tasks.remove(&exit.head.task);
            }
            // Its end will not be seen, and then another task may have its id.
            Ok(Record::Blind(blind)) if blind.what == BlindSpot::LetGo as u32 => {
                self.tasks.remove(&blind.head.task);
            }
            _ => {}
        }
    }

    /// Replaces `samples` with one pass.
    pub(crate) fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) {
        samples.clear();
        let mut tick = Tick::new_zeroed();
        tick.begin_ns = boot_ns();
        for (serial, task) in &mut self.tasks {
            let Some(mut usage) = Usage::of_stat(task.tgid, task.tid) else { continue };
            count(&mut tick, usage.state);
            let is_dead = matches!(usage.state, b'Z' | b'X');
            let has_changed = task.run_ns != Some(usage.run_ns) || task.state != usage.state;
            let is_wanted = match pass {
                Pass::Changed => has_changed && !is_dead,
                Pass::Final | Pass::Every => !is_dead,
            };
            if !is_wanted {
                continue;
            }
            (task.run_ns, task.state) = (Some(usage.run_ns), usage.state);
            usage.io = Io::of(task.tgid, task.tid);
            let sample = sample_of(*serial, task, &usage, pass == Pass::Final);
            samples.extend_from_slice(sample.as_bytes());
            tick.sampled += 1;
        }
        tick.head = head(Kind::Tick, 0, boot_ns());
        tick.head.size = size_of::<Tick>() as u16;
        samples.extend_from_slice(tick.as_bytes());
    }
}

fn count(tick: &mut Tick, state: u8) {
    tick.tasks += 1;
    let of_state = match state {
        b'R' => &mut tick.running,
        b'S' | b'I' => &mut tick.sleeping,
        b'D' => &mut tick.uninterruptible,
        b'T' | b't' => &mut tick.stopped,
        _ => &mut tick.dead,
    };
    *of_state += 1;
}

fn sample_of(serial: u32, task: &Sampled, usage: &Usage, is_final: bool) -> Sample {
    let mut sample = Sample::new_zeroed();
    sample.head = head(Kind::Sample, serial, boot_ns());
    sample.head.size = size_of::<Sample>() as u16;
    sample.process = task.process;
    (sample.tgid, sample.tid) = (task.tgid, task.tid);
    sample.state = usage.state.into();
    sample.bits = if is_final { SAMPLE_FINAL } else { 0 };
    if usage.io.is_none() {
        sample.bits |= SAMPLE_WITHHELD;
    }
    let Io { rchar, wchar, read_bytes, write_bytes } = usage.io.unwrap_or_default();
    sample.run_ns = usage.run_ns;
    (sample.utime_ns, sample.stime_ns) = (usage.utime_ns, usage.stime_ns);
    (sample.minflt, sample.majflt) = (usage.minflt, usage.majflt);
    (sample.rchar, sample.wchar) = (rchar, wchar);
    (sample.read_bytes, sample.write_bytes) = (read_bytes, write_bytes);
    sample.run_delay_ns = usage.run_delay_ns;
    sample.rss_pages = usage.rss_pages;
    sample
}
