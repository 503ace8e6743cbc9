//! Successful opens, counted by file and process.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::FastMap;
use proctrace_replay::opens;
use proctrace_trace::Reader;
use proctrace_wire::layout::MISS_PATH_FAULT;

use super::Loader;
use crate::opened::{FileUse, Modes, OpenedFiles};

/// Files that are told apart; opens of others are only counted.
const FILES_MAX: usize = 1 << 20;

/// Stands for a file that is not told apart.
const OTHER: u32 = u32::MAX;

impl Loader<'_> {
    /// Counts the opens of a trace, if there are any.
    pub(super) fn read_opens(&mut self, reader: &mut Reader<BufReader<File>>) {
        if !reader.header().opens {
            return;
        }
        reader.rewind();
        let (mut found, mut orphans) = (OpenedFiles::default(), 0);
        let numbers: RefCell<FastMap<Vec<u8>, u32>> = RefCell::default();
        let mut places: FastMap<(u32, u32), usize> = FastMap::default();
        opens(
            reader,
            |open, path| {
                if open.bits & MISS_PATH_FAULT != 0 {
                    return OTHER;
                }
                let mut numbers = numbers.borrow_mut();
                match numbers.get(path) {
                    Some(number) => *number,
                    None if numbers.len() >= FILES_MAX => OTHER,
                    None => {
                        // Fits: smaller than `FILES_MAX`.
                        let number = numbers.len() as u32;
                        numbers.insert(path.to_vec(), number);
                        number
                    }
                }
            },
            |open| {
                found.opens += 1;
                let file = open.made;
                if file == OTHER {
                    found.others += 1;
                    return;
                }
                let task = self.task_of_serial.get(open.miss.head.task);
                let Some(task) = task.and_then(|task| self.made.tasks.get(task)) else {
                    orphans += 1;
                    return;
                };
                let process = task.process() as u32;
                let time_ns = open.miss.head.time_ns;
                let modes = Modes::of_flags(open.miss.flags, &self.made.header.machine);
                let next = found.uses.len();
                let at = *places.entry((file, process)).or_insert(next);
                match found.uses.get_mut(at) {
                    Some(known) => {
                        known.opens = known.opens.saturating_add(1);
                        known.modes = known.modes.and(modes);
                        known.first_ns = known.first_ns.min(time_ns);
                        known.last_ns = known.last_ns.max(time_ns);
                    }
                    None => found.uses.push(FileUse {
                        file,
                        process,
                        opens: 1,
                        modes,
                        first_ns: time_ns,
                        last_ns: time_ns,
                    }),
                }
            },
        );
        // Records that cannot be decoded were counted with the look-ups.
        found.uses.sort_unstable_by_key(|known| (known.file, known.process));
        let mut paths: Vec<(Vec<u8>, u32)> = numbers.into_inner().into_iter().collect();
        paths.sort_unstable_by_key(|(_, number)| *number);
        found.paths = paths.into_iter().map(|(path, _)| path).collect();
        self.made.counts.orphans += orphans;
        self.made.opened = found;
    }
}
