//! The critical path: what the wall time of a command was spent on.

use serde::Serialize;

/// The critical path of the command in sums, each of which has the wall time as its total.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CriticalPath {
    /// The wall time.
    pub wall_ns: u64,
    /// The part in which a task on the path ran.
    pub running_ns: u64,
    /// The part in which it was ready to run and waited for a CPU.
    pub waiting_for_cpu_ns: u64,
    /// The part in which it waited for something that no task of the recording did.
    pub waiting_ns: u64,
    /// The children of the command, each with its descendants, and the command itself: by program,
    /// the longest first.
    pub phases: Vec<PathPhase>,
    /// Programs on the path, the longest first.
    pub programs: Vec<PathProgram>,
    /// `waiting_ns` by what was waited for, the longest first.
    pub waits: Vec<PathWait>,
}

/// A phase of a command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathPhase {
    /// The program that the child ran last; the command's own for the command itself.
    pub program: String,
    /// True if this is the command itself.
    pub is_command: bool,
    /// Number of children on the path that ran this program; 0 for the command itself.
    pub children: u64,
    /// Its time on the path.
    pub path_ns: u64,
    /// Mean number of CPUs that the whole recording used during that time.
    pub cores_in_use: Option<f64>,
}

/// Activity of a program on the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathProgram {
    /// Its name.
    pub program: String,
    /// Time in which it ran.
    pub running_ns: u64,
    /// Time in which it waited for a CPU.
    pub waiting_for_cpu_ns: u64,
    /// Time in which it waited for something that no task of the recording did.
    pub waiting_ns: u64,
    /// Number of times that the path came to it from another program.
    pub times: u64,
}

/// Waits on the path for something that no task of the recording did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathWait {
    /// Object of the wait, as in `dump`: "timer", "disk".
    pub waits_for: &'static str,
    /// The same for people: "a timer".
    pub says: &'static str,
    /// The program that waited longest.
    pub main_program: String,
    /// Their time.
    pub waiting_ns: u64,
}

impl PathProgram {
    /// Its time on the path.
    pub fn path_ns(&self) -> u64 {
        self.running_ns.saturating_add(self.waiting_for_cpu_ns).saturating_add(self.waiting_ns)
    }
}
