//! A recording from the command's start to the last record.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use aya::maps::{MapData, RingBuf};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_wire::layout::{Head, LOSS_ANY_CPU, Loss, SAMPLE_FINAL};
use proctrace_wire::{Frame, Frames, IntoBytes, Kind, LossReason, Record, Stream};

use crate::clock::boot_ns;
use crate::command::Command;
use crate::count::Counts;
use crate::error::ProbeError;
use crate::events::wait;
use crate::launch::{LaunchError, launch};
use crate::object::{Orders, Probe};
use crate::options::{Options, Wait};
use crate::rings::drain;
use crate::sampler;

/// Where records go.
pub trait Sink {
    /// Takes one record.
    ///
    /// # Errors
    /// When it cannot be kept. The recording then ends, but the payload does not.
    fn push(&mut self, stream: Stream, time_ns: u64, record: &[u8]) -> io::Result<()>;

    /// Makes sure that what was taken survives the recorder. Called at least once a second.
    ///
    /// # Errors
    /// As [`Sink::push`].
    fn flush(&mut self) -> io::Result<()>;
}

/// A recording that is over.
#[derive(Debug)]
pub struct Finished {
    /// What came in.
    pub counts: Counts,
    /// Why it ended.
    pub ended: Ended,
    /// CLOCK_BOOTTIME then.
    pub ended_ns: u64,
    /// What became of the command.
    pub payload: Option<Payload>,
    /// What did not make it.
    pub losses: Vec<LossCount>,
    /// Processes that were still there.
    pub alive: Vec<Alive>,
    /// Why records stopped being kept, if they did.
    pub sink_error: Option<io::Error>,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every task of the tree had exited.
    TreeExited,
    /// The command had exited, and the rest was not waited for any longer.
    RootExited,
    /// Someone asked for it.
    Interrupted,
}

/// What the kernel says of the command when it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// How it ended.
    pub outcome: Outcome,
    /// CLOCK_BOOTTIME then.
    pub exited_ns: u64,
    /// User time of it and of all it waited for.
    pub user_ns: u64,
    /// System time likewise.
    pub system_ns: u64,
    /// The largest peak RSS among them.
    pub maxrss_bytes: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// A number of lost records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossCount {
    /// Of what kind.
    pub kind: Kind,
    /// Why.
    pub reason: LossReason,
    /// On which CPU, where known.
    pub cpu: Option<u32>,
    /// How many.
    pub count: u64,
}

/// A process that was still there when the recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alive {
    /// Its pid, in the initial pid namespace.
    pub pid: i32,
    /// Its state, as the letter in /proc/PID/stat.
    pub state: char,
}

/// What has been collected is handed on at least this often, so that killing the recorder loses
/// no more.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// While only the end of stragglers is awaited, they are looked for this often.
const STRAGGLER_INTERVAL: Duration = Duration::from_millis(5);

/// Runs `command` and records it and its descendants into `sink`.
///
/// # Errors
/// When the command cannot be started ([`ProbeError::Exec`], [`ProbeError::Launch`]), or when
/// the kernel's interfaces fail while it runs; the payload is then left alone.
pub fn record(
    mut probe: Probe,
    command: &Command,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Finished, ProbeError> {
    probe.maps.give_orders(Orders { launch_armed: 1, final_pass: 0 })?;
    let root = launch(command, probe.signals.mask_before()).map_err(|error| match error {
        LaunchError::Fork(source) => ProbeError::Launch(source),
        LaunchError::Exec(source) => {
            let program = command.program.to_string_lossy().into_owned();
            ProbeError::Exec { program, source }
        }
    })?;
    let mut session = Session {
        probe,
        options,
        root,
        payload: None,
        intake: Intake { sink, counts: Counts::default(), error: None },
        samples: Vec::new(),
        losses: Vec::new(),
    };
    let ended = session.follow()?;
    session.finish(ended)
}

struct Session<'a> {
    probe: Probe,
    options: &'a Options,
    root: Pid,
    payload: Option<Payload>,
    intake: Intake<'a>,
    samples: Vec<u8>,
    losses: Vec<LossCount>,
}

