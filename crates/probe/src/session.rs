//! A recording from its start to the last record.

use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctrace_wire::layout::{ATTACH_ROOT, Attach, Head, LOSS_ANY_CPU, Loss, SAMPLE_FINAL, Sample};
use proctrace_wire::{Frame, Frames, IntoBytes, Kind, Record, Stream};

use crate::cgroup::{CgroupUsage, OwnCgroup};
use crate::clock::boot_ns;
use crate::command::Command;
use crate::count::Counts;
use crate::error::ProbeError;
use crate::hooks::{ADOPT_PROGRAM, SAMPLE_PROGRAM};
use crate::launch::{LaunchError, launch};
use crate::loss::LossCount;
use crate::object::{Orders, Pass, Probe};
use crate::options::{Options, Scope, Wait};
use crate::pace::Pace;
use crate::program_info::Program;
use crate::ring::Ring;
use crate::{detach, memory, snapshot};

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

    /// Called once, when everyone who was there before and was asked for is followed.
    fn ready(&mut self, processes: u64) {
        let _ = processes;
    }

    /// Called at most once, when the command has exited and `alive` tasks that it left are waited
    /// for, until `grace` after its exit, if that takes longer than a moment.
    fn waiting(&mut self, alive: u64, grace: Duration) {
        let _ = (alive, grace);
    }
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
    /// The programs that were loaded.
    pub programs: Vec<Program>,
    /// What the kernel counted for the recording's own cgroup, if it had one.
    pub cgroup: Option<CgroupUsage>,
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
    /// The time that was asked for is over.
    TimeOver,
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

/// Who waits for them is told only if they are still there after this.
const WAITING_TOLD_AFTER: Duration = Duration::from_millis(200);

/// No signal tells of the end of processes that are not our children.
const END_INTERVAL: Duration = Duration::from_millis(100);

/// At the end a ring is emptied at most so often: one that is filled meanwhile is filled by tasks
/// that go on, whose records nobody waits for.
const DRAINS_AT_THE_END: usize = 1000;

/// Records into `sink` whom the options say, and `command`, which it runs, with all descendants.
///
/// # Errors
/// When the command cannot be started ([`ProbeError::Exec`], [`ProbeError::Launch`]), or when
/// the kernel's interfaces fail while it runs; the payload is then left alone.
pub fn record(
    mut probe: Probe,
    command: Option<&Command>,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Finished, ProbeError> {
    let root = match command {
        Some(command) => Some(start(&mut probe, command)?),
        None => None,
    };
    let mut session = Session {
        probe,
        options,
        root,
        payload: None,
        own_cgroup: command.and_then(|command| command.cgroup.as_deref()),
        intake: Intake { sink, counts: Counts::default(), attached: Vec::new(), error: None },
        samples: Vec::new(),
        losses: Vec::new(),
    };
    session.adopt()?;
    let processes = session.intake.counts.processes;
    if let Scope::Pids(pids) = &options.scope
        && processes == 0
    {
        let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        return Err(ProbeError::Gone(format!("process {pids}")));
    }
    session.intake.sink.ready(processes);
    let ended = session.follow()?;
    session.finish(ended)
}

fn start(probe: &mut Probe, command: &Command) -> Result<Pid, ProbeError> {
    probe.maps.give_orders(Orders { launch_armed: 1, pass: Pass::Changed as u32 })?;
    let cgroup = command.cgroup.as_deref().map(OwnCgroup::descriptor);
    launch(command, probe.signals.mask_before(), cgroup).map_err(|error| match error {
        LaunchError::Fork(source) => ProbeError::Launch(source),
        LaunchError::Exec(source) => {
            let program = command.program.to_string_lossy().into_owned();
            ProbeError::Exec { program, source }
        }
    })
}

struct Session<'a> {
    probe: Probe,
    options: &'a Options,
    /// The command, where one was launched.
    root: Option<Pid>,
    payload: Option<Payload>,
    own_cgroup: Option<&'a OwnCgroup>,
    intake: Intake<'a>,
    samples: Vec<u8>,
    losses: Vec<LossCount>,
}

/// Takes records in and counts them.
struct Intake<'a> {
    sink: &'a mut dyn Sink,
    counts: Counts,
    /// Processes that were there before, and whose program is still to be told.
    attached: Vec<Attach>,
    error: Option<io::Error>,
}

impl Intake<'_> {
    /// After an error records are still taken from the rings, but kept no longer.
    fn take(&mut self, stream: Stream, frame: Frame<'_>) {
        self.counts.add(frame);
        if frame.head.kind == Kind::Attach as u16
            && let Ok(Record::Attach(attach)) = Record::decode(frame)
            && attach.bits & ATTACH_ROOT == 0
            && attach.head.task == attach.process
        {
            self.attached.push(attach);
        }
        if self.error.is_none() {
            self.error = self.sink.push(stream, frame.head.time_ns, frame.bytes).err();
        }
    }

    /// A record that the recorder makes itself.
    fn take_own(&mut self, stream: Stream, record: &[u8]) {
        for frame in Frames::new(record).flatten() {
            self.take(stream, frame);
        }
    }

    /// Tells what attached processes are running.
    fn tell_attached(&mut self) {
        for attach in std::mem::take(&mut self.attached) {
            if let Some(record) = snapshot::exec_before(&attach) {
                self.take_own(Stream::Lifecycle, &record);
            }
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.sink.flush().err();
        }
    }
}

