//! Files between steps: which step writes and which reads each file below the directory of the job.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_recording::Recording;
use proctrace_recording::opened::Writer;
use proctrace_recording::steps::{NamedBy, Steps};

/// Of a file with more users, the pairs of the first of each kind are looked at.
const USERS_MAX: usize = 1000;

/// What a step did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepUse {
    /// Index of the step.
    pub step: u32,
    /// Time of its first open for reading; `None` if it did not read the file.
    pub read_ns: Option<u64>,
    /// Time of its first open for writing; `None` if it did not write the file.
    pub written_ns: Option<u64>,
    /// Time of its last open.
    pub last_ns: u64,
    /// Time from which what it wrote had another name; `None` if it did not write the file or if that still has this name.
    pub moved_away_ns: Option<u64>,
}

/// A file that steps used.
#[derive(Debug, Clone)]
pub struct StepFile<'a> {
    /// Path below the directory of the job.
    pub path: &'a [u8],
    /// By number of the step.
    pub uses: Vec<StepUse>,
    /// When a process that is in no step, such as the coordinator, first wrote it; `None` if none did.
    pub written_outside_ns: Option<u64>,
}

impl StepFile<'_> {
    /// Those who wrote it.
    pub fn writers(&self) -> impl Iterator<Item = &StepUse> {
        self.uses.iter().filter(|used| used.written_ns.is_some())
    }

    /// Those who read it.
    pub fn readers(&self) -> impl Iterator<Item = &StepUse> {
        self.uses.iter().filter(|used| used.read_ns.is_some())
    }

    /// True if one step read what another one wrote.
    pub fn is_passed_on(&self) -> bool {
        self.pairs().next().is_some()
    }

    /// Steps that wrote it, with steps that read it afterwards, while it had this name, and did not write it themselves.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&StepUse, &StepUse)> {
        self.writers().take(USERS_MAX).flat_map(move |writer| {
            let reads = move |reader: &&StepUse| {
                reader.step != writer.step
                    && reader.written_ns.is_none()
                    && Some(reader.last_ns) >= writer.written_ns
                    && writer.moved_away_ns.is_none_or(|moved| reader.read_ns <= Some(moved))
            };
            self.readers().take(USERS_MAX).filter(reads).map(move |reader| (writer, reader))
        })
    }
}

/// The units of a workflow to which what runs within them is attributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The innermost steps.
    Innermost,
    /// Those that a table or the rule of a workflow's runner names, otherwise the outermost ones.
    Workflow,
}

/// The step of this level that a step counts as.
pub fn at_level(steps: &Steps, step: u32, level: Level) -> u32 {
    if level == Level::Innermost {
        return step;
    }
    let mut outermost = step;
    for at in steps.up(step) {
        outermost = at;
        if steps.all[at as usize].named.by == NamedBy::Table {
            break;
        }
    }
    outermost
}

/// The part of a path below a directory.
pub(crate) fn below<'a>(path: &'a [u8], directory: &str) -> Option<&'a [u8]> {
    let directory = directory.trim_end_matches('/').as_bytes();
    path.strip_prefix(directory)?.strip_prefix(b"/").filter(|rest| !rest.is_empty())
}

