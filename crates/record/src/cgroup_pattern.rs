//! The cgroups of a node that are jobs: patterns of their paths.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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

/// The path of a job's cgroup, relative to the mount point of cgroup v2; `*` in a component stands for any
/// characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPattern {
    above: Vec<String>,
    name: String,
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
}

impl FromStr for CgroupPattern {
    type Err = PatternError;

    /// Parses a path below the mount point, or one that begins with one of the usual mount points.
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mounted = ["/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"];
        let text = mounted.iter().find_map(|point| text.strip_prefix(point)).unwrap_or(text);
        let mut above: Vec<String> =
            text.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if above.iter().any(|part| part == "." || part == "..") {
            return Err(PatternError::Dots);
        }
        let name = above.pop().ok_or(PatternError::Root)?;
        Ok(Self { above, name })
    }
}

impl std::fmt::Display for CgroupPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in &self.above {
            write!(f, "{part}/")?;
        }
        f.write_str(&self.name)
    }
}

impl CgroupPattern {
    /// The cgroups below `root` that have jobs directly below them, as far as they exist.
    pub fn directories(&self, root: &Path) -> Vec<CgroupDirectory> {
        let mut paths = vec![root.to_owned()];
        for part in &self.above {
            paths = match part.contains('*') {
                false => paths.into_iter().map(|path| path.join(part)).collect(),
                true => paths.iter().flat_map(|path| below(path, part)).collect(),
            };
            paths.truncate(DIRECTORIES_MAX);
        }
        paths
            .into_iter()
            .filter_map(|path| {
                let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_dir)?;
                Some(CgroupDirectory { id: metadata.ino(), path })
            })
            .collect()
    }

    /// True if a cgroup of this name, in one of these directories, is a job.
    pub fn names(&self, name: &[u8]) -> bool {
        matches(self.name.as_bytes(), name) && !name.starts_with(MONITORS)
    }

    /// Beginning of all these names.
    pub fn beginning(&self) -> &str {
        self.name.split('*').next().unwrap_or_default()
    }
}

fn below(path: &Path, pattern: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| matches(pattern.as_bytes(), entry.file_name().as_bytes()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// True if a name is what a pattern stands for. Takes at most pattern x name steps.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    // The last `*`, and what it stands for at the moment.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((star_at, until)) => {
                    star = Some((star_at, until + 1));
                    at = star_at + 1;
                    in_name = until + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
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
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
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
        for pattern in JOB_CGROUPS {
            assert_eq!(pattern.parse::<CgroupPattern>().unwrap().to_string(), *pattern);
        }
    }
}
