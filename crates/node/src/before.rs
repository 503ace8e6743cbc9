//! History of jobs before they were recorded: of those that ran when the recorder started, and those in a directory that it
//! had not seen yet.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proctrace_record::{CgroupPattern, unix_ns};

/// Maximum time from the making of a cgroup to the recording of a job in a new directory that has begun with it.
const AT_ONCE_NS: u64 = 50_000_000;

/// State of the node before the recording.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// True if all that ran at the start has been found.
    is_ready: bool,
    /// Directories of jobs that are watched.
    directories: HashSet<u64>,
    /// CPU time of the jobs' cgroups at the start, by their ids.
    used_ns: HashMap<u64, u64>,
}

/// History of a job before it was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// True if it may have run before.
    pub(crate) began_before: bool,
    /// CPU time that its cgroup had used by then.
    pub(crate) cpu_ns: Option<u64>,
}

impl Before {
    /// Looks at the cgroups that there are, before anything is recorded.
    pub(crate) fn now(patterns: &[CgroupPattern], root: &Path) -> Self {
        let mut before = Self::default();
        for directory in patterns.iter().flat_map(|pattern| pattern.directories(root)) {
            for entry in fs::read_dir(&directory.path).into_iter().flatten().flatten() {
                if let (Ok(metadata), Some(used_ns)) = (entry.metadata(), cpu_ns(&entry.path())) {
                    before.used_ns.insert(metadata.ino(), used_ns);
                }
            }
            before.directories.insert(directory.id);
        }
        before
    }

    /// All that ran at the start has been found.
    pub(crate) fn ready(&mut self) {
        self.is_ready = true;
    }

    /// Directories that have been made since: they are watched by now.
    pub(crate) fn watched(&mut self, patterns: &[CgroupPattern], root: &Path) {
        let directories = patterns.iter().flat_map(|pattern| pattern.directories(root));
        self.directories.extend(directories.map(|directory| directory.id));
    }

    /// Returns the history of a job that is recorded from now on.
    pub(crate) fn of(&mut self, cgroup: Option<&Path>) -> Earlier {
        let found = || {
            let path = cgroup?;
            Some((path, fs::metadata(path).ok()?, fs::metadata(path.parent()?).ok()?))
        };
        let Some((path, metadata, above)) = found() else {
            return Earlier { began_before: !self.is_ready, cpu_ns: None };
        };
        // A later recording of the same cgroup is no longer about what was before.
        let used_ns = self.used_ns.remove(&metadata.ino());
        if !self.is_ready {
            return Earlier { began_before: true, cpu_ns: cpu_ns(path).or(used_ns) };
        }
        if let Some(used_ns) = used_ns.filter(|used_ns| *used_ns > 0) {
            return Earlier { began_before: true, cpu_ns: Some(used_ns) };
        }
        let made_ns = u64::try_from(metadata.ctime()).unwrap_or(0).saturating_mul(1_000_000_000);
        let made_ns = made_ns.saturating_add(u64::try_from(metadata.ctime_nsec()).unwrap_or(0));
        let is_late = unix_ns().saturating_sub(made_ns) > AT_ONCE_NS;
        if is_late && !self.directories.contains(&above.ino()) {
            return Earlier { began_before: true, cpu_ns: cpu_ns(path) };
        }
        Earlier { began_before: false, cpu_ns: Some(0) }
    }
}

/// CPU time of a cgroup and of those below it, by its cpu.stat.
fn cpu_ns(cgroup: &Path) -> Option<u64> {
    let stat = fs::read_to_string(cgroup.join("cpu.stat")).ok()?;
    let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    used.trim().parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a cgroup.
    fn cgroup(root: &Path, name: &str, used_us: u64) -> std::path::PathBuf {
        let path = root.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("cpu.stat"), format!("usage_usec {used_us}\nuser_usec 1\n")).unwrap();
        path
    }

    #[test]
    fn jobs_that_were_there_are_told_from_those_that_come() {
        let root = tempfile::tempdir().unwrap();
        let patterns = ["jobs/job_*".parse().unwrap(), "later/job_*".parse().unwrap()];
        let running = cgroup(root.path(), "jobs/job_1", 7);
        let paused = cgroup(root.path(), "jobs/job_2", 8);
        let unused = cgroup(root.path(), "jobs/job_3", 0);
        let mut before = Before::now(&patterns, root.path());
        let told = |earlier: Earlier| (earlier.began_before, earlier.cpu_ns);
        cgroup(root.path(), "jobs/job_1", 9);
        assert_eq!(told(before.of(Some(&running))), (true, Some(9_000)));
        before.ready();
        assert_eq!(told(before.of(Some(&paused))), (true, Some(8_000)));
        // What comes later in the same cgroup, and one that was made but not used.
        assert_eq!(told(before.of(Some(&paused))), (false, Some(0)));
        assert_eq!(told(before.of(Some(&unused))), (false, Some(0)));
        assert_eq!(told(before.of(None)), (false, None));
        // In a directory that nobody watched.
        let unseen = cgroup(root.path(), "later/job_4", 5);
        std::thread::sleep(std::time::Duration::from_nanos(2 * AT_ONCE_NS));
        assert_eq!(told(before.of(Some(&unseen))), (true, Some(5_000)));
        before.watched(&patterns, root.path());
        assert_eq!(told(before.of(Some(&unseen))), (false, Some(0)));
    }
}
