//! The options of a recording that are independent of its source.

use std::path::PathBuf;
use std::time::Duration;

use proctrace_wire::{Call, Family};

use crate::cgroup_pattern::CgroupPattern;
use crate::pace::Interval;

/// Options of a recording that all sources share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Processes to record besides the launched command, if any.
    pub scope: Scope,
    /// Also record the members of this cgroup (a directory of cgroup v2).
    pub cgroup: Option<PathBuf>,
    /// Failed calls to record.
    pub misses: Misses,
    /// Record successful opens, too.
    pub opens: bool,
    /// Time one of this many look-ups on average; None: none.
    pub time_one_in: Option<u32>,
    /// Record times off the CPU that are at least this long, and who ended them; None: none.
    pub waits_min: Option<Duration>,
    /// Record the mount tables of the namespaces in which processes are; false for sources whose
    /// processes are not of this machine.
    pub mounts: bool,
    /// Pause between two sampling passes.
    pub interval: Interval,
    /// Interval between memory readings of every process; None: never.
    pub memory_interval: Option<Duration>,
    /// Names of the environment variables to record at every exec.
    pub env_names: Vec<String>,
    /// Event to wait for.
    pub wait: Wait,
    /// Time to continue after the command has exited while descendants are still running.
    pub grace: Duration,
    /// End the recording after this time, even if tasks are running.
    pub duration: Option<Duration>,
}

/// See [`Options::waits_min`].
pub const WAITS_MIN: Duration = Duration::from_millis(1);

/// See [`Options::time_one_in`]: with tracepoints this adds 7 % to a storm of failed opens, 2 % to searches
/// of the dynamic linker (`cargo xtask bench floor`), and a sixteenth to the records.
pub const TIME_ONE_IN: u32 = 16;

impl Options {
    /// The calls that have hooks: those whose failures are recorded, and opens if these are.
    pub fn hooked_calls(&self) -> Misses {
        if self.opens { self.misses.with(Family::Open) } else { self.misses }
    }
}

/// Existing processes to record, always with their descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// None: only the launched command, or the members of a cgroup.
    Launched,
    /// These processes.
    Pids(Vec<u32>),
    /// Every process of the machine except the recorder.
    All,
    /// Every process in a cgroup that one of these patterns names: each such cgroup is a job.
    Jobs(Vec<CgroupPattern>),
}

/// End of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Ends when the last task of the tree has exited, or the grace period has elapsed.
    Tree,
    /// Ends when the command has exited.
    Root,
}

/// A set of calls whose failures are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misses(u32);

impl Misses {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// All recordable calls.
    pub fn all() -> Self {
        Family::ALL.into_iter().fold(Self::NONE, Self::with)
    }

    /// Adds the calls of a family.
    #[must_use]
    pub fn with(self, family: Family) -> Self {
        Self(family.calls().iter().fold(self.0, |set, call| set | 1 << *call as u16))
    }

    /// True if a call's failures are recorded.
    pub fn contains(self, call: Call) -> bool {
        self.0 >> call as u16 & 1 == 1
    }

    /// The families in it.
    pub fn families(self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |family| self.contains(family.calls()[0]))
    }

    /// Calls as a bit mask: bit n for call n.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scope: Scope::Launched,
            cgroup: None,
            misses: Misses::all(),
            opens: false,
            time_one_in: Some(TIME_ONE_IN),
            waits_min: Some(WAITS_MIN),
            mounts: false,
            interval: Interval::Affordable,
            memory_interval: None,
            env_names: proctrace_trace::ENV_NAMES.map(String::from).to_vec(),
            wait: Wait::Tree,
            grace: Duration::from_secs(5),
            duration: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_make_a_set_of_calls() {
        let misses = Misses::NONE.with(Family::Open).with(Family::Exec);
        assert!(misses.contains(Call::Openat2) && misses.contains(Call::Execveat));
        assert!(!misses.contains(Call::Stat) && !misses.contains(Call::Unknown));
        assert_eq!(misses.families().collect::<Vec<_>>(), [Family::Open, Family::Exec]);
        assert_eq!(Misses::all().families().count(), Family::ALL.len());
        assert_eq!(Misses::NONE.families().count(), 0);
    }
}
