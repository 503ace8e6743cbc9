//! System calls of a tracer: ptrace(2), waitid(2) and reads of another process's memory.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A thread id, as the tracer sees it.
pub(crate) type Tid = libc::pid_t;

/// Status of a stop at the end of a system call, with PTRACE_O_TRACESYSGOOD.
pub(crate) const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// Bytes of the largest register set of any supported architecture.
const REGISTERS_MAX: usize = 512;

/// ptrace(2) itself: glibc and musl declare it differently, and glibc changes some results.
///
/// # Safety
/// `data` must be what `request` expects.
unsafe fn ptrace(request: u32, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    let done = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::c_long::from(request),
            libc::c_long::from(tid),
            address,
            data,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const PTRACE_CONT: u32 = 7;
const PTRACE_DETACH: u32 = 17;
const PTRACE_SYSCALL: u32 = 24;
const PTRACE_GETEVENTMSG: u32 = 0x4201;
const PTRACE_GETREGSET: u32 = 0x4204;
const PTRACE_SETREGSET: u32 = 0x4205;
const PTRACE_SEIZE: u32 = 0x4206;
const PTRACE_INTERRUPT: u32 = 0x4207;
const PTRACE_LISTEN: u32 = 0x4208;
const PTRACE_GETSIGMASK: u32 = 0x420a;
const PTRACE_SETSIGMASK: u32 = 0x420b;

/// Attaches to a task without stopping it.
pub(crate) fn seize(tid: Tid, options: i32) -> io::Result<()> {
    // SAFETY: takes integers.
    unsafe { ptrace(PTRACE_SEIZE, tid, 0, options as usize) }
}

/// Way in which a stopped task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// Until the next event.
    On,
    /// Until the next event or the end of the current system call.
    ToReturn,
    /// It stays stopped until it is continued by SIGCONT.
    Listen,
}

/// Lets a stopped task go on, and delivers `signal` to it unless that is 0. A task that has been
/// killed meanwhile is not there any more; its end will be reported.
pub(crate) fn resume(tid: Tid, go: Go, signal: i32) {
    let request = match go {
        Go::On => PTRACE_CONT,
        Go::ToReturn => PTRACE_SYSCALL,
        Go::Listen => PTRACE_LISTEN,
    };
    // SAFETY: takes integers.
    let _ = unsafe { ptrace(request, tid, 0, signal as usize) };
}

/// Lets a stopped task go for good.
pub(crate) fn detach(tid: Tid) {
    // SAFETY: takes integers.
    let _ = unsafe { ptrace(PTRACE_DETACH, tid, 0, 0) };
}

/// Makes a task report a stop, also one that is stopped until SIGCONT.
pub(crate) fn interrupt(tid: Tid) -> io::Result<()> {
    // SAFETY: takes integers.
    unsafe { ptrace(PTRACE_INTERRUPT, tid, 0, 0) }
}

/// The signals that a stopped task blocks, one bit each.
pub(crate) fn signal_mask(tid: Tid) -> io::Result<u64> {
    let mut mask = 0_u64;
    // SAFETY: the kernel writes a set of signals, which is as large as it is told.
    unsafe { ptrace(PTRACE_GETSIGMASK, tid, size_of::<u64>(), (&raw mut mask) as usize)? };
    Ok(mask)
}

/// Makes a stopped task block these signals.
pub(crate) fn set_signal_mask(tid: Tid, mask: u64) -> io::Result<()> {
    // SAFETY: the kernel reads a set of signals, which is as large as it is told.
    unsafe { ptrace(PTRACE_SETSIGMASK, tid, size_of::<u64>(), (&raw const mask) as usize) }
}

/// A descriptor of a process that may be traced, taken from it: pidfd_getfd(2).
pub(crate) fn take_descriptor(tgid: Tid, descriptor: i32) -> io::Result<OwnedFd> {
    let owned = |opened: libc::c_long| match i32::try_from(opened) {
        // SAFETY: these calls return new descriptors, which belong to nobody else.
        Ok(opened) if opened >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(opened) }),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: takes integers.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tgid, 0) })?;
    // SAFETY: takes integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) })
}