/// The files below the directory of the job that steps used, by path. Directories are left out.
pub fn step_files(recording: &Recording, level: Level) -> Vec<StepFile<'_>> {
    let steps = recording.steps();
    if steps.all.is_empty() {
        return Vec::new();
    }
    let Some(opened) = recording.opened() else { return Vec::new() };
    let step_of = |process: u32| Some(at_level(steps, steps.of_process(process)?, level));
    let mut files: BTreeMap<&[u8], ByStep> = BTreeMap::new();
    let mut outside: BTreeMap<&[u8], u64> = BTreeMap::new();
    for (path, uses) in opened.by_file() {
        let Some(path) = below(path, &recording.header().cwd) else { continue };
        if uses.iter().any(|used| used.modes.directory) {
            continue;
        }
        let by_step = files.entry(path).or_default();
        for used in uses {
            let Some(step) = step_of(used.process) else {
                if used.modes.write {
                    note_outside(&mut outside, path, used.first_ns);
                }
                continue;
            };
            let first = |is: bool| is.then_some(used.first_ns);
            let (read_ns, written_ns) = (first(used.modes.read), first(used.modes.write));
            let moved_away_ns = opened.moved_away_ns(used.file, used.process);
            let last_ns = used.last_ns;
            note(by_step, StepUse { step, read_ns, written_ns, last_ns, moved_away_ns });
        }
    }
    add_moves(recording, &mut files, &mut outside, step_of);
    files
        .into_iter()
        .filter(|(_, by_step)| !by_step.is_empty())
        .map(|(path, by_step)| StepFile {
            path,
            uses: by_step.into_values().collect(),
            written_outside_ns: outside.get(path).copied(),
        })
        .collect()
}

/// Uses of a file, by step.
type ByStep = BTreeMap<u32, StepUse>;

fn note(by_step: &mut ByStep, used: StepUse) {
    let earliest = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    by_step
        .entry(used.step)
        .and_modify(|known| {
            known.moved_away_ns = match (known.written_ns, used.written_ns) {
                // it is there if one of them is
                (Some(_), Some(_)) => {
                    known.moved_away_ns.zip(used.moved_away_ns).map(|(a, b)| a.max(b))
                }
                (_, None) => known.moved_away_ns,
                (None, _) => used.moved_away_ns,
            };
            known.read_ns = earliest(known.read_ns, used.read_ns);
            known.written_ns = earliest(known.written_ns, used.written_ns);
            known.last_ns = known.last_ns.max(used.last_ns);
        })
        .or_insert(used);
}

fn note_outside<'a>(outside: &mut BTreeMap<&'a [u8], u64>, path: &'a [u8], time_ns: u64) {
    let first = outside.entry(path).or_insert(time_ns);
    *first = (*first).min(time_ns);
}

