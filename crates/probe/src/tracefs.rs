//! Reading tracepoint ids from tracefs, mounted or not.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// An open tracefs.
///
/// Tracefs is often not mounted, and mounting it permanently would change the machine. A mount
/// created by fsmount(2) is not attached anywhere: it is reachable only through its descriptor, and
/// disappears with it.
#[derive(Debug)]
pub struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Opens the mounted tracefs, or a private mount, which takes CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// If neither is possible.
    pub fn open() -> io::Result<Self> {
        for mounted in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if Path::new(mounted).join("events/syscalls").is_dir() {
                return Ok(Self { root: File::open(mounted)?.into() });
            }
        }
        let context = fsopen(c"tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        Ok(Self { root })
    }

    /// The id of a tracepoint, as required by perf_event_open(2).
    pub(crate) fn tracepoint_id(&self, category: &str, name: &str) -> io::Result<u64> {
        let path = format!("events/{category}/{name}/id");
        let file = openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).take(32).read_to_string(&mut text)?;
        text.trim().parse().map_err(|_| io::Error::other(format!("tracepoint id {text:?}")))
    }
}
