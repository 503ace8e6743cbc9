//! The header of the trace of one job: that of the node's recorder, but for the job's cgroup, its CPUs and its start.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proctrace_record::{boot_ns, unix_ns};
use proctrace_trace::Header;
use proctrace_wire::escape::to_text;

use crate::naming::JobCgroup;

/// The header of a job that begins now, at `started_ns` of the records' clock.
pub(crate) fn header(base: &Header, cgroup: &JobCgroup, started_ns: u64) -> Header {
    let path = cgroup.path.as_ref().or(cgroup.was.as_ref());
    let path = path.map(|path| to_text(path.as_os_str().as_bytes()).into_owned());
    let cpus = cgroup.path.as_deref().and_then(cpus_of).unwrap_or(u32::MAX);
    Header {
        // As that of a recording with --cgroup.
        scope: "command".to_owned(),
        cgroup: Some(path.unwrap_or_else(|| cgroup.name.clone())),
        cpus: cpus.min(base.cpus),
        started_ns,
        started_unix_ns: unix_ns().saturating_sub(boot_ns().saturating_sub(started_ns)),
        ..base.clone()
    }
}

/// CPUs that a cgroup may use: those of its set, or what its quota is worth, rounded up; None if it is not
/// limited.
fn cpus_of(cgroup: &Path) -> Option<u32> {
    let read = |name: &str| fs::read_to_string(cgroup.join(name)).ok();
    let set = read("cpuset.cpus.effective").and_then(|list| cpus_in(&list));
    let quota = read("cpu.max").and_then(|limit| cpus_worth(&limit));
    match (set, quota) {
        (Some(set), Some(quota)) => Some(set.min(quota)),
        (set, quota) => set.or(quota),
    }
}

/// Number of CPUs in a list: `0-3,8`.
fn cpus_in(list: &str) -> Option<u32> {
    let mut cpus = 0u32;
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        cpus = cpus.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(cpus).filter(|cpus| *cpus > 0)
}

/// Number of CPUs that a quota is worth: `150000 100000` is 2 CPUs, `max 100000` no limit.
fn cpus_worth(limit: &str) -> Option<u32> {
    let (quota, period) = limit.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    u32::try_from(quota.checked_add(period)?.checked_sub(1)?.checked_div(period)?)
        .ok()
        .filter(|cpus| *cpus > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_has_the_cpus_of_its_set_or_its_quota() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
        assert_eq!(cpus_of(scratch.path()), None);
        write("cpu.max", "max 100000\n");
        assert_eq!(cpus_of(scratch.path()), None);
        write("cpuset.cpus.effective", "0-3\n");
        assert_eq!(cpus_of(scratch.path()), Some(4));
        write("cpu.max", "150000 100000\n");
        assert_eq!(cpus_of(scratch.path()), Some(2));
    }

    #[test]
    fn limits_of_a_cgroup_are_understood() {
        assert_eq!(cpus_in("0-3,8\n"), Some(5));
        assert_eq!(cpus_in("7"), Some(1));
        for wrong in ["", "\n", "3-1", "x", "0-4294967295"] {
            assert_eq!(cpus_in(wrong), None, "{wrong}");
        }
        assert_eq!(cpus_worth("150000 100000\n"), Some(2));
        assert_eq!(cpus_worth("100000 100000"), Some(1));
        for wrong in ["max 100000", "", "1 0", "0 100000"] {
            assert_eq!(cpus_worth(wrong), None, "{wrong}");
        }
    }
}
