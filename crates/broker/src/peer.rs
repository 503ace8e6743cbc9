//! Identity of the process at the other end of a connection, by the kernel's word.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use proctrace_probe::{Caller, Credentials, TaskRecords};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::id_map::is_root_by;

/// A process that has connected.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    gid: u32,
    /// Becomes readable when its process has ended.
    pub(crate) process: OwnedFd,
}

/// A client: a peer whose credentials and namespaces are known.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    pub(crate) credentials: Credentials,
    pub(crate) caller: Caller,
}

impl Peer {
    /// The process that has connected this socket.
    ///
    /// # Errors
    /// Why it is not served.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Result<Self, String> {
        let credentials = socket_peercred(socket).map_err(|error| error.to_string())?;
        // It has a pid here only if it is in this pid namespace or below. rustix would not
        // represent 0.
        let pid = credentials.pid;
        let process = pidfd_of(socket, pid).map_err(|error| format!("process {pid:?}: {error}"))?;
        let number = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0);
        let (uid, gid) = (credentials.uid.as_raw(), credentials.gid.as_raw());
        Ok(Self { pid: number, uid, gid, process })
    }

    /// Asks the kernel for the rest.
    ///
    /// # Errors
    /// Why it is not served.
    pub(crate) fn identify(self, records: &Mutex<TaskRecords>) -> Result<Client, String> {
        let credentials = records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .credentials(self.pid)
            .map_err(|error| error.to_string())?
            .ok_or("the recorder has ended")?;
        let uid_map = fs::read_to_string(format!("/proc/{}/uid_map", self.pid))
            .map_err(|error| format!("cannot read its uid_map: {error}"))?;
        // What was read is that of this process only if it is still alive.
        if has_ended(self.process.as_fd()) {
            return Err("the recorder has ended".to_owned());
        }
        let ids = (credentials.uids[0], credentials.gids[0]);
        if !credentials.is_one_user() || ids != (self.uid, self.gid) {
            return Err("the recorder has the ids of several users".to_owned());
        }
        let caller = Caller::other(self.pid, &credentials, is_root_by(&uid_map, self.uid));
        Ok(Client { peer: self, credentials, caller })
    }
}

fn has_ended(process: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut polled, Some(&now)), Ok(0))
}

/// A descriptor of the process that has connected, and not of a later one with its pid (Linux 6.5). Before
/// that, one by its pid.
fn pidfd_of(socket: BorrowedFd<'_>, pid: Pid) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut descriptor: libc::c_int = -1;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `descriptor`; both outlive the call.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &raw mut bytes,
        )
    };
    if got == 0 && descriptor >= 0 {
        // SAFETY: the kernel has just made this descriptor; nothing else owns it.
        return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
