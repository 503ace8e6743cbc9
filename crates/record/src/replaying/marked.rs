//! Processes with a certain variable in their environment, which are thus descendants of one
//! command.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The variable that marks an environment.
const NAME: &str = "PROCTRACE_REPLAY";

/// Time of an exec, during which the environment of a process is empty for some microseconds.
const EXEC: Duration = Duration::from_millis(1);

/// The processes seen with a unique value of the variable.
#[derive(Debug)]
pub(super) struct Marked {
    value: String,
    /// Serial numbers by pid and start time, since pids are reused.
    known: BTreeMap<(i32, u64), u32>,
}

/// A process that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) serial: u32,
    pub(super) pid: i32,
    pub(super) state: u8,
    pub(super) rss_pages: u64,
}

impl Default for Marked {
    fn default() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { value: format!("{}-{count}", std::process::id()), known: BTreeMap::new() }
    }
}

impl Marked {
    pub(super) fn variable(&self) -> (String, String) {
        (NAME.to_owned(), self.value.clone())
    }

    /// Number of processes seen so far.
    pub(super) fn known(&self) -> usize {
        self.known.len()
    }

    /// The processes that are alive now.
    pub(super) fn alive(&mut self) -> Vec<Process> {
        let mut found = self.look();
        if found.is_empty() {
            std::thread::sleep(EXEC);
            found = self.look();
        }
        found
    }

    fn look(&mut self) -> Vec<Process> {
        let Ok(directory) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = directory.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| self.look_at(pid)).collect()
    }

    fn look_at(&mut self, pid: i32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // proc_pid_stat(5): the name in parentheses may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let start_ticks = fields.nth(18)?.parse().ok()?;
        let rss_pages = fields.nth(1)?.parse().ok()?;
        if b"ZXx".contains(&state) {
            return None;
        }
        let serial = match self.known.get(&(pid, start_ticks)) {
            Some(serial) => *serial,
            None if self.has_mark(pid) => {
                let serial = u32::try_from(self.known.len()).ok()?.checked_add(1)?;
                *self.known.entry((pid, start_ticks)).or_insert(serial)
            }
            None => return None,
        };
        Some(Process { serial, pid, state, rss_pages })
    }

    fn has_mark(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mark = format!("{NAME}={}", self.value);
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    }
}
