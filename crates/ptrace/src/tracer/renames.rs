//! Renames of files, recorded along with successful opens.
//!
//! Nothing is looked up in the file systems of the task: one that the payload itself serves would wait for the task, which
//! waits for this process.

use proctrace_wire::layout::{
    MOVED_EXCHANGED, MOVED_FROM_HERE, MOVED_FROM_IS_RELATIVE, MOVED_PATH_IS_RELATIVE,
    MOVED_UNKNOWN, MovedFixed,
};
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
        let given = given(tid, from).zip(given(tid, to));
        let (mut bits, from, path) = match given {
            Some(((from, from_is_relative), (path, is_relative))) => {
                let bit = |is, bit| if is { bit } else { 0 };
                let bits = bit(from_is_relative, MOVED_FROM_IS_RELATIVE)
                    | bit(is_relative, MOVED_PATH_IS_RELATIVE);
                (bits, from, path)
            }
            None => (MOVED_UNKNOWN, Vec::new(), Vec::new()),
        };
        let flags = if call == libc::SYS_renameat2 { registers.argument(4) as u32 } else { 0 };
        if bits != MOVED_UNKNOWN && flags & libc::RENAME_EXCHANGE != 0 {
            bits |= MOVED_EXCHANGED;
        }
        let moved = MovedFixed {
            head: head(Kind::Moved, serial, self.now()),
            // Fit: each of two parts is shorter than `PATH_MAX`.
            from_bytes: from.len() as u16,
            path_bytes: path.len() as u16,
            bits,
        };
        assemble(&mut self.record, &moved, &[&from, &path]);
        self.write(Stream::Lookups);
        self.numbers.moved();
    }
}

/// A path that a task has passed to a system call, behind that of its directory if it is relative, which is returned too;
/// otherwise behind that of its root, as paths of opened files are.
fn given(tid: Tid, (directory, name): (i32, u64)) -> Option<(Vec<u8>, bool)> {
    let mut buffer = [0; PATH_MAX];
    let len = sys::read_string(tid, name, &mut buffer).filter(|len| (1..PATH_MAX).contains(len))?;
    let name = &buffer[..len];
    let is_relative = !name.starts_with(b"/");
    let before = match directory {
        _ if !is_relative => link(tid, "root")?,
        libc::AT_FDCWD => link(tid, "cwd")?,
        descriptor => link(tid, &format!("fd/{descriptor}"))?,
    };
    if !before.starts_with(b"/") || before.len() >= PATH_MAX {
        return None;
    }
    let whole = match is_relative {
        true => [&before, MOVED_FROM_HERE, name].concat(),
        false if before == b"/" => name.to_vec(),
        false => [&before, name].concat(),
    };
    Some((whole, is_relative))
}
