//! What one process looked up in vain, by directory and by path.

use std::path::Path;

use proctrace_findings::MissedName;
use proctrace_replay::lookups;
use proctrace_trace::Reader;
use proctrace_wire::layout::MissFixed;
use proctrace_wire::{Call, Family};

use crate::error::AnalysisError;
use crate::recording::Recording;
use crate::recording::fast::{FastMap, FastSet};
use crate::recording::misses::found_no_link;
use crate::recording::names::{errno, text};
use crate::recording::process::Process;

/// Failed look-ups by path, family and errno.
#[derive(Debug, Default)]
pub(super) struct Missed(FastMap<(Vec<u8>, Option<Family>, u16), u64>);

impl Missed {
    /// Those of a process, from the trace.
    pub(super) fn read(
        recording: &Recording,
        process: &Process,
        path: &Path,
    ) -> Result<Self, AnalysisError> {
        let mut missed = Self::default();
        let mine: FastSet<u32> = process.tasks().map(|task| recording.tasks[task].serial).collect();
        lookups(
            &mut Reader::open(path)?,
            |_, _| (),
            |lookup| {
                if mine.contains(&lookup.miss.head.task) {
                    missed.add(&lookup.miss, lookup.path);
                }
            },
        );
        Ok(missed)
    }

    /// Counts a failed look-up or exec.
    pub(super) fn add(&mut self, miss: &MissFixed, path: &[u8]) {
        let family = Family::of(Call::from_number(miss.call));
        if found_no_link(miss) {
            return;
        }
        let key = (path.to_vec(), family, miss.error);
        let count = self.0.entry(key).or_default();
        *count = count.saturating_add(1);
    }

    /// The most frequent first.
    pub(super) fn names(&self) -> Vec<MissedName> {
        let name = |(key, count): (&(Vec<u8>, Option<Family>, u16), &u64)| MissedName {
            name: text(&key.0),
            family: family_name(key.1),
            errno: errno(key.2),
            count: *count,
        };
        in_order(self.0.iter().map(name).collect())
    }
}

/// The failed look-ups of a process by directory, the most frequent first.
pub(super) fn directories(recording: &Recording, at: usize) -> Vec<MissedName> {
    let mine = recording.misses.iter().filter(|(miss, _)| miss.process as usize == at);
    let name = |number: u32| recording.directories.get(number as usize).map(|name| text(name));
    let named = mine.map(|(miss, count)| MissedName {
        name: name(miss.directory).unwrap_or_default(),
        family: family_name(Family::ALL.get(usize::from(miss.family)).copied()),
        errno: errno(miss.errno),
        count: count.into(),
    });
    in_order(named.collect())
}

fn family_name(family: Option<Family>) -> String {
    family.map_or("other", Family::name).to_owned()
}

fn in_order(mut names: Vec<MissedName>) -> Vec<MissedName> {
    names.sort_by(|a, b| {
        let rest = |name: &MissedName| (name.name.clone(), name.family.clone(), name.errno.clone());
        b.count.cmp(&a.count).then_with(|| rest(a).cmp(&rest(b)))
    });
    names
}