/// Takes records in and counts them.
struct Intake<'a> {
    sink: &'a mut dyn Sink,
    counts: Counts,
    error: Option<io::Error>,
}

impl Intake<'_> {
    /// After an error records are still taken from the rings, but kept no longer.
    fn take(&mut self, stream: Stream, frame: Frame<'_>) {
        self.counts.add(frame);
        if self.error.is_none() {
            self.error = self.sink.push(stream, frame.head.time_ns, frame.bytes).err();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.sink.flush().err();
        }
    }
}

impl Session<'_> {
    /// Until the tree has ended, or is not waited for any longer.
    fn follow(&mut self) -> Result<Ended, ProbeError> {
        let mut next_tick = Instant::now() + self.options.interval;
        let mut next_flush = Instant::now() + FLUSH_INTERVAL;
        let mut give_up = None;
        loop {
            let mut pause = next_tick.saturating_duration_since(Instant::now());
            if self.payload.is_some() {
                pause = pause.min(STRAGGLER_INTERVAL);
            }
            wait(ring_descriptors(&self.probe), &self.probe.signals, pause)
                .map_err(ProbeError::system("wait for events"))?;
            self.drain_rings();

            let now = Instant::now();
            if now >= next_tick {
                self.sample()?;
                // A late tick moves the later ones: a burst of them would say nothing.
                next_tick = now + self.options.interval;
            }
            if now >= next_flush {
                self.note_losses()?;
                self.intake.flush();
                next_flush = now + FLUSH_INTERVAL;
            }
            while let Some(received) =
                self.probe.signals.next().map_err(ProbeError::system("read a signal"))?
            {
                match (received.signal, self.payload.is_some()) {
                    (Signal::SIGCHLD, _) => {}
                    // What a terminal sends, the payload has as well; what was sent to us alone
                    // is meant for it. Either way the recording ends when it does.
                    (_, false) if received.from_terminal => {}
                    (signal, false) => {
                        let _ = kill(self.root, signal);
                    }
                    (_, true) => return Ok(Ended::Interrupted),
                }
            }
            // Asked at every turn, because a signal can get lost: to a tracer of ours, or to a
            // thread of a program that uses this crate.
            if self.payload.is_none() {
                self.reap_root()?;
            }
            if self.payload.is_some() {
                let counts = self.probe.maps.task_counts()?;
                if counts.ended >= counts.born {
                    return Ok(Ended::TreeExited);
                }
                let give_up = *give_up.get_or_insert(now + self.options.grace);
                if self.options.wait == Wait::Root || now >= give_up {
                    return Ok(Ended::RootExited);
                }
            }
        }
    }

    /// Collects the rest, detaches, and sums up.
    fn finish(mut self, ended: Ended) -> Result<Finished, ProbeError> {
        let alive = match ended {
            Ended::TreeExited => Vec::new(),
            Ended::RootExited | Ended::Interrupted => self.last_samples()?,
        };
        let mut losses = self.probe.losses()?;
        // From here on nothing can be added: the programs are gone, their maps are still ours.
        let Probe { signals: _signals, ebpf, hooks, mut lifecycle, mut lookups, maps } = self.probe;
        drop(hooks);
        drop(ebpf);
        let intake = &mut self.intake;
        for (stream, ring) in [(Stream::Lifecycle, &mut lifecycle), (Stream::Lookups, &mut lookups)]
        {
            drain_all(stream, ring, intake);
        }
        for loss in maps.losses()? {
            match losses.iter_mut().find(|known| same_loss(known, &loss)) {
                Some(known) => known.count = loss.count,
                None => losses.push(loss),
            }
        }
        push_losses(intake, &self.losses, &losses);
        intake.flush();
        Ok(Finished {
            counts: std::mem::take(&mut intake.counts),
            ended,
            ended_ns: boot_ns(),
            payload: self.payload,
            losses,
            alive,
            sink_error: intake.error.take(),
        })
    }

    fn drain_rings(&mut self) {
        drain_all(Stream::Lifecycle, &mut self.probe.lifecycle, &mut self.intake);
        drain_all(Stream::Lookups, &mut self.probe.lookups, &mut self.intake);
    }

    fn sample(&mut self) -> Result<(), ProbeError> {
        sampler::pass(&mut self.probe.ebpf, &mut self.samples)?;
        for frame in Frames::new(&self.samples).flatten() {
            self.intake.take(Stream::Samples, frame);
        }
        Ok(())
    }

    fn note_losses(&mut self) -> Result<(), ProbeError> {
        let losses = self.probe.losses()?;
        push_losses(&mut self.intake, &self.losses, &losses);
        self.losses = losses;
        Ok(())
    }

    fn reap_root(&mut self) -> Result<(), ProbeError> {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: wait4(2) writes to the two, which outlive the call. nix has no wait4.
        let waited = unsafe {
            libc::wait4(self.root.as_raw(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr())
        };
        if waited < 0 {
            let error = io::Error::last_os_error();
            return Err(ProbeError::System { what: "wait for the command", source: error });
        }
        if waited == 0 || !(libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) {
            return Ok(());
        }
        // SAFETY: it was zeroed, which is a value, and filled by the kernel.
        let usage = unsafe { usage.assume_init() };
        self.payload = Some(Payload {
            outcome: if libc::WIFSIGNALED(status) {
                Outcome::Signal(libc::WTERMSIG(status))
            } else {
                Outcome::Code(libc::WEXITSTATUS(status))
            },
            exited_ns: boot_ns(),
            user_ns: timeval_ns(usage.ru_utime),
            system_ns: timeval_ns(usage.ru_stime),
            maxrss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        });
        Ok(())
    }

    /// Samples every task that is still there, and says which processes they are.
    fn last_samples(&mut self) -> Result<Vec<Alive>, ProbeError> {
        self.probe.maps.give_orders(Orders { launch_armed: 0, final_pass: 1 })?;
        self.sample()?;
        let samples = Frames::new(&self.samples).flatten().map(Record::decode);
        Ok(samples
            .filter_map(|record| match record {
                Ok(Record::Sample(sample))
                    if sample.tid == sample.tgid && sample.bits & SAMPLE_FINAL != 0 =>
                {
                    let state = u8::try_from(sample.state).map_or('?', char::from);
                    Some(Alive { pid: sample.tgid, state })
                }
                _ => None,
            })
            .collect())
    }
}

