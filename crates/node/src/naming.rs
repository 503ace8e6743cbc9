//! Naming of jobs: which cgroup a job is, and the name of its trace.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proctrace_record::CgroupPattern;

/// The cgroup of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCgroup {
    /// Its directory; None if it had gone before anybody looked.
    pub path: Option<PathBuf>,
    /// Its name: the last component of the path.
    pub name: String,
    /// Path that it must have had, if it has gone and only one place is possible.
    pub was: Option<PathBuf>,
}

/// Meaning of a number of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Job(JobCgroup),
    /// A cgroup beside the jobs, which the pattern does not name.
    Other,
}

/// The programs cut names at this length: JOB_NAME_MAX of scope.bpf.h, without the NUL.
const KERNEL_NAME_MAX: usize = 95;

/// Finds the cgroup of this name whose id ends in `group`, below the directories of the patterns. The name is
/// what the kernel said when its first process was found; None if that record was lost.
pub(crate) fn find(
    patterns: &[CgroupPattern],
    root: &Path,
    group: u32,
    name: Option<&[u8]>,
) -> Found {
    let name = name.filter(|name| name.len() < KERNEL_NAME_MAX);
    if name.is_some_and(|name| !patterns.iter().any(|pattern| pattern.names(name))) {
        return Found::Other;
    }
    for pattern in patterns {
        for directory in pattern.directories(root) {
            for entry in fs::read_dir(&directory.path).into_iter().flatten().flatten() {
                let found = entry.file_name();
                // The low half of the id, as the programs number jobs.
                if pattern.names(found.as_bytes())
                    && entry.metadata().is_ok_and(|it| it.is_dir() && it.ino() as u32 == group)
                {
                    let name = found.to_string_lossy().into_owned();
                    return Found::Job(JobCgroup { path: Some(entry.path()), name, was: None });
                }
            }
        }
    }
    // Gone already.
    let Some(name) = name else {
        let name = format!("cgroup-{group}");
        return Found::Job(JobCgroup { path: None, name, was: None });
    };
    let fitting = patterns.iter().filter(|pattern| pattern.names(name));
    let mut places: Vec<PathBuf> =
        fitting.flat_map(|it| it.directories(root)).map(|directory| directory.path).collect();
    places.dedup();
    let name = String::from_utf8_lossy(name).into_owned();
    let was = (places.len() == 1).then(|| places[0].join(&name));
    Found::Job(JobCgroup { path: None, name, was })
}

/// The name of the trace of a job that began at this time: what is special in names of files is replaced.
pub fn file_name(cgroup: &str, started_unix_ns: u64) -> String {
    const NAME_BYTES_MAX: usize = 128;
    let name: String = cgroup
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-@".contains(c) { c } else { '_' })
        .take(NAME_BYTES_MAX)
        .collect();
    let name = if name.starts_with('.') { format!("_{name}") } else { name };
    format!("{name}.{}.ptrace", started_unix_ns / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_by_their_number() {
        let root = tempfile::tempdir().unwrap();
        let patterns = ["jobs/job_*".parse().unwrap()];
        for name in ["job_1", "job_2", "other"] {
            fs::create_dir_all(root.path().join("jobs").join(name)).unwrap();
        }
        let number =
            |name: &str| fs::metadata(root.path().join("jobs").join(name)).unwrap().ino() as u32;
        let find = |group, name| find(&patterns, root.path(), group, name);
        let path = root.path().join("jobs/job_2");
        let found = Found::Job(JobCgroup { path: Some(path), name: "job_2".into(), was: None });
        assert_eq!(find(number("job_2"), Some(b"job_2")), found);
        assert_eq!(find(number("job_2"), None), found);
        assert_eq!(find(number("other"), Some(b"other")), Found::Other);
        let gone = |name: &str, was| Found::Job(JobCgroup { path: None, name: name.into(), was });
        assert_eq!(find(1, Some(b"job_9")), gone("job_9", Some(root.path().join("jobs/job_9"))));
        assert_eq!(find(1, None), gone("cgroup-1", None));
    }

    #[test]
    fn names_of_files_are_harmless() {
        assert_eq!(file_name("job_17", 1_700_000_000_123_456_789), "job_17.1700000000123.ptrace");
        assert_eq!(file_name("a b/../c", 1_000_000), "a_b_.._c.1.ptrace");
        assert_eq!(file_name("..", 0), "_...0.ptrace");
        assert!(file_name(&"x".repeat(1000), 0).len() < 160);
    }
}
