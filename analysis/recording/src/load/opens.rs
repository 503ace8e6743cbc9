//! Successful opens, counted by file and process.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::FastMap;
use proctrace_replay::{FileAct, opens};
use proctrace_trace::Reader;
use proctrace_wire::layout::{MISS_PATH_FAULT, WRITTEN_PATH_CUT};

use super::Loader;
use super::moves::Moves;
use crate::opened::{FileUse, Modes, OpenedFiles, Writer};

impl Loader<'_> {
    /// Counts the opens of a trace, if there are any.
    pub(super) fn read_opens(&mut self, reader: &mut Reader<BufReader<File>>) {
        if !reader.header().opens {
            return;
        }
        reader.rewind();
        let (mut found, mut orphans) = (OpenedFiles::default(), 0);
        let moves = RefCell::new(Moves::of(&self.made.header.cwd));
        let mut places: FastMap<(u32, u32), usize> = FastMap::default();
        opens(
            reader,
            |open, path| {
                let is_known = open.bits & MISS_PATH_FAULT == 0;
                is_known.then(|| moves.borrow_mut().name(path)).flatten()
            },
            |act| {
                let process_of = |serial: u32| {
                    let task = self.task_of_serial.get(serial)?;
                    Some(self.made.tasks.get(task)?.process() as u32)
                };
                let open = match act {
                    FileAct::Opened(open) => open,
                    FileAct::Written(written, path) => {
                        match process_of(written.head.task) {
                            Some(process) => {
                                let is_known =
                                    written.bits & WRITTEN_PATH_CUT == 0 && !path.is_empty();
                                let by = Writer { process, time_ns: written.head.time_ns };
                                let path = is_known.then_some(path);
                                moves.borrow_mut().written(path, written.size_bytes, by);
                            }
                            None => orphans += 1,
                        }
                        return;
                    }
                    FileAct::Moved(moved, from, path) => {
                        match process_of(moved.head.task) {
                            Some(process) => {
                                moves.borrow_mut().moved(&moved, (from, path), process);
                            }
                            None => orphans += 1,
                        }
                        return;
                    }
                };
                found.opens += 1;
                let Some(name) = open.made else {
                    found.others += 1;
                    return;
                };
                let Some(process) = process_of(open.miss.head.task) else {
                    orphans += 1;
                    return;
                };
                let time_ns = open.miss.head.time_ns;
                let modes = Modes::of_flags(open.miss.flags, &self.made.header.machine);
                let mut moves = moves.borrow_mut();
                let file = moves.now(name);
                let by = Writer { process, time_ns };
                moves.opened(file, by, (open.miss.flags, modes.write));
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
        self.made.counts.orphans += orphans;
        moves.into_inner().end(&mut found);
        self.made.opened = found;
    }
}
