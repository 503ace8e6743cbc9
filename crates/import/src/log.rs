//! A log: its name, how it is opened, and whose lines have no pid.

use std::io::{self, BufReader, Read};

use crate::body::Body;
use crate::call::{Parsed, Role};
use crate::error::ImportError;
use crate::line::Line;
use crate::reading::{Reading, Written};
use crate::text::Returned;

/// The beginning of a log, in which the pid of its first task is sought, and how its lines begin.
pub(crate) const BEGINNING: u64 = 1 << 20;

/// Opens a log. Called twice if there are several.
pub type Open = Box<dyn FnMut() -> io::Result<Box<dyn Read>>>;

/// A log to import.
pub struct Log {
    /// Its name, for messages.
    pub name: String,
    /// The task of all its lines (`strace -ff`).
    pub pid: Option<i32>,
    /// Opens it.
    pub open: Open,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("name", &self.name).field("pid", &self.pid).finish()
    }
}

/// True if no line at the beginning of a log has a pid: strace wrote it for one task.
pub fn is_without_pids(beginning: &[u8]) -> bool {
    let mut lines = beginning.split(|byte| *byte == b'\n').take(1 << 10);
    lines.all(|line| {
        let line = Line::of(line);
        line.pid.is_none() || !line.says().is_of_a_task()
    })
}

/// Begins to read a log.
pub(crate) fn open(log: &mut Log, day_ns: u64) -> Result<Reading, ImportError> {
    let fail = |source| ImportError::Read { name: log.name.clone(), source };
    let mut file = (log.open)().map_err(fail)?;
    let mut beginning = Vec::new();
    let (anonymous, buffer_bytes) = match log.pid {
        // There may be thousands of these.
        Some(pid) => (pid, 1 << 13),
        None => {
            file.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(fail)?;
            (first_pid(&beginning), 1 << 18)
        }
    };
    let rest = Box::new(BufReader::with_capacity(buffer_bytes, file));
    let one = (anonymous, log.pid.is_some());
    Ok(Reading::of(log.name.clone(), (beginning, rest), day_ns, one))
}

/// The pid of the task whose lines have none at the beginning of a log: strace prints pids only while
/// it follows more than one. 0 if it does not show.
fn first_pid(beginning: &[u8]) -> i32 {
    let mut candidates: Vec<i32> = Vec::new();
    let mut born: Vec<i32> = Vec::new();
    let mut reading = Reading::of_beginning(beginning.to_vec());
    let mut left = 1 << 14;
    while left > 0 && reading.advance().unwrap_or(false) {
        left -= 1;
        if reading.written != Written::ByStrace {
            continue;
        }
        let line = reading.line();
        let said = line.says();
        match (line.pid, said) {
            // Several are those of a process that was there before.
            (_, Body::Attached { pid, tasks: 1 }) => born.push(pid),
            (None, Body::Call { name: b"set_tid_address", text }) if born.is_empty() => {
                let returned = Parsed::of(text).map(|parsed| parsed.returned);
                if let Some(Returned::Value(id, _)) = returned
                    && let Ok(id) = i32::try_from(id)
                {
                    return id;
                }
            }
            (_, Body::Call { name, text } | Body::Resumed { name, text }) => {
                if let Role::Fork(call) = Role::of(name) {
                    born.extend(Parsed::of(text).and_then(|it| it.forked(call)).map(|it| it.child));
                }
            }
            _ => {}
        }
        if said.is_of_a_task() {
            candidates.extend(line.pid.filter(|pid| candidates.last() != Some(pid)));
        }
    }
    candidates.into_iter().find(|pid| !born.contains(pid)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_task_is_the_one_that_nobody_created() {
        for (text, pid) in [
            (&b"pause() = 0\nset_tid_address(0x7) = 31\n"[..], 31),
            (b"clone(flags=SIGCHLD) = 7\n[pid 7] pause() = 0\n[pid 6] pause() = 0\n", 6),
            (
                b"clone( <unfinished ...>\n[pid 7] pause() = 0\n[pid 6] <... clone resumed>) = 7\n",
                6,
            ),
            (b"strace: Process 7 attached\n[pid 7] pause() = 0\n[pid 6] pause() = 0\n", 6),
            (b"pause() = 0\n", 0),
        ] {
            assert_eq!(first_pid(text), pid, "{}", String::from_utf8_lossy(text));
        }
    }
}