impl Session<'_> {
    /// Follows who was there before and was asked for.
    fn adopt(&mut self) -> Result<(), ProbeError> {
        if self.options.scope == Scope::Launched && self.options.cgroup.is_none() {
            return Ok(());
        }
        let mut known = self.probe.maps.task_counts().born;
        loop {
            self.pass(ADOPT_PROGRAM)?;
            self.drain_rings();
            let now_known = self.probe.maps.task_counts().born;
            if now_known == known {
                return Ok(());
            }
            known = now_known;
        }
    }

    /// Whether tasks can come to be asked for without being made by one that is followed.
    fn is_open(&self) -> bool {
        self.options.scope == Scope::All || self.options.cgroup.is_some()
    }

    /// Until the tree has ended, or is not waited for any longer.
    fn follow(&mut self) -> Result<Ended, ProbeError> {
        let began = Instant::now();
        let mut pace = Pace::new(self.options.interval);
        let mut next_tick = began + pace.pause();
        let mut next_flush = began + FLUSH_INTERVAL;
        let mut next_memory = self.options.memory_interval.map(|interval| (began, interval));
        let time_over = self.options.duration.map(|duration| began + duration);
        let mut exited = None;
        let mut told = false;
        loop {
            let due = next_memory.map_or(next_tick, |(due, _)| due.min(next_tick)).min(next_flush);
            let mut pause = due.saturating_duration_since(Instant::now());
            if self.payload.is_some() {
                pause = pause.min(STRAGGLER_INTERVAL);
            } else if self.root.is_none() {
                pause = pause.min(END_INTERVAL);
            }
            if let Some(time_over) = time_over {
                pause = pause.min(time_over.saturating_duration_since(Instant::now()));
            }
            if self.is_behind() {
                pause = Duration::ZERO;
            }
            self.probe.alarm.wait(pause).map_err(ProbeError::system("wait for events"))?;
            self.drain_rings();

            let now = Instant::now();
            if now >= next_tick {
                let before = cpu_time();
                if self.is_open() {
                    self.adopt()?;
                }
                self.sample(Pass::Changed)?;
                pace.note(cpu_time().saturating_sub(before));
                // A late tick moves the later ones: a burst of them would say nothing.
                next_tick = now + pace.pause();
            }
            if let Some((due, interval)) = next_memory
                && now >= due
            {
                self.sample_memory()?;
                next_memory = Some((now + interval, interval));
            }
            if now >= next_flush {
                self.note_losses()?;
                self.intake.flush();
                next_flush = now + FLUSH_INTERVAL;
            }
            while let Some(received) =
                self.probe.signals.next().map_err(ProbeError::system("read a signal"))?
            {
                match (received.signal, self.root) {
                    (Signal::SIGCHLD, _) => {}
                    // What a terminal sends, the payload has as well; what was sent to us alone
                    // is meant for it. Either way the recording ends when it does.
                    (_, Some(_)) if self.payload.is_none() && received.from_terminal => {}
                    (signal, Some(root)) if self.payload.is_none() => {
                        let _ = kill(root, signal);
                    }
                    _ => return Ok(Ended::Interrupted),
                }
            }
            if time_over.is_some_and(|time_over| now >= time_over) {
                return Ok(Ended::TimeOver);
            }
            // Asked at every turn, because a signal can get lost: to a tracer of ours, or to a
            // thread of a program that uses this crate.
            if let Some(root) = self.root
                && self.payload.is_none()
            {
                self.reap(root)?;
            }
            if self.payload.is_some() || (self.root.is_none() && !self.is_open()) {
                let counts = self.probe.maps.task_counts();
                if counts.ended >= counts.born {
                    return Ok(Ended::TreeExited);
                }
            }
            if self.payload.is_some() {
                let exited = *exited.get_or_insert(now);
                if self.options.wait == Wait::Root || now >= exited + self.options.grace {
                    return Ok(Ended::RootExited);
                }
                if !told && now >= exited + WAITING_TOLD_AFTER {
                    told = true;
                    let counts = self.probe.maps.task_counts();
                    let alive = counts.born.saturating_sub(counts.ended);
                    self.intake.sink.waiting(alive, self.options.grace);
                }
            }
        }
    }

    /// Collects the rest, detaches, and sums up.
    fn finish(mut self, ended: Ended) -> Result<Finished, ProbeError> {
        // Detaching takes its time, which is no part of the recording.
        let ended_ns = boot_ns();
        let alive = match ended {
            Ended::TreeExited => Vec::new(),
            Ended::RootExited | Ended::Interrupted | Ended::TimeOver => self.last_samples()?,
        };
        let cgroup = self.own_cgroup.and_then(|cgroup| cgroup.usage().ok());
        let mut losses = self.probe.losses()?;
        let programs = self.probe.programs();
        // From here on no lifecycle record can be added, and look-ups only by tasks that go on
        // after the end: the programs are gone or about to go, their maps are still ours.
        let Probe { signals: _signals, ebpf, hooks, mut lifecycle, mut lookups, maps, .. } =
            self.probe;
        drop(ebpf);
        detach::in_background(hooks.links);
        let intake = &mut self.intake;
        for (stream, ring) in [(Stream::Lifecycle, &mut lifecycle), (Stream::Lookups, &mut lookups)]
        {
            // Until nothing comes any more; not for ever, as those who go on add to it.
            for _ in 0..DRAINS_AT_THE_END {
                if drain(stream, ring, intake) == 0 {
                    break;
                }
            }
        }
        intake.tell_attached();
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
            ended_ns,
            payload: self.payload,
            losses,
            alive,
            programs,
            cgroup,
            sink_error: intake.error.take(),
        })
    }

    /// Runs a program over all tasks, and keeps the records it writes in `samples`.
    fn pass(&mut self, program: &str) -> Result<(), ProbeError> {
        match self.probe.hooks.iterator(program) {
            Some(iterator) => iterator.pass(&mut self.samples),
            None => {
                self.samples.clear();
                Ok(())
            }
        }
    }

    fn drain_rings(&mut self) {
        drain(Stream::Lifecycle, &mut self.probe.lifecycle, &mut self.intake);
        drain(Stream::Lookups, &mut self.probe.lookups, &mut self.intake);
        self.intake.tell_attached();
    }

    /// Whether so much has come meanwhile that another look is due at once. Less than that is left to
    /// the next tick, or to the programs, which wake us above a quarter of the ring.
    fn is_behind(&self) -> bool {
        let limit = self.options.ring_bytes as usize / 8;
        self.probe.lifecycle.waiting_bytes() > limit || self.probe.lookups.waiting_bytes() > limit
    }

    fn sample(&mut self, pass: Pass) -> Result<(), ProbeError> {
        if pass != Pass::Changed {
            self.probe.maps.give_orders(Orders { launch_armed: 0, pass: pass as u32 })?;
        }
        self.pass(SAMPLE_PROGRAM)?;
        for frame in Frames::new(&self.samples).flatten() {
            self.intake.take(Stream::Samples, frame);
        }
        if pass == Pass::Every {
            let orders = Orders { launch_armed: 0, pass: Pass::Changed as u32 };
            self.probe.maps.give_orders(orders)?;
        }
        Ok(())
    }

    /// Looks at the memory of every process that is alive.
    fn sample_memory(&mut self) -> Result<(), ProbeError> {
        self.sample(Pass::Every)?;
        let looks: Vec<Vec<u8>> = leaders(&self.samples)
            .filter(|leader| leader.rss_pages > 0)
            .filter_map(|leader| memory::look(&leader))
            .collect();
        for record in looks {
            self.intake.take_own(Stream::Samples, &record);
        }
        Ok(())
    }

    fn note_losses(&mut self) -> Result<(), ProbeError> {
        let losses = self.probe.losses()?;
        push_losses(&mut self.intake, &self.losses, &losses);
        self.losses = losses;
        Ok(())
    }

    fn reap(&mut self, root: Pid) -> Result<(), ProbeError> {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: wait4(2) writes to the two, which outlive the call. nix has no wait4.
        let waited = unsafe {
            libc::wait4(root.as_raw(), &raw mut status, libc::WNOHANG, usage.as_mut_ptr())
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
        self.sample(Pass::Final)?;
        Ok(leaders(&self.samples)
            .filter(|leader| leader.bits & SAMPLE_FINAL != 0)
            .map(|leader| {
                let state = u8::try_from(leader.state).map_or('?', char::from);
                Alive { pid: leader.tgid, state }
            })
            .collect())
    }
}

/// The samples of thread-group leaders in a pass.
fn leaders(samples: &[u8]) -> impl Iterator<Item = Sample> + '_ {
    Frames::new(samples).flatten().filter_map(|frame| match Record::decode(frame) {
        Ok(Record::Sample(sample)) if sample.tid == sample.tgid => Some(sample),
        _ => None,
    })
}

/// Takes what is in a ring; returns how many records there were.
fn drain(stream: Stream, ring: &mut Ring, intake: &mut Intake<'_>) -> usize {
    ring.drain(|frame| intake.take(stream, frame))
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
        intake.take_own(Stream::Lifecycle, record.as_bytes());
    }
}

/// What this thread has used.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

fn timeval_ns(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
}
