//! Failed look-ups: counted by process, directory and errno, and for each start of a program.

use std::fs::File;
use std::io::BufReader;

use proctrace_replay::records;
use proctrace_trace::Reader;
use proctrace_wire::layout::MISS_PATH_FAULT;
use proctrace_wire::{Call, Family, Record, Stream};

use super::Loader;
use crate::load::starts::{Loading, Missed};
use crate::recording::bins::Quantity;
use crate::recording::fast::FastMap;
use crate::recording::names::directory;
use crate::recording::process::Miss;

/// errno(3).
const EINVAL: u16 = 22;

impl Loader<'_> {
    pub(super) fn read_lookups(&mut self, reader: &mut Reader<BufReader<File>>) {
        reader.rewind();
        let mut numbers: FastMap<Vec<u8>, u32> = FastMap::default();
        let Self {
            task_of_serial, tasks, counts, directories, misses, bins, runs, processes, ..
        } = self;
        let mut loading = Loading::new(runs, processes.len());
        let decoded = records(reader, Stream::Lookups, |record| {
            let Record::LookupFailed(miss, path) = record else { return };
            counts.lookups_failed += 1;
            let known = Family::of(Call::from_number(miss.call));
            let family = Family::ALL.iter().position(|family| Some(*family) == known);
            if known == Some(Family::Readlink) && miss.error == EINVAL {
                // The path was found: nothing was looked for in vain.
                counts.not_links += 1;
                return;
            }
            bins.add_event(Quantity::LookupsFailed, miss.head.time_ns);
            if let Some(family) = family {
                counts.by_family[family] += 1;
            }
            let Some(task) = task_of_serial.get(miss.head.task) else {
                counts.orphans += 1;
                return;
            };
            let name: &[u8] = if miss.bits & MISS_PATH_FAULT != 0 { b"?" } else { directory(path) };
            let number = match numbers.get(name) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(directories.len()).unwrap_or(u32::MAX);
                    directories.push(name.to_vec());
                    numbers.insert(name.to_vec(), number);
                    number
                }
            };
            let time_ns = miss.head.time_ns;
            let missed = Missed { time_ns, family: known, path, directory: number };
            loading.add(tasks[task].process, missed, directories);
            let process = u32::try_from(tasks[task].process).unwrap_or(u32::MAX);
            let family = family.and_then(|family| u8::try_from(family).ok()).unwrap_or(u8::MAX);
            let miss = Miss { process, directory: number, errno: miss.error, family };
            *misses.entry(miss).or_insert(0) += 1;
        });
        self.starts = loading.into_inner();
        self.undecodable += decoded.undecodable;
    }
}
