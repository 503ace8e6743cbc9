//! Answers the calls of tasks that have been let go, which a seccomp filter asks about.
//!
//! A filter cannot be taken away. What it stops at fails with ENOSYS without a tracer of ours, so a task that another
//! tracer is to have gets a second filter, which asks a listener instead, and the listener answers that the call may go
//! on: seccomp_unotify(2). It does so for all descendants, until the last has ended.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};

/// A flag of SECCOMP_IOCTL_NOTIF_SET_FLAGS since Linux 6.6: whoever asks and whoever answers take turns on one CPU.
const SYNC_WAKE_UP: u64 = 1;

/// Listens in a thread of its own, which takes no signals.
///
/// # Errors
/// If no thread can be created.
pub(crate) fn listen(listener: OwnedFd) -> io::Result<JoinHandle<()>> {
    let flags = SYNC_WAKE_UP;
    // SAFETY: the kernel reads an integer; older ones refuse the request, and are slower.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
            &raw const flags,
        );
    }
    let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets outlive the calls, which fill them before they are read. The new thread begins with the mask of
    // this one: the signal that interrupts the tracer is for its first thread.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = std::thread::Builder::new().spawn(move || serve(&listener));
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread
}

/// Returns when no task has the filter any more.
fn serve(listener: &OwnedFd) {
    loop {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) if ready[0].revents().contains(PollFlags::IN) => answer(listener),
            Ok(_) => return,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn answer(listener: &OwnedFd) {
    // It must be zeroed: seccomp_unotify(2).
    let mut asked = MaybeUninit::<libc::seccomp_notif>::zeroed();
    let mut answer = MaybeUninit::<libc::seccomp_notif_resp>::zeroed();
    // SAFETY: zeros are a valid value of both, and the kernel reads and writes no more than these. Who has asked may have
    // been killed meanwhile; then there is nobody to answer.
    unsafe {
        let listener = listener.as_raw_fd();
        if libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV as _, asked.as_mut_ptr()) < 0 {
            return;
        }
        let response = &mut *answer.as_mut_ptr();
        response.id = (*asked.as_ptr()).id;
        response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND as _, answer.as_mut_ptr());
    }
}
