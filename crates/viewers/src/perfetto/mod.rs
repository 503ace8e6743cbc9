//! Perfetto traces: tracks, slices, counters and flows of track events, in protobuf.
//!
//! Tracks are told apart by uuids made of our own numbers. trace_processor, however, looks for
//! processes by pid in the order of time stamps, so descriptors have the time of birth, and an event
//! of the scheduler says when a pid is free again.

mod fields;
mod notes;

use std::io::{self, Write};

use proctrace_findings::{
    Figure, Timeline, TimelineCounter, TimelineItem, TimelinePhase, TimelineProcess, TimelineRun,
    TimelineStep, TimelineThread, TimelineWait,
};

use self::fields::{
    clock, counters, event, ftrace, packet, process, system, thread, track, utsname,
};
use self::notes::{Note, Notes};
use crate::proto::Message;
use crate::{Viewer, Written, text};

/// Events and descriptors are of two writers: events also belong to the thread of the last descriptor
/// of their writer.
const EVENTS: u64 = 1;
const DESCRIPTORS: u64 = 2;

/// Tracks of each kind have numbers of their own.
#[derive(Clone, Copy)]
enum Track {
    Process(u32),
    Task(u32),
    Counter(u64),
    Path,
    Phases,
}

impl Track {
    fn uuid(self) -> u64 {
        match self {
            Self::Process(process) => 1 << 48 | u64::from(process),
            Self::Task(task) => 2 << 48 | u64::from(task),
            Self::Counter(counter) => 3 << 48 | counter,
            Self::Path => 4 << 48,
            Self::Phases => 5 << 48,
        }
    }
}

pub(crate) struct Perfetto<W> {
    out: W,
    begin_ns: u64,
    packet: Message,
    counters: u64,
    has_path: bool,
    has_phases: bool,
    slices: u64,
    /// The process whose threads come next.
    program: String,
    pid: i32,
}

