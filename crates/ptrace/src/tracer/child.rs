//! The process in which the tracer runs.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use proctrace_wire::Kind;
use proctrace_wire::Stream;
use proctrace_wire::layout::{ATTACH_ROOT, Attach};
use zerocopy::FromZeros;

use super::execs::Environments;
use super::lookups::Numbers;
use super::{INTERRUPTED, Settings, Tracer};
use crate::process::{Process, TracedTask};
use crate::procfs::{self, Files};
use crate::records::{assemble, head};
use crate::shared::Shared;
use crate::sys::{self, Tid};

/// The signal that interrupts the tracer's wait.
pub(crate) const INTERRUPT: libc::c_int = libc::SIGUSR1;

const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESYSGOOD;

/// Tries to attach: with Yama, the command must first allow the tracer to do so, which it does as soon as it runs.
const SEIZE_TRIES: u32 = 200;
const SEIZE_PAUSE: Duration = Duration::from_millis(1);

/// Wakes the recorder.
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn ring(&self) {
        // It fails only if the recorder has not listened for 2^64 times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// Forks the tracer; returns its pid. It waits for the pid of the command on `orders`, answers with an
/// error number, and rings `bell` when the recorder should read records.
pub(crate) fn spawn(
    shared: &Shared,
    settings: &Settings,
    orders: &UnixStream,
    bell: BorrowedFd<'_>,
) -> io::Result<Tid> {
    let recorder = Tid::try_from(std::process::id()).map_err(io::Error::other)?;
    // SAFETY: the child has one thread and never returns from here. It uses the allocator, which the C
    // library keeps usable after a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let trace = || trace(shared, settings, orders.as_raw_fd(), bell.as_raw_fd(), recorder);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(trace));
            shared.board().finish();
            // SAFETY: ends this process without running anything of the recorder's.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        tracer => Ok(tracer),
    }
}

fn trace(shared: &Shared, settings: &Settings, orders: RawFd, bell: RawFd, recorder: Tid) {
    let Some((orders, bell)) = keep_only(orders, bell) else { return };
    become_independent();
    // SAFETY: takes and changes nothing.
    if unsafe { libc::getppid() } != recorder {
        return;
    }
    let mut orders = UnixStream::from(orders);
    let mut pid = [0; 4];
    if orders.read_exact(&mut pid).is_err() {
        return;
    }
    let root = Tid::from_ne_bytes(pid);
    let mut tracer = Tracer {
        shared,
        settings,
        bell: Bell(bell),
        recorder,
        tasks: HashMap::new(),
        processes: HashMap::new(),
        early: Vec::new(),
        settled: Vec::new(),
        // SAFETY: takes and changes nothing.
        own_pid_namespace: procfs::link(unsafe { libc::getpid() }, "ns/pid"),
        letting_go: HashMap::new(),
        listeners: Vec::new(),
        environments: Environments::default(),
        numbers: Numbers::default(),
        may_see_ended: true,
        with_files: 0,
        with_files_max: with_files_max(),
        is_idle: false,
        record: Vec::new(),
    };
    let answer = tracer.attach(root).err().and_then(|error| error.raw_os_error()).unwrap_or(0);
    let _ = orders.write_all(&answer.to_ne_bytes());
    drop(orders);
    if answer == 0 {
        tracer.run();
        tracer.bell.ring();
        let listeners = std::mem::take(&mut tracer.listeners);
        drop(tracer);
        shared.board().finish();
        // Without them, what was let go could look up nothing.
        for listener in listeners {
            let _ = listener.join();
        }
    }
}

/// The number of processes of which files may be open at a time; of others, they are opened when they are read.
fn with_files_max() -> u64 {
    /// Number of other files that the tracer has open, and more.
    const OTHERS: u64 = 32;
    /// The kernel keeps about a kilobyte for each file.
    const PROCESSES: u64 = 1024;
    (sys::raise_descriptors().saturating_sub(OTHERS) / Files::DESCRIPTORS).min(PROCESSES)
}

/// Keeps two descriptors of the recorder and closes all others, which would hold up whoever waits for the
/// end of a pipe of the recorder.
fn keep_only(orders: RawFd, bell: RawFd) -> Option<(OwnedFd, OwnedFd)> {
    // Above all that are to be overwritten or closed below.
    const ABOVE: libc::c_int = 16;
    // SAFETY: these calls take integers and a constant string. The descriptors of the recorder that are
    // closed here belong to values that this process never uses again.
    unsafe {
        let orders = libc::fcntl(orders, libc::F_DUPFD, ABOVE);
        let bell = libc::fcntl(bell, libc::F_DUPFD, ABOVE);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if orders < 0 || bell < 0 || null < 0 {
            return None;
        }
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        libc::dup2(orders, 3);
        libc::dup2(bell, 4);
        libc::syscall(libc::SYS_close_range, 5, u32::MAX, 0);
        libc::chdir(c"/".as_ptr());
        Some((OwnedFd::from_raw_fd(3), OwnedFd::from_raw_fd(4)))
    }
}

extern "C" fn interrupted(_: libc::c_int) {
    INTERRUPTED.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Leaves the process group of the recorder, whose signals are not meant for the tracer, and asks to be
/// interrupted when the recorder ends.
fn become_independent() {
    let ignored = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    // SAFETY: the structs are zeroed, which is a valid value, and outlive the calls; the handler only
    // stores to an atomic.
    unsafe {
        libc::setsid();
        for signal in ignored {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        // Tasks that stop send none, and their reports are waited for without it.
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        action.sa_sigaction = interrupted as *const () as usize;
        // Without SA_RESTART, so that it interrupts the wait for reports.
        action.sa_flags = 0;
        libc::sigaction(INTERRUPT, &raw const action, std::ptr::null_mut());
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, INTERRUPT as libc::c_ulong);
        libc::prctl(libc::PR_SET_NAME, c"proctrace-trace".as_ptr());
    }
}

impl Tracer<'_> {
    /// Attaches to the command, which is held before its exec.
    fn attach(&mut self, root: Tid) -> io::Result<()> {
        let seccomp = if self.settings.filtered { libc::PTRACE_O_TRACESECCOMP } else { 0 };
        for tries in 1.. {
            match sys::seize(root, OPTIONS | seccomp) {
                Ok(()) => break,
                Err(error) if tries == SEIZE_TRIES => return Err(error),
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    std::thread::sleep(SEIZE_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        let now = self.now();
        let serial = self.next_serial();
        let comm = procfs::Usage::of(root, root).map(|usage| usage.comm).unwrap_or_default();
        // It has used nothing before: it was created for the recording, and is accounted from its birth.
        let mut attach = Attach::new_zeroed();
        attach.head = head(Kind::Attach, serial, now);
        attach.process = serial;
        (attach.tgid, attach.tid) = (root, root);
        (attach.tgid_ns, attach.tid_ns) = (root, root);
        attach.parent_tgid = self.recorder;
        attach.bits = ATTACH_ROOT;
        attach.start_ns = now;
        attach.comm = comm;
        self.tasks.insert(root, TracedTask::new(serial, serial, root, now, comm));
        self.processes.insert(serial, Process::new(self.recorder, None));
        assemble(&mut self.record, &attach, &[]);
        self.write(Stream::Lifecycle);
        self.open_files(serial, root);
        Ok(())
    }
}
