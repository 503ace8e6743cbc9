//! What a recording can be told, whatever its source. What only one source knows is its own business.

use std::path::PathBuf;
use std::time::Duration;

use proctrace_wire::{Call, Family};

use crate::pace::Interval;

/// What is recorded, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whom to record beside the command that is launched, if one is.
    pub scope: Scope,
    /// Record the members of this cgroup (a directory of cgroup v2) as well.
    pub cgroup: Option<PathBuf>,
    /// Which failed calls to record.
    pub misses: Misses,
    /// Pause between two passes of samples.
    pub interval: Interval,
    /// Pause between two looks at the memory of every process; None: never.
    pub memory_interval: Option<Duration>,
    /// Environment variables to keep at every exec, by name.
    pub env_names: Vec<String>,
    /// What to wait for.
    pub wait: Wait,
    /// How long to go on after the command has exited while descendants are still running.
    pub grace: Duration,
    /// End the recording after this time, whatever is running.
    pub duration: Option<Duration>,
}

/// Whom to record that was there before; their descendants always with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Nobody: the command that is launched, or the members of a cgroup.
    Launched,
    /// These processes.
    Pids(Vec<u32>),
    /// Every process of the machine but the recorder.
    All,
}

/// When a recording is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// When the last task of the tree has exited, or the grace is over.
    Tree,
    /// When the command has exited.
    Root,
}

/// A set of calls whose failures are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misses(u32);

impl Misses {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// All that can be recorded.
    pub fn all() -> Self {
        Family::ALL.into_iter().fold(Self::NONE, Self::with)
    }

    /// These and those of a family.
    #[must_use]
    pub fn with(self, family: Family) -> Self {
        Self(family.calls().iter().fold(self.0, |set, call| set | 1 << *call as u16))
    }

    /// Whether a call's failures are recorded.
    pub fn contains(self, call: Call) -> bool {
        self.0 >> call as u16 & 1 == 1
    }

    /// The families in it.
    pub fn families(self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |family| self.contains(family.calls()[0]))
    }

    /// As a set of bits: bit n for call n.
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
            interval: Interval::Affordable,
            memory_interval: None,
            env_names: ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "ROOTSYS"]
                .map(String::from)
                .to_vec(),
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
