//! The cgroups that a client may name: its own, those below, and those that were delegated to it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, fstatfs, openat, statat};

use crate::peer::Client;

/// CGROUP2_SUPER_MAGIC of linux/magic.h.
const CGROUP2: i64 = 0x6367_7270;

/// Deeper than any manager nests them.
const DEPTH_MAX: usize = 64;

/// Checks the directory that came with a request for the cgroup with this id.
///
/// A path would have to be resolved in the client's mount namespace and with its rights; a descriptor shows that the
/// client could open the directory.
///
/// # Errors
/// The reason to refuse it.
pub(crate) fn check(client: &Client, id: u64, directory: &OwnedFd) -> Result<(), String> {
    let unreadable = |error: rustix::io::Errno| format!("the cgroup cannot be read: {error}");
    // Asked first: of other file systems, which a client may serve itself, nothing else is read.
    if fstatfs(directory).map_err(unreadable)?.f_type as i64 != CGROUP2 {
        return Err("the descriptor is not that of a cgroup of version 2".to_owned());
    }
    let here = fstat(directory).map_err(unreadable)?;
    if here.st_ino != id {
        return Err("the descriptor is that of another cgroup".to_owned());
    }
    if client.caller.may_trace_all() {
        return Ok(());
    }
    // Delegated: cgroups(7). Whoever may move processes there owns both.
    let uid = client.peer.uid;
    let members = statat(directory, "cgroup.procs", AtFlags::SYMLINK_NOFOLLOW);
    if here.st_uid == uid && members.is_ok_and(|members| members.st_uid == uid) {
        return Ok(());
    }
    let mut inode = here.st_ino;
    let mut above: Option<OwnedFd> = None;
    for _ in 0..DEPTH_MAX {
        if inode == client.credentials.cgroup {
            return Ok(());
        }
        let from = above.as_ref().map_or(directory.as_fd(), OwnedFd::as_fd);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let next = openat(from, "..", flags, Mode::empty()).map_err(unreadable)?;
        let parent = fstat(&next).map_err(unreadable)?.st_ino;
        // The root of the mount, or of the hierarchy.
        if parent == inode {
            break;
        }
        inode = parent;
        above = Some(next);
    }
    Err("the cgroup is neither the recorder's own, nor below it, nor delegated to its user"
        .to_owned())
}
