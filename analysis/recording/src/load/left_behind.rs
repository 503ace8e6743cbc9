//! Processes that outlive the command or their own parent: since when, and their exact command lines.

use std::fs::File;
use std::io::BufReader;

use proctrace_classify::fast::FastMap;
use proctrace_replay::records_of;
use proctrace_trace::{BlockInfo, Reader};
use proctrace_wire::{Record, Stream};

use super::Loader;
use crate::books::detached::is_detached;
use crate::process::{Process, ProgramRun};

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
        let left = (0..all.len()).filter(|at| is_detached(&self.made, &all[*at])).take(LINES_MAX);
        // One exec of each command line is read once more: daemons that a job starts again and again have the same one.
        // Where it is not known whether they have, each is read.
        let mut read: FastMap<u64, u32> = FastMap::default();
        let mut concerned: FastMap<u32, Vec<usize>> = FastMap::default();
        let mut note = |at: usize, run: u32| {
            let call = self.made.calls.get(run as usize).copied().filter(|call| *call != 0);
            let run = call.map_or(run, |call| *read.entry(call).or_insert(run));
            concerned.entry(run).or_default().push(at);
        };
        let mut inherits: FastMap<u32, Vec<(usize, u64)>> = FastMap::default();
        for at in left {
            // Who executed nothing is what its forker was at the time of its birth.
            match all[at].run() {
                Some(run) => note(at, run),
                None => {
                    if let Some((from, until_ns)) = self.inherits_from(at) {
                        inherits.entry(from).or_default().push((at, until_ns));
                    }
                }
            }
        }
        let mut inherited: FastMap<usize, u32> = FastMap::default();
        for (run, number) in self.made.runs.iter().zip(0..).filter(|_| !inherits.is_empty()) {
            let of_run = inherits.get(&run.process).into_iter().flatten();
            for (at, _) in of_run.filter(|(_, until_ns)| *until_ns >= run.time_ns) {
                inherited.insert(*at, number);
            }
        }
        inherited.into_iter().for_each(|(at, run)| note(at, run));
        if concerned.is_empty() {
            return;
        }
        // Its record is known by its process and time. Times may be coarse or missing: execs of one process at the same
        // time are in the order of its runs.
        let key = |run: &ProgramRun| (all[run.process as usize].serial, run.time_ns);
        let runs = &self.made.runs;
        let mut times_ns: Vec<u64> = Vec::new();
        let mut of_key: FastMap<(u32, u64), Vec<u32>> = FastMap::default();
        for run in concerned.keys().filter_map(|run| runs.get(*run as usize)) {
            times_ns.push(run.time_ns);
            of_key.insert(key(run), Vec::new());
        }
        times_ns.sort_unstable();
        for (run, number) in runs.iter().zip(0..) {
            if let Some(numbers) = of_key.get_mut(&key(run)) {
                numbers.push(number);
            }
        }
        let has_one = |block: &BlockInfo| {
            let next = times_ns.partition_point(|time_ns| *time_ns < block.first_ns);
            times_ns.get(next).is_some_and(|time_ns| *time_ns <= block.last_ns)
        };
        let mut seen: FastMap<(u32, u64), usize> = FastMap::default();
        let mut lines: FastMap<usize, String> = FastMap::default();
        reader.rewind();
        records_of(reader, Stream::Lifecycle, has_one, |record| {
            let Record::Exec(exec) = record else { return };
            let key = (exec.fixed.process, exec.fixed.head.time_ns);
            let Some(numbers) = of_key.get(&key) else { return };
            let nth = seen.entry(key).or_default();
            let run = numbers.get(*nth);
            *nth += 1;
            if let Some(processes) = run.and_then(|run| concerned.get(run))
                && let Some(line) = exec.line(LINE_BYTES_MAX)
            {
                processes.iter().for_each(|at| _ = lines.insert(*at, line.clone()));
            }
        });
        self.made.left_lines = lines;
    }

    /// The process whose program a process ran that executed nothing, and until when. What an attached process ran is
    /// told only after the records of its children; what it ran itself may not be known.
    fn inherits_from(&self, at: usize) -> Option<(u32, u64)> {
        let all = &self.made.processes;
        let (mut of, mut until_ns) = (at, u64::MAX);
        while all[of].execs == 0 {
            let born_here = Some(of).filter(|of| !all[*of].was_there())?;
            until_ns = all[born_here].born_ns;
            of = all[born_here].parent().filter(|parent| *parent < of)?;
        }
        Some((u32::try_from(of).ok()?, until_ns))
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

#[cfg(test)]
mod tests {
    use proctrace_classify::Rules;
    use proctrace_trace::{Reader, Writer};
    use proctrace_wire::{Frames, Stream};

    use crate::Recording;
    use crate::testing::{MS, S, Scene};

    /// The command lines of processes, from the third on, of a scene whose lifecycle is written in blocks of a few
    /// records with their own times.
    fn lines(scene: &Scene) -> Vec<Option<String>> {
        let whole = scene.file(Some((5 * S, 0, 0)));
        let mut reader = Reader::open(whole.path()).unwrap();
        let mut writer = Writer::new(Vec::new(), &reader.header().clone()).unwrap();
        while let Some(block) = reader.next_block() {
            let frames: Vec<_> = Frames::new(&block.bytes).flatten().collect();
            let some = if block.info.stream == Stream::Lifecycle { 2 } else { usize::MAX };
            for frames in frames.chunks(some) {
                let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes).copied().collect();
                let times = || frames.iter().map(|frame| frame.head.time_ns);
                let (first_ns, last_ns) = (times().min().unwrap(), times().max().unwrap());
                let records = u32::try_from(frames.len()).unwrap();
                writer.append(block.info.stream, records, first_ns, last_ns, &bytes).unwrap();
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let trailer = reader.trailer().unwrap();
        std::fs::write(file.path(), writer.finish(trailer).unwrap().0).unwrap();
        let recording = Recording::load(file.path(), &Rules::built_in()).unwrap();
        let all = 2..recording.processes().len();
        all.map(|at| recording.left_line_of(at).map(str::to_owned)).collect()
    }

    /// Daemons with the same command line, one that executes twice at the same time, one of another command line, and
    /// one that only forked, before its parent became something else.
    #[test]
    fn each_has_the_command_line_that_it_ran_last() {
        let mut scene = Scene::new(1, S);
        scene.exec_with(0, 1, "/bin/sh", &["sh", "job.sh"], (0, 0));
        scene.fork(S, 1, 2);
        for daemon in 3..8 {
            scene.fork(S, 2, daemon);
        }
        scene.exec_with(2 * S, 3, "/bin/d", &["d", "1"], (0, 0));
        scene.exec_with(2 * S, 4, "/bin/sh", &["sh", "-c", "exec d 4"], (0, 0));
        scene.exec_with(2 * S, 4, "/bin/d", &["d", "4"], (0, 0));
        scene.exec_with(2 * S, 5, "/bin/d", &["d", "5"], (0, 0));
        scene.exec_with(3 * S, 6, "/bin/d", &["d", "1"], (0, 0));
        scene.exec_with(3 * S, 2, "/bin/true", &["true"], (0, 0));
        scene.exit(4 * S, 2, (0, 0)).exit(5 * S, 1, (0, 0));
        for daemon in 3..8 {
            scene.exit(9 * S, daemon, (0, 0));
        }
        assert_eq!(
            lines(&scene),
            ["d 1", "d 4", "d 5", "d 1", "sh job.sh"].map(|it| Some(it.into()))
        );
    }

    /// What an attached process ran is recorded behind the records of its children, with an earlier time.
    #[test]
    fn children_of_attached_processes_have_what_these_ran() {
        let mut scene = Scene::new(1, S);
        scene.exec_with(0, 1, "/bin/sh", &["sh", "job.sh"], (0, 0));
        scene.there_before(MS, 2, S).fork(2 * MS, 2, 3);
        scene.exec_with(MS, 2, "/bin/old", &["old", "--daemon"], (0, 0));
        scene.exit(S, 2, (0, 0)).exit(5 * S, 1, (0, 0)).exit(9 * S, 3, (0, 0));
        assert_eq!(lines(&scene), [Some("old --daemon".into())]);
    }
}
