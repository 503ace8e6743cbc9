//! A recording's own cgroup: everything in it belongs to the recording, and the kernel accounts for
//! it separately.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proctrace_trace::CgroupUsage;
use proctrace_wire::escape::to_text;

/// A cgroup that was created for one recording, and is removed after it.
#[derive(Debug)]
pub struct OwnCgroup {
    path: PathBuf,
    directory: File,
}

impl OwnCgroup {
    /// Creates one below the cgroup of the recorder.
    ///
    /// # Errors
    /// When there is no cgroup v2, or none in which this user may create one.
    pub fn create() -> io::Result<Self> {
        let path = current()?.join(format!("proctrace-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        match File::open(&path) {
            Ok(directory) => Ok(Self { path, directory }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor of its directory, for CLONE_INTO_CGROUP.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    /// CPU usage of its members, from its cpu.stat.
    ///
    /// # Errors
    /// When its cpu.stat cannot be read.
    pub fn usage(&self) -> io::Result<CgroupUsage> {
        let stat = fs::read_to_string(self.path.join("cpu.stat"))?;
        let field = |name: &str| {
            stat.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
                .map(|microseconds| microseconds.saturating_mul(1000))
                .ok_or_else(|| io::Error::other(format!("cpu.stat has no {name}")))
        };
        Ok(CgroupUsage {
            path: to_text(self.path.as_os_str().as_bytes()).into_owned(),
            usage_ns: field("usage_usec ")?,
            user_ns: field("user_usec ")?,
            system_ns: field("system_usec ")?,
        })
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        // Fails if it still has members; the cgroup then remains.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Directory on which the root of cgroup v2 is mounted.
///
/// # Errors
/// When it is not, or cannot be found out.
pub fn cgroup_root() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    mount_of(&mounts)
        .filter(|(root, _)| *root == "/")
        .map(|(_, point)| PathBuf::from(point))
        .ok_or_else(|| io::Error::other("the root of cgroup v2 is not mounted"))
}

/// The mount of cgroup v2: which of its cgroups is mounted, and where.
fn mount_of(mounts: &str) -> Option<(&str, &str)> {
    // proc_pid_mountinfo(5): ID parent major:minor root point options ... - type source options
    mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let is_v2 = filesystem.split(' ').next() == Some("cgroup2");
        is_v2.then_some((fields.next()?, fields.next()?))
    })
}

/// The cgroup v2 directory of this process.
fn current() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let cgroups = fs::read_to_string("/proc/self/cgroup")?;
    locate(&mounts, &cgroups).ok_or_else(|| io::Error::other("no cgroup v2 is mounted"))
}

fn locate(mounts: &str, cgroups: &str) -> Option<PathBuf> {
    let (root, point) = mount_of(mounts)?;
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_below_any_mount() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 none rw\n";
        let found = locate(mounts, "4:cpu:/\n0::/user.slice/a\n");
        assert_eq!(found, Some(PathBuf::from("/sys/fs/cgroup/unified/user.slice/a")));
        let bound = "31 24 0:27 /user.slice /cg rw - cgroup2 none rw\n";
        assert_eq!(locate(bound, "0::/user.slice/a\n"), Some(PathBuf::from("/cg/a")));
        assert_eq!(locate(bound, "0::/elsewhere\n"), None);
        assert_eq!(locate("24 1 0:22 / /proc rw - proc proc rw\n", "0::/\n"), None);
    }
}