/// Who renames a file writes the one that has its new name, and so did those who wrote it before. A name that only one step
/// used, which wrote the file and then gave it another name, is left out: it is a matter of that step. For any other
/// step than those who wrote it, a file that it renames is one that it reads.
fn add_moves<'a>(
    recording: &'a Recording,
    files: &mut BTreeMap<&'a [u8], ByStep>,
    outside: &mut BTreeMap<&'a [u8], u64>,
    step_of: impl Fn(u32) -> Option<u32>,
) {
    let Some(opened) = recording.opened() else { return };
    let path_of = |file: u32| below(opened.paths.get(file as usize)?, &recording.header().cwd);
    for moved in &opened.moves {
        let at_ns = moved.time_ns;
        let by = step_of(moved.process);
        // Before the rename, another file may have had the name.
        let wrote = |writer: &Writer| {
            let moved_away_ns = opened.moved_away_ns(moved.to, writer.process);
            let (step, written_ns, last_ns) = (step_of(writer.process)?, Some(at_ns), at_ns);
            Some(StepUse { step, read_ns: None, written_ns, last_ns, moved_away_ns })
        };
        let writers: Vec<StepUse> = moved.writers.iter().filter_map(wrote).collect();
        if let (Some(step), Some(path)) = (by, path_of(moved.from))
            && writers.iter().any(|writer| writer.step != step)
        {
            let (read_ns, written_ns, moved_away_ns) = (Some(at_ns), None, None);
            let read = StepUse { step, read_ns, written_ns, last_ns: at_ns, moved_away_ns };
            note(files.entry(path).or_default(), read);
        }
        let Some(path) = path_of(moved.to) else { continue };
        if by.is_none() {
            note_outside(outside, path, at_ns);
        }
        let by_step = files.entry(path).or_default();
        let by = wrote(&Writer { process: moved.process, time_ns: at_ns });
        writers.into_iter().chain(by).for_each(|writer| note(by_step, writer));
    }
    let movers: BTreeSet<(u32, u32)> = opened
        .moves
        .iter()
        .filter_map(|moved| Some((moved.from, step_of(moved.process)?)))
        .collect();
    for file in &opened.left {
        let Some(path) = path_of(*file) else { continue };
        let Some(by_step) = files.get(path).filter(|by_step| by_step.len() == 1) else { continue };
        let is_own =
            |used: &StepUse| used.written_ns.is_some() && movers.contains(&(*file, used.step));
        if by_step.values().all(is_own) {
            files.remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_scenes::{WRITE, renaming, table, with};
    use proctrace_scenes::MS;
    use proctrace_wire::layout::{
        MOVED_EXCHANGED, MOVED_FROM_IS_RELATIVE, MOVED_PATH_IS_RELATIVE, MOVED_UNKNOWN,
    };

    #[test]
    fn files_have_writers_and_readers() {
        let recording = with(&table(r#""use""#));
        let files = step_files(&recording, Level::Innermost);
        let told: Vec<_> = files
            .iter()
            .map(|file| {
                let steps =
                    |uses: Vec<&StepUse>| -> Vec<u32> { uses.iter().map(|it| it.step).collect() };
                (
                    file.path.escape_ascii().to_string(),
                    steps(file.writers().collect()),
                    steps(file.readers().collect()),
                )
            })
            .collect();
        let expected = [
            ("gen.dat", vec![0], vec![1]),
            ("tf1/sub.dat", vec![0], vec![2]),
            ("use.dat", vec![1], vec![2]),
        ];
        assert_eq!(told, expected.map(|(path, by, of)| (path.to_owned(), by, of)));
    }

    /// Names, writers and readers of all files.
    fn told(recording: &Recording) -> Vec<(String, Vec<u32>, Vec<u32>)> {
        let steps = |uses: Vec<&StepUse>| uses.iter().map(|it| it.step).collect();
        step_files(recording, Level::Innermost)
            .iter()
            .map(|file| {
                let path = file.path.escape_ascii().to_string();
                (path, steps(file.writers().collect()), steps(file.readers().collect()))
            })
            .collect()
    }

    fn file(path: &str, writers: &[u32], readers: &[u32]) -> (String, Vec<u32>, Vec<u32>) {
        (path.to_owned(), writers.to_vec(), readers.to_vec())
    }

    #[test]
    fn a_file_written_beside_its_name_has_a_writer() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x.tmp", WRITE)
                .moved(11 * MS, 2, "/work/x.tmp", "/work/y.tmp", 0)
                .moved(12 * MS, 2, "/work/y.tmp", "/work/x", 0)
                .open(20 * MS, 3, 2, "/work/x", 0);
        });
        assert_eq!(told(&recording), [file("x", &[0], &[1])]);
    }

    #[test]
    fn who_renames_what_another_step_wrote_reads_it() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x.tmp", WRITE)
                .moved(20 * MS, 3, "/work/x.tmp", "/work/x", 0)
                .open(30 * MS, 4, 2, "/work/x", 0);
        });
        assert_eq!(told(&recording), [file("x", &[0, 1], &[2]), file("x.tmp", &[0], &[1])]);
    }

    /// As Nextflow does with the script of each task, and others beside their names.
    #[test]
    fn what_the_coordinator_writes_was_not_there_before() {
        let recording = renaming(|scene| {
            scene
                .open(5 * MS, 1, 1, "/work/script", WRITE)
                .open(6 * MS, 1, 2, "/work/list.tmp", WRITE)
                .moved(7 * MS, 1, "/work/list.tmp", "/work/list", 0)
                .open(10 * MS, 2, 3, "/work/script", 0)
                .open(11 * MS, 2, 4, "/work/list", 0)
                .open(12 * MS, 2, 5, "/work/input", 0);
        });
        let files = step_files(&recording, Level::Innermost);
        let outside: Vec<(&[u8], bool)> =
            files.iter().map(|file| (file.path, file.written_outside_ns.is_some())).collect();
        assert_eq!(outside, [(&b"input"[..], false), (b"list", true), (b"script", true)]);
    }

    /// Each of two steps writes to the same name and renames it: neither wrote what the other one has.
    #[test]
    fn a_name_that_is_used_again_is_another_file() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/tmp", WRITE)
                .moved(11 * MS, 2, "/work/tmp", "/work/a", 0)
                .open(10 * MS, 3, 2, "/work/tmp", WRITE)
                .moved(11 * MS, 3, "/work/tmp", "/work/b", 0);
        });
        let expected = [file("a", &[0], &[]), file("b", &[1], &[]), file("tmp", &[0, 1], &[])];
        assert_eq!(told(&recording), expected);
    }

    /// A later reader of the name has what another step wrote.
    #[test]
    fn who_gave_a_file_another_name_did_not_write_what_has_the_name_since() {
        let pairs = |recording: &Recording| -> Vec<(String, u32, u32)> {
            let files = step_files(recording, Level::Innermost);
            let of = |file: &StepFile<'_>| {
                let path = file.path.escape_ascii().to_string();
                file.pairs()
                    .map(|(writer, reader)| (path.clone(), writer.step, reader.step))
                    .collect()
            };
            files.iter().flat_map(|file| -> Vec<_> { of(file) }).collect()
        };
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/out", WRITE)
                .moved(11 * MS, 2, "/work/out", "/work/a", 0)
                .open(12 * MS, 3, 2, "/work/out", WRITE)
                .open(13 * MS, 4, 3, "/work/out", 0)
                .open(14 * MS, 4, 4, "/work/a", 0);
        });
        assert_eq!(pairs(&recording), [("a".to_owned(), 0, 2), ("out".to_owned(), 1, 2)]);
        // Another file had the name before the rename.
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x.tmp", WRITE)
                .open(20 * MS, 3, 2, "/work/x", 0)
                .moved(30 * MS, 2, "/work/x.tmp", "/work/x", 0);
        });
        assert_eq!(pairs(&recording), []);
        // It was read before, too.
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/out", WRITE)
                .open(11 * MS, 4, 2, "/work/out", 0)
                .moved(12 * MS, 2, "/work/out", "/work/a", 0);
        });
        assert_eq!(pairs(&recording), [("out".to_owned(), 0, 2)]);
        // What it wrote since has the name.
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/out", WRITE)
                .moved(11 * MS, 2, "/work/out", "/work/a", 0)
                .open(12 * MS, 2, 2, "/work/out", WRITE)
                .open(13 * MS, 4, 3, "/work/out", 0);
        });
        assert_eq!(pairs(&recording), [("out".to_owned(), 0, 2)]);
    }

    #[test]
    fn a_log_that_is_rotated_stays() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/log", WRITE)
                .moved(11 * MS, 2, "/work/log", "/work/log.1", 0)
                .open(12 * MS, 2, 2, "/work/log", WRITE);
        });
        assert_eq!(told(&recording), [file("log", &[0], &[]), file("log.1", &[0], &[])]);
    }

    #[test]
    fn two_files_may_change_places() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/a", WRITE)
                .open(11 * MS, 3, 2, "/work/b", WRITE)
                .moved(12 * MS, 3, "/work/a", "/work/b", MOVED_EXCHANGED);
        });
        let expected = [file("a", &[0, 1], &[1]), file("b", &[0, 1], &[])];
        assert_eq!(told(&recording), expected);
    }

    #[test]
    fn what_is_below_a_directory_goes_with_it() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/d.tmp/x", WRITE)
                .open(10 * MS, 2, 3, "/work/d.tmpx", WRITE)
                .moved(11 * MS, 2, "/work/d.tmp", "/work/d", 0)
                .open(20 * MS, 3, 2, "/work/d/x", 0);
        });
        assert_eq!(told(&recording), [file("d.tmpx", &[0], &[]), file("d/x", &[0], &[1])]);
    }

    /// eBPF gives a file the same number again, with the path of its first open.
    #[test]
    fn what_is_opened_again_below_a_renamed_directory_has_the_new_name() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/d.tmp/x", WRITE)
                .open(11 * MS, 2, 2, "/work/d.tmp/x", 0)
                .moved(12 * MS, 2, "/work/d.tmp", "/work/d", 0)
                .open_again(20 * MS, 3, 2);
        });
        assert_eq!(told(&recording), [file("d/x", &[0], &[1])]);
    }

    #[test]
    fn directories_may_change_places() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/a/x", WRITE)
                .open(11 * MS, 3, 2, "/work/b/x", WRITE)
                .moved(12 * MS, 4, "/work/a", "/work/b", MOVED_EXCHANGED)
                .open(13 * MS, 4, 3, "/work/b/x", 0);
        });
        let passed_on: Vec<_> = step_files(&recording, Level::Innermost)
            .iter()
            .filter(|file| file.path == b"b/x")
            .flat_map(|file| file.pairs().map(|(by, of)| (by.step, of.step)).collect::<Vec<_>>())
            .collect();
        // The third one has renamed both, so it wrote both names.
        assert_eq!(passed_on, []);
        let writers = |path: &str| -> Vec<u32> {
            let files = told(&recording);
            files.into_iter().find(|file| file.0 == path).unwrap().1
        };
        assert_eq!((writers("a/x"), writers("b/x")), (vec![0, 1, 2], vec![0, 1, 2]));
    }

    /// Who wrote the file before has written nothing that is left.
    #[test]
    fn a_file_that_is_made_anew_has_no_earlier_writer() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x", WRITE)
                .open(11 * MS, 3, 2, "/work/x", WRITE)
                .moved(12 * MS, 3, "/work/x", "/work/y", 0)
                .open(13 * MS, 4, 3, "/work/y", 0);
        });
        let y = told(&recording).into_iter().find(|file| file.0 == "y");
        assert_eq!(y, Some(file("y", &[1], &[2])));
    }

    #[test]
    fn paths_are_followed_where_they_are_certain() {
        const RELATIVE: u32 = MOVED_FROM_IS_RELATIVE | MOVED_PATH_IS_RELATIVE;
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x.tmp", WRITE)
                .moved(11 * MS, 2, "/work/./x.tmp", "/work/sub/./../x", RELATIVE)
                .moved(12 * MS, 2, "/work/./old", "/work/./older", RELATIVE)
                .open(13 * MS, 2, 2, "/work/d.tmp/y", WRITE)
                .moved(14 * MS, 2, "/work/./d.tmp", "/work/./d", RELATIVE)
                .moved(15 * MS, 2, "/work/./d/y", "/work/./link/../y", RELATIVE)
                .moved(16 * MS, 2, "", "", MOVED_UNKNOWN);
        });
        assert_eq!(told(&recording), [file("d/y", &[0], &[]), file("x", &[0], &[])]);
        // Of the third one, it is not known that the name is not that of something else.
        assert_eq!(recording.opened().unwrap().moves_unknown, 3);
    }

    /// Who removes a file has left nothing for those who read a later one of that name.
    #[test]
    fn what_was_removed_is_not_read() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x", WRITE)
                .removed(11 * MS, 2, "/work/./x", MOVED_FROM_IS_RELATIVE)
                .open(12 * MS, 3, 2, "/work/x", WRITE)
                .open(13 * MS, 4, 3, "/work/x", 0);
        });
        let files = step_files(&recording, Level::Innermost);
        let pairs: Vec<_> = files[0].pairs().map(|(by, of)| (by.step, of.step)).collect();
        assert_eq!(pairs, [(1, 2)]);
    }
}