fn drain_all(stream: Stream, ring: &mut RingBuf<MapData>, intake: &mut Intake<'_>) {
    let Ok(_) = drain(ring, |frame| {
        intake.take(stream, frame);
        Ok::<_, std::convert::Infallible>(())
    });
}

fn ring_descriptors(probe: &Probe) -> [BorrowedFd<'_>; 2] {
    // SAFETY: both rings live as long as the probe that the result borrows. (aya gives AsFd only
    // where it can lend the map.)
    unsafe {
        [
            BorrowedFd::borrow_raw(probe.lifecycle.as_raw_fd()),
            BorrowedFd::borrow_raw(probe.lookups.as_raw_fd()),
        ]
    }
}

fn same_loss(a: &LossCount, b: &LossCount) -> bool {
    (a.kind, a.reason, a.cpu) == (b.kind, b.reason, b.cpu)
}

/// Records of what was lost since the last look.
fn push_losses(intake: &mut Intake<'_>, before: &[LossCount], now: &[LossCount]) {
    for loss in now.iter().filter(|loss| !before.contains(loss)) {
        let record = Loss {
            head: Head {
                kind: Kind::Loss as u16,
                size: u16::try_from(size_of::<Loss>()).expect("it is 32 bytes"),
                task: 0,
                time_ns: boot_ns(),
            },
            kind: loss.kind as u16,
            reason: loss.reason as u16,
            cpu: loss.cpu.unwrap_or(LOSS_ANY_CPU),
            count: loss.count,
        };
        for frame in Frames::new(record.as_bytes()).flatten() {
            intake.take(Stream::Lifecycle, frame);
        }
    }
}

fn timeval_ns(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
}