/// True if this process may open so many more files.
pub(crate) fn has_room_for(descriptors: usize) -> bool {
    // SAFETY: duplicates a descriptor that is there, if any is, and opens nothing.
    let more = || unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 0) };
    let mut opened = Vec::with_capacity(descriptors);
    while opened.len() < descriptors {
        match more() {
            descriptor if descriptor >= 0 => {
                // SAFETY: it was made just now, for nobody else.
                opened.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
            _ => return false,
        }
    }
    true
}

/// Data that comes with an event: the new task, the old thread id, the exit status.
pub(crate) fn event_message(tid: Tid) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes an unsigned long to this address.
    unsafe { ptrace(PTRACE_GETEVENTMSG, tid, 0, (&raw mut message) as usize)? };
    Ok(message)
}

/// The general registers of a stopped task, as the kernel lays them out; the length tells a 32-bit task
/// from others.
pub(crate) fn registers(tid: Tid) -> io::Result<([u64; REGISTERS_MAX / 8], usize)> {
    let mut registers = [0_u64; REGISTERS_MAX / 8];
    let mut vector =
        libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: REGISTERS_MAX };
    /// NT_PRSTATUS of elf.h.
    const GENERAL: usize = 1;
    // SAFETY: the kernel writes at most iov_len bytes, and the length that it has written.
    unsafe { ptrace(PTRACE_GETREGSET, tid, GENERAL, (&raw mut vector) as usize)? };
    Ok((registers, vector.iov_len))
}

/// Sets the general registers of a stopped task to the first `len` bytes.
pub(crate) fn set_registers(
    tid: Tid,
    registers: &[u64; REGISTERS_MAX / 8],
    len: usize,
) -> io::Result<()> {
    let len = len.min(REGISTERS_MAX);
    let base = registers.as_ptr().cast_mut().cast();
    let vector = libc::iovec { iov_base: base, iov_len: len };
    const GENERAL: usize = 1;
    // SAFETY: the kernel reads at most iov_len bytes, which are there.
    unsafe { ptrace(PTRACE_SETREGSET, tid, GENERAL, (&raw const vector) as usize) }
}

