//! Implements the source of records with the tracer.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use proctrace_record::{
    Hold, Intake, Options, Pass, Preparation, Scope, Source, SourceError, TaskCounts, Waker,
};
use proctrace_trace::{Header, Hook, Knowledge, LossCount, Program};
use proctrace_wire::{LossReason, Quantity, Stream};
use rustix::event::{EventfdFlags, eventfd};

use crate::error::PtraceError;
use crate::filter::filter;
use crate::options::PtraceOptions;
use crate::procfs;
use crate::sampling::Alive;
use crate::shared::Shared;
use crate::tracer::{Settings, spawn};

/// Maximum number of steps for the tracer to end.
const END_TRIES: u32 = 2000;
const END_PAUSE: Duration = Duration::from_millis(1);

/// Records a command by ptrace(2).
#[derive(Debug)]
pub struct Traced {
    shared: Shared,
    settings: Settings,
    tracer: Pid,
    /// None once it has been reaped.
    is_running: bool,
    orders: UnixStream,
    bell: OwnedFd,
    alive: Alive,
}

impl Traced {
    /// Starts the tracer, which waits for the command.
    ///
    /// # Errors
    /// If options request what ptrace cannot do, or if no process can be created.
    pub fn start(wanted: &Options, options: &PtraceOptions) -> Result<Self, PtraceError> {
        supports(wanted)?;
        let settings = Settings {
            wanted: wanted.clone(),
            filtered: wanted.hooked_calls().families().next().is_some(),
            block_when_full: options.block_when_full,
        };
        let shared =
            Shared::new(options.ring_len()).map_err(PtraceError::system("allocate buffers"))?;
        let (orders, theirs) =
            UnixStream::pair().map_err(PtraceError::system("create a socket"))?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| PtraceError::system("create an event counter")(errno.into()))?;
        let tracer = spawn(&shared, &settings, &theirs, bell.as_fd())
            .map_err(PtraceError::system("create the tracer"))?;
        let tracer = Pid::from_raw(tracer);
        let alive = Alive::default();
        Ok(Self { shared, settings, tracer, is_running: true, orders, bell, alive })
    }

    /// True if the command has no_new_privs (see prctl(2)).
    pub fn stops_at_lookups(&self) -> bool {
        self.settings.filtered
    }

    /// Takes note of the end of the tracer.
    fn is_tracer_there(&mut self) -> bool {
        if self.is_running {
            self.is_running = match waitpid(self.tracer, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => true,
                Ok(_) | Err(_) => false,
            };
        }
        self.is_running
    }

    /// Tells the tracer that no more records are needed, and waits until it writes none. It ends then,
    /// unless the payload still needs it.
    fn stop(&mut self) {
        let board = self.shared.board();
        board.stop.store(1, Ordering::Release);
        for _ in 0..END_TRIES {
            if self.shared.board().end.is_set() || !self.is_tracer_there() {
                break;
            }
            // Repeated, because one that arrives just before the tracer waits does not interrupt it.
            let _ = kill(self.tracer, Signal::SIGUSR1);
            std::thread::sleep(END_PAUSE);
        }
        // It has nothing left to do but to end, if it does.
        for _ in 0..10 {
            if !self.is_tracer_there() {
                break;
            }
            std::thread::sleep(END_PAUSE);
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.is_running {
            self.stop();
        }
    }
}

/// Fails unless these options can be honoured.
fn supports(wanted: &Options) -> Result<(), PtraceError> {
    match wanted.scope {
        Scope::Launched if wanted.cgroup.is_none() => Ok(()),
        Scope::Launched => Err(PtraceError::Unsupported("a cgroup")),
        Scope::Pids(_) => Err(PtraceError::Unsupported("running processes")),
        Scope::All => Err(PtraceError::Unsupported("the whole machine")),
        Scope::Jobs(_) => Err(PtraceError::Unsupported("cgroups")),
    }
}

/// LeakSanitizer attaches to its own process by ptrace(2), which has one tracer already, and then ends the program with
/// an error. So it is told not to look for leaks; `record` says so at its start.
const OPTIONS: &[(&str, &str)] = &[("LSAN_OPTIONS", "detect_leaks=0")];

