//! Starts the command without any trace of the recorder in its state.

use std::ffi::{CString, c_char};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;

use nix::unistd::Pid;

use crate::command::{Command, Identity};
use crate::signals::Before;
use crate::source::{Preparation, SourceError};

/// Errors of starting a command.
#[derive(Debug)]
pub(crate) enum LaunchError {
    /// No pipe or process could be created.
    Fork(io::Error),
    /// The process was created, but could not execute the command.
    Exec(io::Error),
    /// The source could not seize it.
    Source(SourceError),
}

/// A process that does nothing before it is seized.
pub(crate) struct Held<'a> {
    /// Actions that it takes on itself.
    pub(crate) preparation: &'a Preparation,
    /// Seizes it.
    pub(crate) seize: &'a mut dyn FnMut(Pid) -> Result<(), SourceError>,
}

/// Forks and executes `command` with the signals as they were before; returns after the exec.
///
/// The command inherits the recorder's terminal, process group, descriptors and directory; signal
/// mask, dispositions and closed standard streams are restored to those with which the recorder was started.
///
/// With `cgroup`, a descriptor of its directory, the command runs in that cgroup. With `held`, the
/// child does nothing until it has been seized.
pub(crate) fn launch(
    command: &Command,
    before: &Before,
    cgroup: Option<RawFd>,
    held: Option<Held<'_>>,
) -> Result<Pid, LaunchError> {
    let (mut failure, report) = io::pipe().map_err(LaunchError::Fork)?;
    let gate = held.is_some().then(io::pipe).transpose().map_err(LaunchError::Fork)?;

    // Everything the child needs is created before the fork: after it, the child of a
    // multi-threaded process may not even allocate.
    let arguments = pointers(&command.arguments);
    let options = held.as_ref().map_or(&[][..], |held| held.preparation.options);
    let environment = command.environment_with(options);
    let environment = pointers(&environment);
    let shell_arguments = {
        let script = [c"/bin/sh".to_owned(), command.program.clone()];
        let rest = command.arguments.get(1..).unwrap_or_default();
        script.into_iter().chain(rest.iter().cloned()).collect::<Vec<_>>()
    };
    let shell_arguments = pointers_owned(shell_arguments);

    match fork_into(cgroup) {
        -1 => Err(LaunchError::Fork(io::Error::last_os_error())),
        0 => {
            if let (Some(held), Some((wait, open))) = (&held, &gate) {
                allow_tracer(held.preparation);
                wait_at(wait.as_raw_fd(), open.as_raw_fd());
            }
            let filter = held.as_ref().map_or(&[][..], |held| &held.preparation.filter);
            let why = become_command(
                command,
                &arguments,
                &shell_arguments.1,
                &environment,
                before,
                filter,
            );
            tell_and_exit(report.as_raw_fd(), why)
        }
        child => {
            drop(report);
            if let (Some(held), Some((_, mut open))) = (held, gate) {
                if let Err(error) = (held.seize)(Pid::from_raw(child)) {
                    // Closing the gate without opening it makes the child exit.
                    drop(open);
                    collect(child);
                    return Err(LaunchError::Source(error));
                }
                // If this fails, the child has ended, which also closed its end of the report pipe.
                let _ = open.write_all(&[1]);
            }
            let mut code = [0; 4];
            match failure.read_exact(&mut code) {
                Ok(()) => {
                    let error = io::Error::from_raw_os_error(i32::from_ne_bytes(code));
                    collect(child);
                    Err(LaunchError::Exec(error))
                }
                // The exec closed the pipe.
                Err(_) => Ok(Pid::from_raw(child)),
            }
        }
    }
}

/// Reaps a child that is exiting, ignoring its status.
fn collect(child: libc::pid_t) {
    // SAFETY: waits for our own child and writes nothing.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
}

/// Waits, in the child, until the recorder opens the gate. If the recorder closes it, or ends, the child exits.
fn wait_at(wait: RawFd, open: RawFd) {
    let mut opened = [0_u8; 1];
    // SAFETY: closes the child's own copy of a descriptor; while that is open, closing the gate
    // could not be detected.
    unsafe { libc::close(open) };
    loop {
        // SAFETY: reads one byte into an array of one.
        match unsafe { libc::read(wait, opened.as_mut_ptr().cast(), 1) } {
            1 => return,
            -1 if errno() == libc::EINTR => {}
            // SAFETY: ends this process without running anything of the parent's.
            _ => unsafe { libc::_exit(127) },
        }
    }
}

type Pointers = Vec<*const c_char>;

