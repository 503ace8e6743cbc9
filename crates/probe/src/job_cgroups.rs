//! Tells the programs which cgroups are jobs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData};
use proctrace_record::{CgroupPattern, cgroup_root};

use crate::error::ProbeError;

/// JOB_NAME_WORDS of scope.bpf.h.
const NAME_WORDS: usize = 4;

/// Interval at which directories are searched for that did not exist before: jobs in them are recorded from
/// then on.
const INTERVAL: Duration = Duration::from_secs(1);

/// `struct job_names` of scope.bpf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct JobNames {
    want: [u64; NAME_WORDS],
    mask: [u64; NAME_WORDS],
}

// SAFETY: a repr(C) struct of integers without padding: any bytes are valid, and all are initialised.
unsafe impl aya::Pod for JobNames {}

impl JobNames {
    /// Names that begin like this. The last byte of the kernel's copy is its NUL.
    fn beginning(with: &[u8]) -> Self {
        let mut names = Self { want: [0; NAME_WORDS], mask: [0; NAME_WORDS] };
        for (at, byte) in with.iter().take(NAME_WORDS * 8 - 1).enumerate() {
            names.want[at / 8] |= u64::from(*byte) << (at % 8 * 8);
            names.mask[at / 8] |= 0xff << (at % 8 * 8);
        }
        names
    }
}

/// The cgroups that have jobs directly below them.
pub(crate) struct JobCgroups {
    patterns: Vec<CgroupPattern>,
    root: PathBuf,
    map: HashMap<MapData, u64, JobNames>,
    known: BTreeMap<u64, JobNames>,
    next: Instant,
}

impl JobCgroups {
    pub(crate) fn new(patterns: Vec<CgroupPattern>, map: Map) -> Result<Self, ProbeError> {
        let root = cgroup_root().map_err(ProbeError::system("find cgroup v2"))?;
        let map = HashMap::try_from(map).map_err(ProbeError::set_up("maps"))?;
        let mut jobs = Self { patterns, root, map, known: BTreeMap::new(), next: Instant::now() };
        jobs.refresh()?;
        Ok(jobs)
    }

    /// Tells the programs of directories that have appeared, and that they can forget those that are gone.
    pub(crate) fn refresh(&mut self) -> Result<(), ProbeError> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + INTERVAL;
        let mut beginnings: BTreeMap<u64, String> = BTreeMap::new();
        for pattern in &self.patterns {
            for directory in pattern.directories(&self.root) {
                let own = pattern.beginning();
                // One entry for each directory: what all patterns for it have in common.
                beginnings
                    .entry(directory.id)
                    .and_modify(|other| other.truncate(common(other, own)))
                    .or_insert_with(|| own.to_owned());
            }
        }
        let wanted: BTreeMap<u64, JobNames> = beginnings
            .into_iter()
            .map(|(id, beginning)| (id, JobNames::beginning(beginning.as_bytes())))
            .collect();
        for id in self.known.keys().filter(|id| !wanted.contains_key(id)) {
            self.map.remove(id).map_err(ProbeError::set_up("maps"))?;
        }
        for (id, names) in wanted.iter().filter(|(id, names)| self.known.get(id) != Some(names)) {
            self.map.insert(id, names, 0).map_err(ProbeError::set_up("maps"))?;
        }
        self.known = wanted;
        Ok(())
    }
}

/// The length of what both texts begin with, in bytes, up to a boundary of characters.
fn common(a: &str, b: &str) -> usize {
    a.char_indices()
        .zip(b.chars())
        .find(|((_, x), y)| x != y)
        .map_or(a.len().min(b.len()), |((at, _), _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_patterns_of_one_directory_share_is_kept() {
        assert_eq!(common("docker-", "docker-x"), 7);
        assert_eq!(common("docker-", "libpod-"), 0);
        assert_eq!(common("docker-", "dock"), 4);
        assert_eq!(common("", "x"), 0);
    }

    #[test]
    fn names_are_compared_under_a_mask() {
        let names = JobNames::beginning(b"job_");
        let word = |name: &[u8; 8]| u64::from_le_bytes(*name);
        assert_eq!(word(b"job_1234") & names.mask[0], names.want[0]);
        assert_ne!(word(b"jobs\0\0\0\0") & names.mask[0], names.want[0]);
        assert_eq!(names.mask[1..], [0; 3]);
        let long = JobNames::beginning(&[b'x'; 100]);
        assert_eq!(long.mask[3] >> 56, 0);
    }
}
