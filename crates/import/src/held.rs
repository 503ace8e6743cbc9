//! Lines of tasks whose creation has not returned yet.

use std::collections::HashMap;

/// Lines and bytes that are kept. Returning takes as long as one system call, except in a log that is
/// not what it seems.
const LINES_MAX: usize = 1 << 14;
const BYTES_MAX: usize = 64 << 20;

/// A line.
pub(crate) struct Held {
    pub(crate) time_ns: u64,
    pub(crate) body: Vec<u8>,
}

/// The lines by task.
#[derive(Default)]
pub(crate) struct Waiting {
    tasks: HashMap<i32, Vec<Held>>,
    lines: usize,
    bytes: usize,
}

impl Waiting {
    pub(crate) fn has(&self, pid: i32) -> bool {
        self.tasks.contains_key(&pid)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The only task that waits.
    pub(crate) fn only(&self) -> Option<i32> {
        self.tasks.keys().next().copied().filter(|_| self.tasks.len() == 1)
    }

    /// Keeps a line; false if there are too many.
    pub(crate) fn keep(&mut self, pid: i32, time_ns: u64, body: &[u8]) -> bool {
        self.lines += 1;
        self.bytes += body.len();
        self.tasks.entry(pid).or_default().push(Held { time_ns, body: body.to_vec() });
        self.lines <= LINES_MAX && self.bytes <= BYTES_MAX
    }

    /// The lines of a task that is known now.
    pub(crate) fn take(&mut self, pid: i32) -> Vec<Held> {
        let held = self.tasks.remove(&pid).unwrap_or_default();
        let bytes: usize = held.iter().map(|line| line.body.len()).sum();
        self.lines = self.lines.saturating_sub(held.len());
        self.bytes = self.bytes.saturating_sub(bytes);
        held
    }

    /// All lines, the task first that appeared first.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (i32, Held)> + use<> {
        let mut tasks: Vec<(i32, Vec<Held>)> = std::mem::take(self).tasks.into_iter().collect();
        tasks.sort_by_key(|(pid, lines)| (lines.first().map(|line| line.time_ns), *pid));
        tasks.into_iter().flat_map(|(pid, lines)| lines.into_iter().map(move |line| (pid, line)))
    }
}
