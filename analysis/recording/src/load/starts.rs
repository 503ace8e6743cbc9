//! Time that programs take until their libraries are loaded, as far as failed look-ups show.
//!
//! The dynamic loader searches one directory after another for each library (ld.so(8)). Its
//! failures precede all other failed look-ups of a program; they are over when something else is
//! looked up without success, or when no look-up fails for a while. The last of them is a lower
//! bound of the time at which loading was complete.

use proctrace_classify::fast::FastIndexSet;
use proctrace_libsearch::Sought;

use crate::process::ProgramRun;

/// Maximum time between two failures of one start: the same loader also loads plugins.
const PAUSE_MAX_NS: u64 = 5_000_000_000;

/// The failed look-ups of one program run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Start {
    /// All failed look-ups until the next exec, or the end.
    pub lookups: u32,
    /// The ones of these while it was loading.
    pub loading: u32,
    /// The loading ones of libraries; the rest are of their directories.
    pub libraries: u32,
    /// Of these the ones in directories of the system, which are searched without being in a list.
    pub by_default: u32,
    /// Time of the last of them, in microseconds after the exec.
    pub(crate) loaded_us: u32,
}

impl Start {
    /// Time from the exec to the last look-up of the loading phase.
    pub fn loaded_ns(&self) -> u64 {
        u64::from(self.loaded_us) * 1_000
    }
}

/// The progress of a run: just begun, last failed to find a library in the directory of this
/// number, or done loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stage(u32);

impl Stage {
    const BEGUN: Self = Self(u32::MAX);
    const LOADED: Self = Self(u32::MAX - 1);
}

const NONE: u32 = u32::MAX;

/// Assigns each failed look-up to the program run that made it.
#[derive(Debug)]
pub struct StartFinder {
    /// Time at which each run began.
    begun_ns: Vec<u64>,
    starts: Vec<Start>,
    stages: Vec<Stage>,
    /// Per process: initially its first run, then its current one.
    now: Vec<u32>,
    /// The next run of the same process.
    next: Vec<u32>,
}

impl StartFinder {
    pub fn new(runs: &[ProgramRun], processes: usize) -> Self {
        let mut first = vec![NONE; processes];
        let mut next = vec![NONE; runs.len()];
        for at in (0..runs.len()).rev() {
            if let Some(first) = first.get_mut(runs[at].process as usize) {
                next[at] = std::mem::replace(first, u32::try_from(at).unwrap_or(NONE));
            }
        }
        let starts = vec![Start::default(); runs.len()];
        let stages = vec![Stage::BEGUN; runs.len()];
        let begun_ns = runs.iter().map(|run| run.time_ns).collect();
        Self { begun_ns, starts, stages, now: first, next }
    }

    /// Records that a process failed to find `path`.
    #[inline]
    pub fn add(&mut self, process: usize, missed: Missed<'_>, directories: &FastIndexSet<Vec<u8>>) {
        let time_ns = missed.time_ns;
        let Some(now) = self.now.get_mut(process) else { return };
        let Some(mut begun_ns) = self.begun_ns.get(*now as usize).copied() else { return };
        // Before its first exec it still runs its parent's program.
        if begun_ns > time_ns {
            return;
        }
        while let next = self.next[*now as usize]
            && let Some(next_ns) = self.begun_ns.get(next as usize).copied()
            && next_ns <= time_ns
        {
            (*now, begun_ns) = (next, next_ns);
        }
        let start = &mut self.starts[*now as usize];
        let stage = &mut self.stages[*now as usize];
        start.lookups = start.lookups.saturating_add(1);
        let place = match *stage {
            Stage::BEGUN => None,
            Stage::LOADED => return,
            Stage(directory) => directories.get_index(directory as usize),
        };
        let since_ns = time_ns - begun_ns;
        let of_loader = match missed.sought {
            Sought::Library | Sought::LinkersFile => true,
            // After the first miss in a directory, glibc checks whether the directory exists at
            // all.
            Sought::Existence => place.is_some_and(|directory| directory == missed.path),
            Sought::Else => false,
        };
        if !of_loader || since_ns > start.loaded_ns().saturating_add(PAUSE_MAX_NS) {
            *stage = Stage::LOADED;
            return;
        }
        start.loading = start.loading.saturating_add(1);
        if missed.sought == Sought::Library {
            start.libraries = start.libraries.saturating_add(1);
            let by_default = u32::from(missed.is_by_default);
            start.by_default = start.by_default.saturating_add(by_default);
            *stage = Stage(missed.directory);
        }
        let since_us = u32::try_from(since_ns / 1_000).unwrap_or(u32::MAX);
        start.loaded_us = start.loaded_us.max(since_us);
    }

    pub fn into_inner(self) -> Vec<Start> {
        self.starts
    }
}

/// A failed look-up.
#[derive(Debug, Clone, Copy)]
pub struct Missed<'a> {
    pub time_ns: u64,
    pub sought: Sought,
    pub path: &'a [u8],
    /// Number of the directory of the path.
    pub directory: u32,
    /// Of a library: true if its directory is searched without being in a list.
    pub is_by_default: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene};
    use proctrace_wire::Call;

    #[test]
    fn loading_ends_where_something_else_is_looked_for() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.open_failed(0, 1, "/x/libbefore.so");
        scene.exec(10 * MS, 1, "/opt/one", (0, 0));
        scene.look_up_failed(11 * MS, 1, Call::Access, "/etc/ld.so.preload");
        scene.open_failed(12 * MS, 1, "/a/libc.so.6");
        scene.look_up_failed(12 * MS, 1, Call::Newfstatat, "/a");
        scene.open_failed(14 * MS, 1, "/lib/libc.so.6");
        scene.look_up_failed(15 * MS, 1, Call::Newfstatat, "/etc/one.conf");
        scene.open_failed(20 * MS, 1, "/a/libplugin.so");
        scene.exec(30 * MS, 1, "/opt/two", (0, 0));
        scene.open_failed(33 * MS, 1, "/a/libc.so.6");
        scene.open_failed(30 * MS + 9 * S, 1, "/a/libplugin.so");
        scene.fork(10 * S, 1, 2);
        scene.open_failed(10 * S, 2, "/a/libforked.so");
        scene.exec(10 * S + MS, 2, "/opt/three", (0, 0));
        scene.open_failed(10 * S + 2 * MS, 2, "/a/libc.so.6");
        // A backup is no library.
        scene.open_failed(10 * S + 3 * MS, 2, "/a/libc.so.bak");
        scene.open_failed(10 * S + 4 * MS, 2, "/a/libm.so.6");
        let recording = scene.exit(11 * S, 2, (0, 0)).exit(12 * S, 1, (0, 0)).load(None);
        let of = |at: usize| {
            let start: &Start = &recording.starts[at];
            (start.lookups, start.loading, start.libraries, start.loaded_ns())
        };
        assert_eq!(recording.starts.len(), 3);
        assert_eq!(recording.starts[0].by_default, 1);
        // A stat elsewhere ends the loading phase; what follows counts only in the total.
        assert_eq!(of(0), (6, 4, 2, 4 * MS));
        assert_eq!(of(1), (2, 1, 1, 3 * MS));
        assert_eq!(of(2), (3, 1, 1, MS));
    }
}
