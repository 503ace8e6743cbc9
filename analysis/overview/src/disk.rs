//! Disk space of the files that a job writes below its directory: as it was, and if each were deleted when no step needs it any
//! more.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_classify::fast::FastMap;
use proctrace_recording::Recording;
use proctrace_recording::opened::FileSize;
use proctrace_wire::Quantity;

use crate::step_files::{Level, StepFile, below, step_files};
use crate::steps::StepSum;

/// The largest sum of sizes at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    pub bytes: u64,
    /// When it was first reached.
    pub time_ns: u64,
}

/// Disk space below the directory of the job. Files that were there before count from when they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSpace {
    /// As it was.
    pub peak: Peak,
    /// At the end.
    pub left_bytes: u64,
    /// The peak if each file that steps pass on were deleted when the last that reads it has ended; `None` if none is passed
    /// on.
    pub peak_if_deleted: Option<Peak>,
    /// By step: the largest sum of what it and its parts wrote last.
    pub by_step: Vec<u64>,
}

/// Sizes that files below the directory of the job have at one time.
struct Sums<'a> {
    recording: &'a Recording,
    now: FastMap<u32, (u64, Option<u32>)>,
    total: u64,
    peak: Peak,
    steps: Vec<(u64, u64)>,
}

impl<'a> Sums<'a> {
    fn new(recording: &'a Recording) -> Self {
        let steps = vec![(0, 0); recording.steps().all.len()];
        Self { recording, now: FastMap::default(), total: 0, peak: Peak::default(), steps }
    }

    fn set(&mut self, file: u32, bytes: u64, step: Option<u32>, time_ns: u64) {
        let all = self.recording.steps();
        let before =
            if bytes == 0 { self.now.remove(&file) } else { self.now.insert(file, (bytes, step)) };
        if let Some((bytes, step)) = before {
            self.total = self.total.saturating_sub(bytes);
            for step in step.into_iter().flat_map(|step| all.up(step)) {
                let (now, _) = &mut self.steps[step as usize];
                *now = now.saturating_sub(bytes);
            }
        }
        self.total = self.total.saturating_add(bytes);
        for step in step.into_iter().flat_map(|step| all.up(step)) {
            let (now, largest) = &mut self.steps[step as usize];
            *now = now.saturating_add(bytes);
            *largest = (*largest).max(*now);
        }
        if self.total > self.peak.bytes {
            self.peak = Peak { bytes: self.total, time_ns };
        }
    }
}

