//! What a recording can be told.

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
    /// Where to take them from.
    pub lookup_hook: LookupHook,
    /// Attach programs that do nothing: what a run then costs is what the hooks themselves do.
    pub empty_programs: bool,
    /// Pause between two passes of samples.
    pub interval: Interval,
    /// Pause between two looks at the memory of every process; None: never.
    pub memory_interval: Option<Duration>,
    /// Bytes of each of the two ring buffers: a power of two, at least a page.
    pub ring_bytes: u32,
    /// What to do when a ring buffer is nearly full.
    pub on_full: OnFull,
    /// Environment variables to keep at every exec; names of at most [`ENV_NAME_MAX`] bytes.
    pub env_names: Vec<String>,
    /// What to wait for.
    pub wait: Wait,
    /// How long to go on after the command has exited while descendants are still running.
    pub grace: Duration,
    /// End the recording after this time, whatever is running.
    pub duration: Option<Duration>,
}

/// The longest name of an environment variable that can be asked for.
pub const ENV_NAME_MAX: usize = 31;

/// As many environment variables can be asked for.
pub const ENV_NAMES_MAX: usize = 32;

/// As many processes can be asked for by their pids.
pub const PIDS_MAX: usize = 1024;

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

/// What to do when a ring buffer is nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// Nothing: what does not fit is dropped and counted.
    Drop,
    /// Make the payload wait for the recorder.
    Block,
}

/// Where failed look-ups are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupHook {
    /// The first of the following that this kernel gives us: the cheapest.
    Auto,
    /// The functions that serve the calls.
    Fexit,
    /// The tracepoints of the calls.
    Tracepoint,
    /// The one tracepoint of all calls.
    SysExit,
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

    /// As the BPF programs want it: bit n for call n.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scope: Scope::Launched,
            cgroup: None,
            misses: Misses::all(),
            lookup_hook: LookupHook::Auto,
            empty_programs: false,
            interval: Interval::Affordable,
            memory_interval: None,
            ring_bytes: ring_bytes_for(aya::util::nr_cpus().unwrap_or(1)),
            on_full: OnFull::Drop,
            env_names: ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "ROOTSYS"]
                .map(String::from)
                .to_vec(),
            wait: Wait::Tree,
            grace: Duration::from_secs(5),
            duration: None,
        }
    }
}

/// The size of a ring buffer for a machine with so many CPUs.
///
/// It has to hold what all of them can write until the recorder gets the CPU: 2 MiB are 20 ms of the
/// worst storm, look-ups of paths that were never looked up before. The kernel clears it when it is
/// made, 1 ms for each MiB, so it is not larger than that.
fn ring_bytes_for(cpus: usize) -> u32 {
    const A_CPU: u32 = 2 << 20;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX).clamp(2, 16);
    A_CPU * cpus.next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two() {
        let sizes = [0, 1, 2, 3, 12, 16, 1024].map(|cpus| ring_bytes_for(cpus) >> 20);
        assert_eq!(sizes, [4, 4, 4, 8, 32, 32, 32]);
    }

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