impl<W: Write> Perfetto<W> {
    pub(crate) fn begin(timeline: &Timeline, out: W) -> io::Result<Self> {
        let mut made = Self {
            out,
            begin_ns: timeline.begin_boottime_ns,
            packet: Message::default(),
            counters: 0,
            has_path: false,
            has_phases: false,
            slices: 0,
            program: String::new(),
            pid: 0,
        };
        let (boottime_ns, unix_ns) = (timeline.begin_boottime_ns, timeline.begin_unix_ns);
        made.put(0, |packet| {
            packet.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, ns) in [(clock::BOOTTIME, boottime_ns), (clock::REALTIME, unix_ns)] {
                    snapshot.message(clock::CLOCKS, |clock| {
                        clock.uint(clock::ID, id);
                        clock.uint(clock::TIMESTAMP, ns);
                    });
                }
                snapshot.uint(clock::PRIMARY, clock::BOOTTIME);
            });
            packet.message(packet::INTERNED_DATA, notes::intern);
        })?;
        made.put(0, |packet| {
            packet.message(packet::SYSTEM_INFO, |info| {
                info.message(system::UTSNAME, |name| {
                    name.text(utsname::SYSNAME, "Linux");
                    name.text(utsname::RELEASE, &text::visible(&timeline.kernel));
                    name.text(utsname::MACHINE, &text::visible(&timeline.machine));
                });
            });
        })?;
        Ok(made)
    }

    /// Writes a packet of this time.
    fn put(&mut self, time_ns: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.put_by(EVENTS, time_ns, fill)
    }

    fn put_by(
        &mut self,
        sequence: u64,
        time_ns: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let time_ns = self.begin_ns.saturating_add(time_ns);
        self.packet.clear();
        self.packet.message(packet::OF_TRACE, |packet| {
            packet.uint(packet::TIMESTAMP, time_ns);
            packet.uint(packet::SEQUENCE_ID, sequence);
            fill(packet);
        });
        self.out.write_all(self.packet.bytes())
    }

    fn descriptor(
        &mut self,
        time_ns: u64,
        track: Track,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.put_by(DESCRIPTORS, time_ns, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, track.uuid());
                fill(descriptor);
            });
        })
    }

    fn event(
        &mut self,
        time_ns: u64,
        track: Track,
        kind: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.put(time_ns, |packet| {
            packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(event::TYPE, kind);
                event.uint(event::TRACK, track.uuid());
                fill(event);
            });
        })
    }

    /// A slice; without an end if that is not known.
    fn slice(
        &mut self,
        (begin_ns, end_ns): (u64, Option<u64>),
        track: Track,
        (category, name): (&str, &str),
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.slices += 1;
        self.event(begin_ns, track, event::BEGIN, |event| {
            event.text(event::CATEGORY, category);
            event.text(event::NAME, &text::visible(name));
            fill(event);
        })?;
        end_ns.map_or(Ok(()), |end_ns| self.event(end_ns, track, event::END, |_| {}))
    }

    fn process(&mut self, of: &TimelineProcess<'_>) -> io::Result<()> {
        let name = text::program(of.program);
        (self.program, self.pid) = (text::visible(name).into_owned(), of.pid);
        let begin_ns = self.begin_ns.saturating_add(of.begin_ns);
        let track = Track::Process(of.process);
        self.descriptor(of.begin_ns, track, |descriptor| {
            descriptor.message(track::PROCESS, |process| {
                process.int(process::PID, of.pid.into());
                process.text(process::NAME, &text::visible(name));
                process.uint(process::START, begin_ns);
            });
        })?;
        let flow = u64::from(of.process) + 1;
        if let Some(forker) = of.forker {
            let track = match forker.is_first {
                true => Track::Process(forker.process),
                false => Track::Task(forker.task),
            };
            self.event(of.begin_ns, track, event::INSTANT, |event| {
                event.text(event::CATEGORY, "fork");
                event.text(event::NAME, "fork");
                event.fixed64(event::FLOW, flow);
                event.note(Note::ChildPid, i64::from(of.pid));
            })?;
        }
        self.slice((of.begin_ns, of.end_ns), track, ("process", name), |event| {
            if of.forker.is_some() {
                event.fixed64(event::TERMINATING_FLOW, flow);
            }
            notes::of_process(event, of);
        })?;
        of.end_ns.map_or(Ok(()), |end_ns| self.pid_is_free(end_ns, of.pid))
    }

    /// Writes what the kernel reports when a process is gone: sched_process_free.
    fn pid_is_free(&mut self, time_ns: u64, pid: i32) -> io::Result<()> {
        let at_ns = self.begin_ns.saturating_add(time_ns);
        self.put(time_ns, |packet| {
            packet.message(packet::FTRACE_EVENTS, |bundle| {
                bundle.uint(ftrace::CPU, 0);
                bundle.message(ftrace::EVENT, |event| {
                    event.uint(ftrace::TIMESTAMP, at_ns);
                    // In the context of the idle task, as if by RCU.
                    event.uint(ftrace::PID, 0);
                    event.message(ftrace::PROCESS_FREE, |free| {
                        free.text(ftrace::FREE_COMM, "");
                        free.int(ftrace::FREE_PID, pid.into());
                    });
                });
            });
        })
    }

    fn thread(&mut self, of: &TimelineThread) -> io::Result<()> {
        let (name, pid, track) = (self.program.clone(), self.pid, Track::Task(of.task));
        self.descriptor(of.begin_ns, track, |descriptor| match of.tid {
            Some(tid) => descriptor.message(track::THREAD, |thread| {
                thread.int(thread::PID, pid.into());
                thread.int(thread::TID, tid.into());
                thread.text(thread::NAME, &name);
            }),
            None => {
                descriptor.uint(track::PARENT, Track::Process(of.process).uuid());
                descriptor.text(track::NAME, "thread");
            }
        })?;
        if of.is_first {
            // Its life is that of the process, as far as anybody looks.
            return Ok(());
        }
        self.slice((of.begin_ns, of.end_ns), track, ("thread", &name), |event| {
            event.figure(Figure::CpuNs, of.cpu_ns);
        })
    }

    fn run(&mut self, run: &TimelineRun<'_>) -> io::Result<()> {
        let times = (run.begin_ns, run.end_ns);
        let name = text::program(run.program);
        self.slice(times, Track::Process(run.process), ("exec", name), |event| {
            notes::of_run(event, run);
        })
    }

    fn step(&mut self, step: &TimelineStep<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_path, true) {
            self.descriptor(0, Track::Path, |track| track.text(track::NAME, "critical path"))?;
        }
        let (times, name) = ((step.begin_ns, Some(step.end_ns)), text::program(step.program));
        self.slice(times, Track::Path, ("critical path", name), |event| {
            event.note(Note::Doing, step.doing);
            event.note(Note::Pid, i64::from(step.pid));
        })
    }

    fn phase(&mut self, phase: &TimelinePhase<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_phases, true) {
            self.descriptor(0, Track::Phases, |track| track.text(track::NAME, "phases"))?;
        }
        let times = (phase.begin_ns, Some(phase.end_ns));
        self.slice(times, Track::Phases, ("phase", phase.name), |_| {})
    }

    fn wait(&mut self, wait: &TimelineWait) -> io::Result<()> {
        let track = Track::Task(wait.task);
        let woken_ns = wait.woken_ns.clamp(wait.begin_ns, wait.end_ns.max(wait.begin_ns));
        if woken_ns > wait.begin_ns {
            let name = format!("waiting for {}", wait.waits_for);
            let times = (wait.begin_ns, Some(woken_ns));
            self.slice(times, track, ("wait", &name), |event| {
                event.note_known(Note::WakerPid, wait.waker_pid.map(i64::from));
            })?;
        }
        if wait.end_ns > woken_ns {
            let times = (woken_ns, Some(wait.end_ns));
            self.slice(times, track, ("wait", "waiting for a CPU"), |_| {})?;
        }
        Ok(())
    }

    fn counter(&mut self, counter: &TimelineCounter<'_>) -> io::Result<()> {
        let Some((first_ns, _)) = counter.values.first() else { return Ok(()) };
        let track = Track::Counter(self.counters);
        self.counters += 1;
        self.descriptor(*first_ns, track, |descriptor| {
            descriptor.text(track::NAME, counter.name);
            if let Some(process) = counter.process {
                descriptor.uint(track::PARENT, Track::Process(process).uuid());
            }
            descriptor.message(track::COUNTER, |track| match counter.unit {
                "B" => track.uint(counters::UNIT, counters::BYTES),
                unit => track.text(counters::UNIT_NAME, unit),
            });
        })?;
        for (time_ns, value) in counter.values {
            self.event(*time_ns, track, event::COUNTER, |event| {
                event.double(event::DOUBLE_VALUE, *value);
            })?;
        }
        Ok(())
    }
}

impl<W: Write> Viewer for Perfetto<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        match item {
            TimelineItem::Process(process) => self.process(process),
            TimelineItem::Thread(thread) => self.thread(thread),
            TimelineItem::Run(run) => self.run(run),
            TimelineItem::Step(step) => self.step(step),
            TimelineItem::Phase(phase) => self.phase(phase),
            TimelineItem::Wait(wait) => self.wait(wait),
            TimelineItem::Counter(counter) => self.counter(counter),
            TimelineItem::Stack(_) => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        self.out.flush()?;
        Ok(Written { items: self.slices, names: ("slice", "slices"), notes: Vec::new() })
    }
}
