//! Processes that outlive the command or their own parent: since when, and their exact command lines.

use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::FastMap;
use proctrace_replay::records;
use proctrace_trace::Reader;
use proctrace_wire::{Record, Stream};

use super::Loader;
use crate::books::detached::is_detached;
use crate::process::Process;

/// Maximum number of command lines that are kept: beyond it, which one it was does not matter.
const LINES_MAX: usize = 1000;
/// Bytes of a command line that are kept.
const LINE_BYTES_MAX: usize = 200;
/// Maximum time by which a process may end after the command and still count as ending with it: the rest of a pipeline,
/// the last switch of a task.
const NOTICEABLE_NS: u64 = 20_000_000;
/// The same as a part of the command's wall time.
const NOTICEABLE_PART: u64 = 50;

impl Loader<'_> {
    /// Finds out since when processes are left behind, and reads the command lines of those that outlived their parent.
    pub(super) fn read_left_behind(&mut self, reader: &mut Reader<BufReader<File>>) {
        self.made.left_since_ns = self.left_since_ns(reader);
        let all = &self.made.processes;
        let left: Vec<usize> = (0..all.len())
            .filter(|at| is_detached(&self.made, &all[*at]))
            .take(LINES_MAX)
            .collect();
        if left.is_empty() {
            return;
        }
        // Who executed nothing is what its forker was at the time of its birth.
        let mut wanted: FastMap<u32, Vec<(usize, u64)>> = FastMap::default();
        for at in &left {
            // What that executed later is nothing of those that it had forked before.
            let (mut of, mut until_ns) = (*at, u64::MAX);
            while all[of].execs == 0
                && let Some(parent) = all[of].parent().filter(|parent| *parent < of)
            {
                until_ns = all[of].born_ns;
                of = parent;
            }
            wanted.entry(all[of].serial).or_default().push((*at, until_ns));
        }
        let mut lines: FastMap<usize, String> = FastMap::default();
        reader.rewind();
        records(reader, Stream::Lifecycle, |record| {
            if let Record::Exec(exec) = record
                && let Some(processes) = wanted.get(&exec.fixed.process)
                && let Some(line) = exec.line(LINE_BYTES_MAX)
            {
                let time_ns = exec.fixed.head.time_ns;
                let concerned = processes.iter().filter(|(_, until_ns)| *until_ns >= time_ns);
                concerned.for_each(|(at, _)| _ = lines.insert(*at, line.clone()));
            }
        });
        self.made.left_lines = lines;
    }

    fn left_since_ns(&self, reader: &Reader<BufReader<File>>) -> Option<u64> {
        let made = &self.made;
        if made.header.command.is_empty() {
            return None;
        }
        let payload = reader.trailer().and_then(|trailer| trailer.payload.as_ref());
        let exited_ns = payload.map(|payload| payload.exited_ns);
        let exited_ns = exited_ns.or_else(|| made.processes.first()?.ended_ns())?;
        let last_ns = |process: &Process| process.ended_ns().unwrap_or(made.last_ns);
        let last_ns = made.processes.iter().map(last_ns).max()?;
        let wall_ns = exited_ns.saturating_sub(made.first_ns);
        let noticeable_ns = NOTICEABLE_NS.saturating_add(wall_ns / NOTICEABLE_PART);
        (last_ns.saturating_sub(exited_ns) > noticeable_ns).then_some(exited_ns)
    }
}
