//! Whose job it is: the user of its processes, whom a job cannot choose as it can choose its environment.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};

/// Number of programs after which a job without another user is one of root's.
const TRIES_MAX: u32 = 256;
/// Maximum size of a file that is read: /proc/PID/status has 1.5 kB, and a path of a cgroup at most PATH_MAX.
const FILE_BYTES_MAX: u64 = 16 << 10;

/// Beginnings of the names of processes of batch systems and container engines that are in the cgroup of a job and run
/// as root: slurmstepd(8), also before it becomes a task of the job, and those that start containers.
const NOT_THE_JOB: [&[u8]; 4] = [b"slurmstepd", b"runc", b"crun", b"conmon"];
/// Slurm's own cgroups in that of a job (cgroup_v2.c): of slurmstepd(8), and of the step for what is outside of steps
/// (`PrologFlags=Contain`), in which root's sleep(1) waits.
const SLURMS_OWN: [(&str, Option<&str>); 2] = [("step_", Some("slurm")), ("step_extern", None)];

/// Knowledge about the user so far.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    uid: Option<u32>,
    tries: u32,
}

impl Owner {
    /// Looks at a process of the job in a cgroup (its path below the mount point), unless the user is known. Batch
    /// systems and container engines start jobs as root: the first other user counts, and root only for a process that
    /// is not theirs. It is the real one, which only root's programs change.
    pub(crate) fn look_at(&mut self, pid: i32, cgroup: Option<&Path>) {
        let is_known = self.uid.is_some_and(|uid| uid != 0) || self.tries >= TRIES_MAX;
        let Some(cgroup) = cgroup.filter(|_| !is_known) else { return };
        self.tries += 1;
        if let Some(uid) = uid_in(&format!("/proc/{pid}"), cgroup) {
            self.uid = Some(uid);
        }
    }

    /// The user.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.uid
    }
}

/// The real user of a process in a cgroup: another process may have got its number meanwhile.
fn uid_in(process: &str, cgroup: &Path) -> Option<u32> {
    // Files below it are those of this process, or none.
    let directory =
        openat(rustix::fs::CWD, process, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let directory = directory.ok()?;
    let read = |name: &str| {
        let file = openat(&directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let mut text = Vec::new();
        File::from(file.ok()?).take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
        Some(text)
    };
    let status = read("status")?;
    let uid = real_uid(&status)?;
    let below = below(&read("cgroup")?, cgroup)?;
    // The task of the job's own user may have ended before anybody looked, while slurmstepd(8) is still there.
    let is_the_jobs = uid != 0 || !(is_not_the_job(&status) || is_slurms_own(&below));
    is_the_jobs.then_some(uid)
}

/// Returns whether a process does not run for the job, by `Name:` of proc_pid_status(5).
fn is_not_the_job(status: &[u8]) -> bool {
    let mut lines = status.split(|byte| *byte == b'\n');
    let name = lines.find_map(|line| line.strip_prefix(b"Name:"));
    let name = name.map(<[u8]>::trim_ascii_start).unwrap_or_default();
    NOT_THE_JOB.iter().any(|of| name.starts_with(of))
}

/// Returns whether a cgroup is Slurm's own, by its path below that of the job.
fn is_slurms_own(below: &Path) -> bool {
    let mut parts = below.iter().map(|part| part.to_str().unwrap_or_default());
    let (step, next) = (parts.next().unwrap_or_default(), parts.next());
    SLURMS_OWN
        .iter()
        .any(|(begins, then)| step.starts_with(begins) && (then.is_none() || *then == next))
}

/// The first number after `Uid:` of proc_pid_status(5).
fn real_uid(status: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_whitespace().next()?.parse().ok()
}

/// The path below this cgroup of the one in the line of cgroup v2 in proc_pid_cgroup(5).
fn below(membership: &[u8], cgroup: &Path) -> Option<PathBuf> {
    let mut lines = membership.split(|byte| *byte == b'\n');
    let of = lines.find_map(|line| line.strip_prefix(b"0::/"))?;
    Path::new(OsStr::from_bytes(of)).strip_prefix(cgroup).ok().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_process_is_the_real_one() {
        let status = b"Name:\tsh\nUmask:\t0022\nUid:\t1007\t0\t0\t0\nGid:\t1\t1\t1\t1\n";
        assert_eq!(real_uid(status), Some(1007));
        assert_eq!(real_uid(b"Uid:\n"), None);
        assert_eq!(real_uid(b"Name:\tUid: 0\n"), None);
        let own = rustix::process::getuid().as_raw();
        let mine = std::fs::read("/proc/self/status").unwrap();
        assert_eq!(real_uid(&mine), Some(own));
    }

    #[test]
    fn root_of_the_batch_system_is_not_the_user() {
        let own = |below: &str| is_slurms_own(Path::new(below));
        assert!(own("step_batch/slurm") && own("step_0/slurm"));
        assert!(own("step_extern/user/task_special") && own("step_extern/slurm"));
        assert!(!own("") && !own("step_batch/user/task_special") && !own("other/slurm"));
        let name = |name: &str| is_not_the_job(format!("Name:\t{name}\nUid:\t0\n").as_bytes());
        assert!(name("slurmstepd") && name("runc:[2:INIT]") && name("conmon"));
        assert!(!name("sleep") && !name("") && !is_not_the_job(b"Uid:\t0\n"));
    }

    #[test]
    fn a_process_elsewhere_is_none_of_the_jobs() {
        let of = |cgroup: &str| below(b"4:pids:/x\n0::/a/job_1/step_0\n", Path::new(cgroup));
        assert_eq!(
            [of("a/job_1"), of("a/job_1/step_0"), of("a/job"), of("b")],
            [Some("step_0".into()), Some(PathBuf::new()), None, None]
        );
        let mut owner = Owner::default();
        let pid = i32::try_from(std::process::id()).unwrap();
        owner.look_at(pid, Some(Path::new("no/such/job")));
        owner.look_at(-1, Some(Path::new("")));
        owner.look_at(pid, None);
        assert_eq!(owner.uid(), None);
        owner.look_at(pid, Some(Path::new("")));
        assert_eq!(owner.uid(), Some(rustix::process::getuid().as_raw()));
    }
}
