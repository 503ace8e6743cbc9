//! Steps of a recording that is being made, whose processes are known by the serials of their first tasks.

use std::sync::Arc;

use proctrace_classify::Rules;
use proctrace_classify::fast::FastMap;
use proctrace_wire::Exec;

use crate::steps::{NONE, Step, Stepping};

/// Processes at one time that are told apart: as many as a kernel can have.
const PROCESSES_MAX: usize = 1 << 22;

/// Steps so far, and the processes that are alive. Memory depends on the number of these and on that of different
/// environments, not on the number of processes.
#[derive(Debug)]
pub struct LiveSteps {
    stepping: Stepping<Arc<Rules>>,
    /// Numbers of the processes that are alive, by serial; those of ended ones are used again.
    numbers: FastMap<u32, u32>,
    free: Vec<u32>,
}

impl LiveSteps {
    /// No steps yet.
    pub fn new(rules: Arc<Rules>) -> Self {
        let stepping = Stepping::new(rules);
        Self { stepping, numbers: FastMap::default(), free: Vec::new() }
    }

    /// An environment, before the execs that have it: NAME=value strings with their NULs.
    pub fn environment(&mut self, id: u64, block: &[u8]) {
        self.stepping.environment(id, block);
    }

    /// A process is born, of one of these serials.
    pub fn born(&mut self, process: u32, forker: Option<u32>) {
        if self.numbers.len() >= PROCESSES_MAX || self.numbers.contains_key(&process) {
            return;
        }
        // Fits: smaller than `PROCESSES_MAX`.
        let next = self.numbers.len() as u32;
        let number = self.free.pop().unwrap_or(next);
        self.numbers.insert(process, number);
        let forker = forker.and_then(|forker| self.numbers.get(&forker).copied());
        // Logs that name tasks by their own numbers have only those that have ended.
        self.stepping.fork(number, None, forker);
    }

    /// A process executes a program, at this time since 1970. `parent` is the one that started it, if that was recorded.
    pub fn exec(&mut self, exec: &Exec<'_>, process: u32, parent: Option<u32>, unix_ns: u64) {
        let Some(number) = self.numbers.get(&process).copied() else { return };
        // One that has ended is a parent nevertheless.
        let parent = parent.map(|parent| self.numbers.get(&parent).copied().unwrap_or(NONE));
        self.stepping.exec(exec, None, (number, NONE), parent, unix_ns);
    }

    /// A process has ended.
    pub fn gone(&mut self, process: u32) {
        if let Some(number) = self.numbers.remove(&process) {
            self.stepping.gone(number);
            self.free.push(number);
        }
    }

    /// The innermost step that a process belongs to: a position in [`LiveSteps::all`].
    pub fn of(&self, process: u32) -> Option<u32> {
        self.stepping.so_far().of_process(*self.numbers.get(&process)?)
    }

    /// All steps so far. A step comes after the one that it is a part of.
    pub fn all(&self) -> &[Step] {
        &self.stepping.so_far().all
    }
}
