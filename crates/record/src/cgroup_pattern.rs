//! The cgroups of a node that are jobs: patterns of their paths.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use glob::Pattern;
use thiserror::Error;

/// The cgroups in which batch systems and container engines run jobs by default. None of them needs to exist.
///
/// Sources: Slurm, "Control Group v2 plugin" (a node name precedes the scope where several daemons share a
/// node); HTCondor, BASE_CGROUP in its manual; Docker and Podman, cgroup drivers systemd and cgroupfs;
/// Kubernetes, "About cgroup v2".
pub const JOB_CGROUPS: &[&str] = &[
    "system.slice/*slurmstepd.scope/job_*",
    "htcondor/*",
    "system.slice/htcondor/*",
    "system.slice/condor.service/htcondor/*",
    "system.slice/docker-*.scope",
    "docker/*",
    "machine.slice/libpod-*.scope",
    "user.slice/user-*.slice/user@*.service/user.slice/libpod-*.scope",
    "kubepods.slice/kubepods-pod*.slice",
    "kubepods.slice/kubepods-*.slice/kubepods-*-pod*.slice",
    "kubepods/pod*",
    "kubepods/*/pod*",
];

/// The processes by which Podman watches containers are in cgroups beside those of the containers.
const MONITORS: &[u8] = b"libpod-conmon-";

/// Maximum number of directories that are searched for jobs.
const DIRECTORIES_MAX: usize = 1024;

/// The path of a job's cgroup, relative to the mount point of cgroup v2, as a glob pattern: `*` in a component stands
/// for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPattern {
    /// Its directory; empty for the mount point.
    above: String,
    name: Pattern,
}

/// A cgroup in which jobs are, now or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupDirectory {
    /// Its path.
    pub path: PathBuf,
    /// Its id: the inode number of the directory.
    pub id: u64,
}

/// Errors of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// There is no component.
    #[error("the pattern names no cgroup below the root")]
    Root,
    /// A component is `.` or `..`.
    #[error("the pattern must not have . or .. in it")]
    Dots,
    /// It is no glob pattern.
    #[error("not a glob pattern: {0}")]
    Glob(&'static str),
}

impl From<glob::PatternError> for PatternError {
    fn from(error: glob::PatternError) -> Self {
        Self::Glob(error.msg)
    }
}

impl FromStr for CgroupPattern {
    type Err = PatternError;

    /// Parses a path below the mount point, or one that begins with one of the usual mount points.
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mounted = ["/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"];
        let text = mounted.iter().find_map(|point| text.strip_prefix(point)).unwrap_or(text);
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| [".", ".."].contains(part)) {
            return Err(PatternError::Dots);
        }
        let (name, above) = parts.split_last().ok_or(PatternError::Root)?;
        let above = above.join("/");
        Pattern::new(&above)?;
        Ok(Self { above, name: Pattern::new(name)? })
    }
}

impl std::fmt::Display for CgroupPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.above {
            "" => self.name.fmt(f),
            above => write!(f, "{above}/{}", self.name),
        }
    }
}

impl CgroupPattern {
    /// The cgroups below `root` that have jobs directly below them, as far as they exist.
    pub fn directories(&self, root: &Path) -> Vec<CgroupDirectory> {
        let root = Pattern::escape(&root.to_string_lossy());
        let paths = glob::glob(&format!("{root}/{}", self.above)).into_iter().flatten().flatten();
        let directory = |path: PathBuf| {
            let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_dir)?;
            Some(CgroupDirectory { id: metadata.ino(), path })
        };
        paths.filter_map(directory).take(DIRECTORIES_MAX).collect()
    }

    /// True if a cgroup of this name, in one of these directories, is a job.
    pub fn names(&self, name: &[u8]) -> bool {
        self.name.matches(&String::from_utf8_lossy(name)) && !name.starts_with(MONITORS)
    }

    /// Beginning of all these names.
    pub fn beginning(&self) -> &str {
        self.name.as_str().split(['*', '?', '[']).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("job_*", "job_17", true),
            ("job_*", "job_", true),
            ("job_*", "job", false),
            ("*", "", true),
            ("*slurmstepd.scope", "node7_slurmstepd.scope", true),
            ("docker-*.scope", "docker-abc.scope", true),
            ("docker-*.scope", "docker-abc.service", false),
            ("*a*b*", "xxaxxaxb", true),
            ("*a*b*", "xxbxxa", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
            ("job_[0-9]?", "job_17", true),
            ("job_[0-9]?", "job_x7", false),
        ] {
            let parsed: CgroupPattern = pattern.parse().unwrap();
            assert_eq!(parsed.names(name.as_bytes()), expected, "{pattern} {name}");
            assert!(name.starts_with(parsed.beginning()) || !expected, "{pattern} {name}");
        }
    }

    #[test]
    fn directories_are_found_as_they_appear() {
        let root = tempfile::tempdir().unwrap();
        let pattern: CgroupPattern = "/sys/fs/cgroup/a.slice/*step.scope/job_*".parse().unwrap();
        assert_eq!(pattern.to_string(), "a.slice/*step.scope/job_*");
        assert_eq!(pattern.directories(root.path()), []);
        for name in ["n1_step.scope", "step.scope", "other.scope"] {
            fs::create_dir_all(root.path().join("a.slice").join(name).join("job_1")).unwrap();
        }
        let found = pattern.directories(root.path());
        let names: Vec<_> = found.iter().map(|found| found.path.file_name().unwrap()).collect();
        assert_eq!(names, ["n1_step.scope", "step.scope"]);
        assert!(found.iter().all(|found| found.id == fs::metadata(&found.path).unwrap().ino()));
        assert!(pattern.names(b"job_1") && !pattern.names(b"jobs"));
        let podman: CgroupPattern = "machine.slice/libpod-*.scope".parse().unwrap();
        assert!(podman.names(b"libpod-17.scope") && !podman.names(b"libpod-conmon-17.scope"));
        assert_eq!(pattern.beginning(), "job_");
    }

    #[test]
    fn a_pattern_stays_below_the_root() {
        assert_eq!("/".parse::<CgroupPattern>(), Err(PatternError::Root));
        assert_eq!("/sys/fs/cgroup/unified/".parse::<CgroupPattern>(), Err(PatternError::Root));
        assert_eq!("../etc/*".parse::<CgroupPattern>(), Err(PatternError::Dots));
        for odd in ["a/job_**", "a**/job_*", "a/[b"] {
            let error = odd.parse::<CgroupPattern>().unwrap_err();
            assert!(matches!(error, PatternError::Glob(_)), "{odd}: {error}");
        }
        for pattern in JOB_CGROUPS {
            assert_eq!(pattern.parse::<CgroupPattern>().unwrap().to_string(), *pattern);
        }
    }
}
