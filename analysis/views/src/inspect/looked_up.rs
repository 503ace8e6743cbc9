//! Failed look-ups of one process, by directory and by path.

use std::collections::VecDeque;
use std::path::Path;

use proctrace_findings::MissedName;
use proctrace_replay::lookups;
use proctrace_trace::Reader;
use proctrace_wire::layout::MissFixed;
use proctrace_wire::{Call, Family};

use proctrace_classify::fast::{FastMap, FastSet};
use proctrace_classify::names::{base, errno, text};
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_recording::misses::{Misses, found_no_link};
use proctrace_recording::process::Process;

/// The last look-ups of a parent that are kept: a search along PATH has one for each of its entries.
const SEARCHED_MAX: usize = 1 << 12;

/// Failed look-ups by path, family and errno.
#[derive(Debug, Default)]
pub(super) struct Missed(FastMap<(Vec<u8>, Option<Family>, u16), u64>);

/// Failed look-ups of a parent before a birth, in order of time: time, path, family and errno.
#[derive(Debug, Default)]
pub(super) struct Searched(VecDeque<(u64, Vec<u8>, Option<Family>, u16)>);

impl Searched {
    /// The places in which it looked for a program of this name.
    pub(super) fn of_program(mut self, name: &[u8]) -> Vec<MissedName> {
        self.0.retain(|(_, path, ..)| base(path) == name);
        self.0.make_contiguous().sort_by_key(|(time_ns, ..)| *time_ns);
        let named = |(_, path, family, number): (u64, Vec<u8>, Option<Family>, u16)| MissedName {
            name: text(&path),
            family: family_name(family),
            errno: errno(number),
            count: 1,
        };
        self.0.into_iter().map(named).collect()
    }
}

/// The failed look-ups of a process, and those of its parent since it had started the one before it, from the
/// trace.
pub(super) fn read(
    recording: &Recording,
    at: usize,
    path: &Path,
) -> Result<(Missed, Searched), AnalysisError> {
    let process = &recording.processes()[at];
    let (mut missed, mut searched) = (Missed::default(), Searched::default());
    let tasks_of = |process: &Process| -> FastSet<u32> {
        process.tasks().map(|task| recording.tasks()[task].serial).collect()
    };
    let mine = tasks_of(process);
    let parents =
        process.parent().map(|at| tasks_of(&recording.processes()[at])).unwrap_or_default();
    let before = recording.processes()[..at].iter();
    let before = before.filter(|it| it.parent().is_some() && it.parent() == process.parent());
    let since_ns = before.map(|sibling| sibling.born_ns).max().unwrap_or(0);
    lookups(
        &mut Reader::open(path)?,
        |_, _| (),
        |lookup| {
            let head = &lookup.miss.head;
            if mine.contains(&head.task) {
                missed.add(&lookup.miss, lookup.path);
            } else if parents.contains(&head.task)
                && (since_ns..=process.born_ns).contains(&head.time_ns)
            {
                if searched.0.len() == SEARCHED_MAX {
                    searched.0.pop_front();
                }
                let family = Family::of(Call::from_number(lookup.miss.call));
                searched.0.push_back((
                    head.time_ns,
                    lookup.path.to_vec(),
                    family,
                    lookup.miss.error,
                ));
            }
        },
    );
    Ok((missed, searched))
}

impl Missed {
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
    let misses = recording.misses().into_iter().flat_map(Misses::iter);
    let mine = misses.filter(|(miss, _)| miss.process as usize == at);
    let name = |number: u32| recording.directories().get(number as usize).map(|name| text(name));
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
