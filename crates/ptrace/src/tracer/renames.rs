//! Renames of files, recorded along with successful opens.
//!
//! The task is stopped at the end of the call, so the directories are still those in which the kernel has found the
//! names; the file itself has the new one already.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proctrace_wire::layout::{MOVED_DIRECTORY, MOVED_EXCHANGED, MOVED_UNKNOWN, MovedFixed};
use proctrace_wire::{Kind, Stream};

use super::Tracer;
use crate::arch::{FIRST_ARGUMENT_IS_LOST, Registers};
use crate::procfs::link;
use crate::records::{assemble, head};
use crate::sys::{self, Tid};

const PATH_MAX: usize = 4096;

impl Tracer<'_> {
    /// A task has renamed a file or directory.
    pub(super) fn renamed(&mut self, tid: Tid, registers: &Registers) {
        let Some(task) = self.tasks.get(&tid) else { return };
        let serial = task.serial;
        let first =
            if FIRST_ARGUMENT_IS_LOST { task.first_argument } else { registers.argument(0) };
        let call = registers.number();
        let (from, to) = match call {
            libc::SYS_renameat | libc::SYS_renameat2 => (
                (first as i32, registers.argument(1)),
                (registers.argument(2) as i32, registers.argument(3)),
            ),
            _ => ((libc::AT_FDCWD, first), (libc::AT_FDCWD, registers.argument(1))),
        };
        let mut bits = 0;
        if call == libc::SYS_renameat2 && registers.argument(4) as u32 & libc::RENAME_EXCHANGE != 0
        {
            bits |= MOVED_EXCHANGED;
        }
        let paths = sees_the_same_files(tid)
            .then(|| Some((found(tid, from)?, found(tid, to)?)))
            .flatten()
            .filter(|(from, path)| from.len().max(path.len()) < PATH_MAX);
        let (from, path) = paths.unwrap_or_default();
        if path.is_empty() {
            bits |= MOVED_UNKNOWN;
        } else if fs::symlink_metadata(OsStr::from_bytes(&path)).is_ok_and(|file| file.is_dir()) {
            bits |= MOVED_DIRECTORY;
        }
        let moved = MovedFixed {
            head: head(Kind::Moved, serial, self.now()),
            // Fit: shorter than `PATH_MAX`.
            from_bytes: from.len() as u16,
            path_bytes: path.len() as u16,
            bits,
        };
        assemble(&mut self.record, &moved, &[&from, &path]);
        self.write(Stream::Lookups);
    }
}

/// True if a path means the same to the task as to this process.
fn sees_the_same_files(tid: Tid) -> bool {
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let namespace = link(tid, "ns/mnt");
    link(tid, "root").is_some_and(|root| root == b"/")
        && own.is_some_and(|own| Some(own.as_os_str().as_bytes()) == namespace.as_deref())
}

/// The path of a name that a task has passed to a system call, with that of its directory without symbolic links.
fn found(tid: Tid, (directory, name): (i32, u64)) -> Option<Vec<u8>> {
    let mut buffer = [0; PATH_MAX];
    let len = sys::read_string(tid, name, &mut buffer).filter(|len| *len < PATH_MAX)?;
    let name = Path::new(OsStr::from_bytes(&buffer[..len]));
    let base = match directory {
        _ if name.is_absolute() => Vec::new(),
        libc::AT_FDCWD => link(tid, "cwd")?,
        descriptor => link(tid, &format!("fd/{descriptor}"))?,
    };
    let whole = Path::new(OsStr::from_bytes(&base)).join(name);
    let parent = fs::canonicalize(whole.parent()?).ok()?;
    Some(parent.join(whole.file_name()?).as_os_str().as_bytes().to_vec())
}