/// Disk space of a job; `None` if sizes are not known. `files` are those that its steps used.
pub fn disk_space(
    recording: &Recording,
    sums: &[StepSum],
    files: &[StepFile<'_>],
) -> Option<DiskSpace> {
    if !recording.knows().all(&[Quantity::FileSizes]) {
        return None;
    }
    let opened = recording.opened()?;
    let path_of =
        |change: &FileSize| below(opened.paths.get(change.file as usize)?, &recording.header().cwd);
    let changes: Vec<(&FileSize, &[u8])> =
        opened.sizes.iter().filter_map(|change| Some((change, path_of(change)?))).collect();
    let step_of = |change: &FileSize| recording.steps().of_process(change.process);
    let mut as_it_was = Sums::new(recording);
    for (change, _) in &changes {
        as_it_was.set(change.file, change.bytes, step_of(change), change.time_ns);
    }
    // When each file that is passed on is no longer needed, by its path.
    let free_ns: BTreeMap<&[u8], u64> = files
        .iter()
        .filter(|file| file.is_passed_on())
        .filter_map(|file| {
            let ends = file.readers().map(|used| sums[used.step as usize].end_ns.max(used.last_ns));
            Some((file.path, ends.max()?))
        })
        .collect();
    let mut deletions: Vec<(u64, u32)> = changes
        .iter()
        .filter_map(|(change, path)| Some((*free_ns.get(path)?, change.file)))
        .collect();
    deletions.sort_unstable_by_key(|deletion| Reverse(*deletion));
    deletions.dedup();
    let mut if_deleted = Sums::new(recording);
    for (change, _) in &changes {
        while let Some((at_ns, file)) = deletions.pop_if(|(at_ns, _)| *at_ns <= change.time_ns) {
            if_deleted.set(file, 0, None, at_ns);
        }
        if_deleted.set(change.file, change.bytes, step_of(change), change.time_ns);
    }
    Some(DiskSpace {
        peak: as_it_was.peak,
        left_bytes: as_it_was.total,
        peak_if_deleted: (!free_ns.is_empty()).then_some(if_deleted.peak),
        by_step: as_it_was.steps.into_iter().map(|(_, largest)| largest).collect(),
    })
}

/// The same, with the files that steps used.
pub fn disk_space_of(recording: &Recording, sums: &[StepSum]) -> Option<DiskSpace> {
    // Otherwise this takes long for nothing.
    if !recording.knows().all(&[Quantity::FileSizes]) {
        return None;
    }
    disk_space(recording, sums, &step_files(recording, Level::Innermost))
}

/// The largest size of each file below the directory of the job that was written, by its path there.
pub fn largest_sizes(recording: &Recording) -> FastMap<&[u8], u64> {
    let mut sizes: FastMap<&[u8], u64> = FastMap::default();
    let Some(opened) = recording.opened() else { return sizes };
    for change in &opened.sizes {
        let path = opened.paths.get(change.file as usize);
        if let Some(path) = path.and_then(|path| below(path, &recording.header().cwd)) {
            let largest = sizes.entry(path).or_default();
            *largest = (*largest).max(change.bytes);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_scenes::{WRITE, ending, renaming};
    use crate::steps::sums;
    use proctrace_scenes::{MS, Scene};
    use proctrace_wire::layout::{MOVED_EXCHANGED, MOVED_UNKNOWN};

    fn of(recording: &Recording) -> DiskSpace {
        let mut space = disk_space_of(recording, &sums(recording)).unwrap();
        for peak in space.peak_if_deleted.iter_mut().chain([&mut space.peak]) {
            peak.time_ns -= recording.first_ns();
        }
        space
    }

    fn space(add: impl FnOnce(&mut Scene)) -> DiskSpace {
        of(&renaming(add))
    }

    #[test]
    fn files_take_space_from_their_closing_to_their_removal() {
        let space = space(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/a", WRITE)
                .written(11 * MS, 2, "/work/a", 100)
                .open(12 * MS, 2, 2, "/work/b", WRITE)
                .written(13 * MS, 2, "/work/b", 50)
                .open(13 * MS, 2, 3, "/elsewhere/c", WRITE)
                .written(13 * MS, 2, "/elsewhere/c", 7_000)
                .removed(14 * MS, 2, "/work/a", 0)
                .open(15 * MS, 3, 4, "/work/d", WRITE)
                .written(16 * MS, 3, "/work/d", 60);
        });
        assert_eq!(space.peak, Peak { bytes: 150, time_ns: 13 * MS });
        assert_eq!((space.left_bytes, space.peak_if_deleted), (110, None));
        assert_eq!(space.by_step[..2], [150, 60]);
    }

    /// Renamed, written again with another size, replaced.
    #[test]
    fn a_file_counts_once_whatever_its_name() {
        let space = space(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/a.tmp", WRITE)
                .written(11 * MS, 2, "/work/a.tmp", 100)
                .moved(12 * MS, 2, "/work/a.tmp", "/work/a", 0)
                .open(13 * MS, 2, 2, "/work/a", WRITE)
                .written(14 * MS, 2, "/work/a", 120)
                .open(15 * MS, 3, 3, "/work/b", WRITE)
                .written(16 * MS, 3, "/work/b", 1_000)
                .moved(17 * MS, 3, "/work/b", "/work/a", 0)
                .open(18 * MS, 3, 4, "/work/a", WRITE)
                .written(19 * MS, 3, "/work/a", 30);
        });
        assert_eq!(space.peak, Peak { bytes: 1_120, time_ns: 16 * MS });
        assert_eq!(space.left_bytes, 30);
        assert_eq!(space.by_step[..2], [120, 1_000]);
    }

    /// `: > file` gives its space back, and two files may change places.
    #[test]
    fn an_emptied_file_takes_no_space() {
        let space = space(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/a", WRITE)
                .written(11 * MS, 2, "/work/a", 100)
                .open(12 * MS, 3, 2, "/work/b", WRITE)
                .written(13 * MS, 3, "/work/b", 7)
                .moved(14 * MS, 3, "/work/a", "/work/b", MOVED_EXCHANGED)
                .written(15 * MS, 3, "/work/b", 0);
        });
        assert_eq!((space.peak.bytes, space.left_bytes), (107, 7));
        assert_eq!(space.by_step[..2], [100, 7]);
    }

    #[test]
    fn what_is_not_followed_is_counted() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/d/x", WRITE)
                .written(11 * MS, 2, "/work/d/x", 100)
                // By a link to the directory.
                .moved(12 * MS, 2, "/work/link/x", "/work/y", 0)
                .removed(13 * MS, 2, "/work/link/z", 0)
                .removed(14 * MS, 2, "", MOVED_UNKNOWN)
                .moved(15 * MS, 2, "", "", MOVED_UNKNOWN)
                // Outside, and of what is empty.
                .removed(16 * MS, 2, "/tmp/z", 0);
        });
        assert_eq!(recording.opened().unwrap().sizes_unknown, 4);
        assert_eq!(of(&recording).left_bytes, 100);
    }

    #[test]
    fn what_is_no_longer_read_could_be_deleted() {
        let recording = ending([15 * MS, 30 * MS, 60 * MS], |scene| {
            scene
                .open(10 * MS, 2, 1, "/work/raw", WRITE)
                .written(11 * MS, 2, "/work/raw", 1_000)
                .open(20 * MS, 3, 2, "/work/raw", 0)
                .open(21 * MS, 3, 3, "/work/mid", WRITE)
                .written(22 * MS, 3, "/work/mid", 100)
                // The only one that read the first file has ended.
                .open(40 * MS, 4, 4, "/work/mid", 0)
                .open(41 * MS, 4, 5, "/work/end", WRITE)
                .written(42 * MS, 4, "/work/end", 10);
        });
        let space = of(&recording);
        assert_eq!(space.peak.bytes, 1_110);
        assert_eq!(space.peak_if_deleted, Some(Peak { bytes: 1_100, time_ns: 22 * MS }));
    }
}