impl Source for Traced {
    fn name(&self) -> &'static str {
        "ptrace"
    }

    fn describe(&self, header: &mut Header) {
        header.lookups_timed_one_in = None;
        header.waits_min_ns = None;
        header.ring_bytes = self.shared.ring_bytes() as u64;
        header.on_full = if self.settings.block_when_full { "block" } else { "drop" }.to_owned();
        header.hooks = hooks(&self.settings);
        let mut know = |quantity: Quantity, knowledge| {
            header.knowledge.insert(quantity.name().to_owned(), knowledge);
        };
        let absent = |reason: &str| Knowledge::Absent { reason: reason.to_owned() };
        know(Quantity::Split, absent("ptrace has it in whole clock ticks only"));
        know(Quantity::Switches, absent("every stop by ptrace adds one"));
        know(Quantity::Waits, absent("ptrace does not show who wakes a task"));
        know(Quantity::Signals, absent("ptrace does not show all signals"));
        know(Quantity::FileSizes, absent("ptrace does not stop where a file is closed"));
        if procfs::schedstat(own_pid()).is_none_or(|(run_ns, _)| run_ns == 0) {
            let method = "whole clock ticks: this kernel has no /proc/PID/schedstat".to_owned();
            know(Quantity::Cpu, Knowledge::Estimate { method });
            know(Quantity::RunDelay, absent("this kernel has no /proc/PID/schedstat"));
        }
        if !self.settings.filtered {
            know(Quantity::LookupTimes, absent("left out by --misses"));
        } else {
            know(Quantity::LookupTimes, absent("ptrace takes longer than a look-up"));
        }
    }

    fn wakers(&self) -> Vec<Waker<'_>> {
        vec![Waker { descriptor: self.bell.as_fd(), edge_triggered: false }]
    }

    fn arm(&mut self) -> Result<Hold, SourceError> {
        let calls = self.settings.wanted.hooked_calls();
        let renames = self.settings.wanted.opens;
        let filter = if self.settings.filtered { filter(calls, renames) } else { Vec::new() };
        Ok(Hold::UntilSeized(Preparation { tracer: Some(self.tracer), filter, options: OPTIONS }))
    }

    fn seize(&mut self, root: Pid) -> Result<(), SourceError> {
        let mut answer = [0; 4];
        let asked = self
            .orders
            .write_all(&root.as_raw().to_ne_bytes())
            .and_then(|()| self.orders.read_exact(&mut answer));
        if asked.is_err() {
            return Err(PtraceError::TracerEnded.into());
        }
        match i32::from_ne_bytes(answer) {
            0 => Ok(()),
            errno => {
                let source = std::io::Error::from_raw_os_error(errno);
                Err(PtraceError::NotPermitted { source }.into())
            }
        }
    }

    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError> {
        let mut rung = [0; 8];
        // It has not rung if there is nothing to read.
        let _ = rustix::io::read(&self.bell, &mut rung);
        let Self { shared, alive, .. } = self;
        let lifecycle = shared.drain(Stream::Lifecycle, |frame| {
            alive.note(frame);
            intake.take(Stream::Lifecycle, frame);
        });
        let lookups = shared.drain(Stream::Lookups, |frame| intake.take(Stream::Lookups, frame));
        Ok(lifecycle + lookups)
    }

    fn is_behind(&self) -> bool {
        self.shared.waiting_bytes() > self.shared.ring_bytes() / 8
    }

    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError> {
        let is_over = self.shared.board().end.is_set();
        if !is_over && !self.is_tracer_there() && self.task_counts().alive() > 0 {
            return Err(PtraceError::TracerEnded.into());
        }
        self.alive.sample(pass, samples);
        Ok(())
    }

    fn task_counts(&mut self) -> TaskCounts {
        let (born, ended) = self.shared.board().tasks.counts();
        TaskCounts { born, ended }
    }

    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError> {
        let reason = LossReason::RingFull;
        let losses = self.shared.lost();
        Ok(losses.map(|(kind, count)| LossCount { kind, reason, cpu: None, count }).collect())
    }

    fn restraints(&self) -> Vec<String> {
        let board = self.shared.board();
        let refused = board.refused.load(Ordering::Relaxed);
        let times = if refused == 1 { "once" } else { "several times" };
        let refusal = format!(
            "the command's own use of ptrace(2), as by a debugger, was refused {times}: a process has one tracer, which \
             was this recorder; record as root or through a broker, or without the debugger"
        );
        let let_go = board.let_go.load(Ordering::Relaxed);
        let tasks =
            if let_go == 1 { "1 task was".to_owned() } else { format!("{let_go} tasks were") };
        let loss = format!(
            "{tasks} left to a debugger or tracer of the command, and not recorded from then on, nor what they started: \
             a process has one tracer; as root or through a broker, all is recorded"
        );
        (refused > 0).then_some(refusal).into_iter().chain((let_go > 0).then_some(loss)).collect()
    }

    fn detach(&mut self) -> Result<Vec<Program>, SourceError> {
        self.stop();
        Ok(Vec::new())
    }

    fn helper_cpu_ns(&self) -> (u64, u64) {
        self.shared.board().end.cpu_ns()
    }
}

fn own_pid() -> libc::pid_t {
    libc::pid_t::try_from(std::process::id()).unwrap_or(0)
}

fn hooks(settings: &Settings) -> Vec<Hook> {
    let events = [
        ("fork", "PTRACE_EVENT_FORK"),
        ("exec", "PTRACE_EVENT_EXEC"),
        ("exit", "PTRACE_EVENT_EXIT"),
    ];
    let lookups = settings.filtered.then_some(("look-ups", "SECCOMP_RET_TRACE"));
    let hook =
        |(event, hook): (&str, &str)| Hook { event: event.to_owned(), hook: hook.to_owned() };
    events.into_iter().chain(lookups).map(hook).collect()
}