fn pointers(strings: &[CString]) -> Pointers {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// The strings and pointers to them, which remain valid when both are moved.
fn pointers_owned(strings: Vec<CString>) -> (Vec<CString>, Pointers) {
    let pointers = pointers(&strings);
    (strings, pointers)
}

/// Executes the command in the child, or returns the errno of the failure.
fn become_command(
    command: &Command,
    arguments: &Pointers,
    shell_arguments: &Pointers,
    environment: &Pointers,
    before: &Before,
    filter: &[libc::sock_filter],
) -> i32 {
    // Rust ignores SIGPIPE at start-up and opens closed standard streams, and an exec preserves that.
    before.dispositions.restore();
    // SAFETY: sigprocmask(2) reads a mask that lives in the caller.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, before.mask.as_ref(), ptr::null_mut()) };
    if let Some(identity) = &command.identity
        && let Err(errno) = assume(identity)
    {
        return errno;
    }
    if let Err(errno) = install(filter) {
        return errno;
    }
    // SAFETY: three NUL-terminated strings and lists that the parent made before the fork.
    unsafe {
        libc::execve(command.program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    if errno() == libc::ENOEXEC {
        // A script without #!: run it with a shell, as shells and execvp(3) do.
        // SAFETY: as above.
        unsafe {
            libc::execve(c"/bin/sh".as_ptr(), shell_arguments.as_ptr(), environment.as_ptr());
        }
        return libc::ENOEXEC;
    }
    errno()
}

/// Lets, in the child, the source's process trace it. Where Yama is not in use, this fails and is not needed.
fn allow_tracer(preparation: &Preparation) {
    if let Some(tracer) = preparation.tracer {
        // SAFETY: takes integers. A recorder with file capabilities is not dumpable, and then neither
        // is this copy of it; the exec decides anew.
        unsafe {
            libc::prctl(libc::PR_SET_PTRACER, tracer.as_raw() as libc::c_ulong);
            libc::prctl(libc::PR_SET_DUMPABLE, 1 as libc::c_ulong);
        }
    }
}

/// Installs a seccomp filter in the child, if there is one.
fn install(filter: &[libc::sock_filter]) -> Result<(), i32> {
    if filter.is_empty() {
        return Ok(());
    }
    let Ok(len) = u16::try_from(filter.len()) else { return Err(libc::E2BIG) };
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the kernel copies the filter, which the parent made before the fork, and changes nothing.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, none, none, none) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const program,
            ) == 0
    };
    if done { Ok(()) } else { Err(errno()) }
}

/// Flag from linux/sched.h; libc defines it as an int, which it does not fit.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// fork(2), with the child created in the cgroup of this directory, so that the kernel accounts for
/// it there from the start (CLONE_INTO_CGROUP, Linux 5.7).
fn fork_into(cgroup: Option<RawFd>) -> libc::pid_t {
    let Some(cgroup) = cgroup else {
        // SAFETY: the child calls nothing but system calls (see `become_command`).
        return unsafe { libc::fork() };
    };
    // SAFETY: clone_args consists of integers; all zeros is a valid value that requests nothing.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or(0);
    arguments.cgroup = u64::try_from(cgroup).unwrap_or(0);
    // SAFETY: clone3(2) reads the struct, which outlives the call; without a separate stack the
    // child continues as after fork(2), and makes nothing but system calls, as above.
    let child = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
    };
    libc::pid_t::try_from(child).unwrap_or(-1)
}

/// Drops root permanently: groups first, while that is still allowed, then all three ids at once.
fn assume(identity: &Identity) -> Result<(), i32> {
    let groups = identity.groups.as_ptr().cast();
    let (uid, gid) = (identity.uid.as_raw(), identity.gid.as_raw());
    // SAFETY: Gid is a transparent gid_t, and the list has this length; the others take integers.
    // Raw system calls, because glibc's wrappers try to signal other threads, of which the
    // child has none, which glibc does not know.
    let done = unsafe {
        libc::syscall(libc::SYS_setgroups, identity.groups.len(), groups as *const libc::gid_t) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
    };
    if done { Ok(()) } else { Err(errno()) }
}

fn errno() -> i32 {
    // Reads a thread-local; it allocates nothing.
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn tell_and_exit(report: RawFd, errno: i32) -> ! {
    let code = errno.to_ne_bytes();
    // SAFETY: writes four bytes of a local array, and exits without running any of the parent's
    // code.
    unsafe {
        libc::write(report, code.as_ptr().cast(), code.len());
        libc::_exit(127)
    }
}