/// Writes to memory of a task; returns whether all of it could be written.
pub(crate) fn write_memory(tid: Tid, address: u64, from: &[u8]) -> bool {
    let base = from.as_ptr().cast_mut().cast();
    let local = libc::iovec { iov_base: base, iov_len: from.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: from.len() };
    // SAFETY: the kernel reads the local buffer; the remote address is only looked up in the other process.
    let written =
        unsafe { libc::process_vm_writev(tid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(written).is_ok_and(|written| written == from.len())
}

/// Reads memory of a task that may be read; returns how much could be.
pub(crate) fn read_memory(tid: Tid, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes at most iov_len bytes to the local buffer; the remote address is only
    // looked up in the other process.
    let read = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Reads a string of a task into a buffer, without its NUL; None if it cannot be read. A string that
/// fills the whole buffer has no end there.
pub(crate) fn read_string(tid: Tid, address: u64, into: &mut [u8]) -> Option<usize> {
    const PAGE: u64 = 4096;
    let mut at = 0;
    while at < into.len() {
        // The next page may not be mapped, and a read across the border would fail where the first
        // page has not been touched.
        let here = address.checked_add(at as u64)?;
        let len = usize::try_from(PAGE - here % PAGE).ok()?.min(256).min(into.len() - at);
        let read = read_memory(tid, here, &mut into[at..at + len]);
        if let Some(end) = into[at..at + read].iter().position(|byte| *byte == 0) {
            return Some(at + end);
        }
        if read < len {
            return None;
        }
        at += len;
    }
    Some(at)
}

/// Report of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// It is stopped, with this code: signal | event << 8.
    Stopped(Tid, i32),
    /// It has ended, and can be reaped.
    Ended(Tid),
    /// Nobody has reported anything.
    Nothing,
}

/// The next report of any traced task, which stays as it is: a stop is over when the task is resumed,
/// and an end when it is reaped.
pub(crate) fn wait_for_report(block: bool) -> io::Result<Report> {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL;
    wait((libc::P_ALL, 0), if block { flags } else { flags | libc::WNOHANG })
}

/// True if a task has been killed in the stop with this code, and has stopped again at its end.
pub(crate) fn has_moved_on(tid: Tid, code: i32) -> bool {
    let flags = libc::WSTOPPED | libc::WNOWAIT | libc::WNOHANG | libc::__WALL;
    match wait((libc::P_PID, tid.cast_unsigned()), flags) {
        Ok(Report::Stopped(_, now)) => now != code,
        _ => false,
    }
}

fn wait(whom: (libc::idtype_t, libc::id_t), flags: libc::c_int) -> io::Result<Report> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel writes to this struct, which outlives the call.
    if unsafe { libc::waitid(whom.0, whom.1, info.as_mut_ptr(), flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros is a valid value, and so is what the kernel writes.
    let info = unsafe { info.assume_init() };
    // SAFETY: waitid(2) fills these fields; without a report, they remain 0.
    let (tid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok(match (tid, info.si_code) {
        (0, _) => Report::Nothing,
        (tid, libc::CLD_TRAPPED | libc::CLD_STOPPED) => Report::Stopped(tid, status),
        (tid, _) => Report::Ended(tid),
    })
}

/// Usage of the tasks of a process and of the children that it has waited for. Unlike the files of /proc, it
/// takes only a microsecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// The kernel's sums of both are exact, rounded down to whole microseconds.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    /// Times that they have left their CPUs by themselves.
    pub(crate) voluntary_switches: u64,
}

impl ProcessUsage {
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    fn from(usage: &libc::rusage) -> Self {
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
        }
    }
}

/// The usage of a process whose first task has reported a stop that has not been taken, or its end.
pub(crate) fn usage_of_reported(tid: Tid) -> Option<ProcessUsage> {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::WNOHANG | libc::__WALL;
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the system call, unlike the C library's function, has a fifth argument, as wait4(2) has; the
    // kernel writes to these two structs, which outlive the call. Zeros are a valid value of both.
    let (done, info, usage) = unsafe {
        let done = libc::syscall(
            libc::SYS_waitid,
            libc::P_PID,
            tid,
            info.as_mut_ptr(),
            flags,
            usage.as_mut_ptr(),
        );
        (done, info.assume_init(), usage.assume_init())
    };
    // SAFETY: waitid(2) fills this field; without a report, it remains 0.
    let is_there = done == 0 && unsafe { info.si_pid() } == tid;
    is_there.then(|| ProcessUsage::from(&usage))
}

/// The next stop that has not been taken; taking it makes room for those of other tasks, even if the
/// task is not resumed.
pub(crate) fn take_any_stop() -> Option<(Tid, i32)> {
    let flags = libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
    match wait((libc::P_ALL, 0), flags) {
        Ok(Report::Stopped(tid, code)) => Some((tid, code)),
        _ => None,
    }
}

/// Takes a stop that is reported again and again otherwise.
pub(crate) fn take_stop(tid: Tid) {
    let mut status = 0;
    // SAFETY: the kernel writes to this integer.
    unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
}

/// Reaps an ended task; returns its status, and the usage of its process and of all children which that has
/// waited for.
pub(crate) fn reap(tid: Tid) -> Option<(u32, ProcessUsage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let flags = libc::__WALL | libc::WNOHANG;
    // SAFETY: wait4(2) writes to these two, which outlive the call.
    let reaped = unsafe { libc::wait4(tid, &raw mut status, flags, usage.as_mut_ptr()) };
    if reaped != tid {
        return None;
    }
    // SAFETY: all zeros is a valid value, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    Some((status.cast_unsigned(), ProcessUsage::from(&usage)))
}

/// Raises the number of files that this process may have open as far as it may; returns it.
pub(crate) fn raise_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel reads and writes this struct, which outlives both calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let most = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const most) == 0 {
            limit = most;
        }
    }
    limit.rlim_cur
}

/// User and system time of this process.
pub(crate) fn own_cpu_ns() -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage(2) writes to this struct, which outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value, and so is what the kernel writes.
    let usage = unsafe { usage.assume_init() };
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000) + part(time.tv_usec).saturating_mul(1000)
}
