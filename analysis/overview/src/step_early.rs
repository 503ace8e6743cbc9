//! Steps that failed because a file was not there that another step wrote later: they ran too early.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_classify::fast::FastMap;
use proctrace_classify::is_shell;
use proctrace_classify::names::base;
use proctrace_recording::Recording;
use proctrace_recording::opened::OpenedFiles;

use crate::blame::Failed;
use crate::last_miss::Missed;
use crate::step_files::{StepFile, StepUse, below};
use crate::step_order::{DeclaredBefore, is_in_cache};
use crate::steps::StepSum;

const ENOENT: u16 = 2;
/// Failed steps that are looked at.
const FAILED_MAX: usize = 200;

/// A step that failed, and the one that it did not wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooEarly<'a> {
    /// The step that failed.
    pub step: u32,
    /// The step that wrote the file.
    pub writer: u32,
    /// Path of the file below the directory of the job.
    pub path: &'a [u8],
    /// Time of the failed look-up.
    pub missed_ns: u64,
    /// Time at which the file was written.
    pub written_ns: u64,
}

/// Steps that failed at once after they had looked in vain for what another step wrote later, in order of time; and how many
/// that failed are not looked at.
pub fn too_early<'a>(
    recording: &Recording,
    sums: &[StepSum],
    files: &[StepFile<'a>],
) -> (Vec<TooEarly<'a>>, u64) {
    let steps = &recording.steps().all;
    let failed_steps: Vec<usize> = (0..steps.len()).filter(|at| sums[*at].failed()).collect();
    let looked_at = &failed_steps[..failed_steps.len().min(FAILED_MAX)];
    let others = (failed_steps.len() - looked_at.len()) as u64;
    if looked_at.is_empty() {
        return (Vec::new(), others);
    }
    let failed = Failed::of(recording);
    let all = looked_at.iter().filter_map(|at| {
        let process = recording.runs()[steps[*at].run as usize].process as usize;
        let (process, missed) = failed.missed(recording, process)?;
        (missed.errno == ENOENT).then_some((*at as u32, process, missed))
    });
    let all: Vec<(u32, usize, Missed<'_>)> = all.collect();
    let found_later = FoundLater::of(recording, all.iter().map(|(_, process, _)| *process));
    let searched = searched(recording);
    let mut by_name: BTreeMap<&[u8], Vec<&StepFile<'a>>> = BTreeMap::new();
    for file in files.iter().filter(|file| !is_in_cache(file.path)) {
        by_name.entry(base(file.path)).or_default().push(file);
    }
    let mut declared = DeclaredBefore::of(recording);
    let mut found: Vec<TooEarly<'a>> = Vec::new();
    for (step, process, missed) in all {
        let name = base(missed.path);
        let Some(named) = by_name.get(name).filter(|_| !found_later.is(process, missed)) else {
            continue;
        };
        let file = match sought(recording, process, missed) {
            Sought::Path(sought) => named.iter().find(|file| file.path == sought),
            // A search ends in a directory of the system: then it is the name that tells, if it tells one file.
            Sought::Outside if searched.contains(name) && named.len() == 1 => named.first(),
            Sought::Outside | Sought::Unknown => None,
        };
        let Some(file) = file else { continue };
        let written = Written { recording, sums, declared: &mut declared };
        if let Some((writer, written_ns)) = written.later(file, step, missed.time_ns) {
            let (path, missed_ns) = (file.path, missed.time_ns);
            found.push(TooEarly { step, writer, path, missed_ns, written_ns });
        }
    }
    found.sort_by_key(|of| (of.missed_ns, of.step));
    (found, others)
}

/// Names that were looked for in vain in more than one directory.
fn searched(recording: &Recording) -> BTreeSet<&[u8]> {
    let mut once: BTreeSet<&[u8]> = BTreeSet::new();
    let missed = recording.missed_paths().into_iter().flat_map(|missed| &missed.paths);
    let names = missed.map(|missed| base(&missed.path));
    names.filter(|name| !once.insert(name)).collect()
}

/// What some processes opened, by the last time.
struct FoundLater<'a> {
    opened: FastMap<u32, Vec<(u64, &'a [u8])>>,
}

impl<'a> FoundLater<'a> {
    fn of(recording: &'a Recording, processes: impl Iterator<Item = usize>) -> Self {
        let mut opened: FastMap<u32, Vec<(u64, &[u8])>> = FastMap::default();
        for process in processes {
            opened.insert(u32::try_from(process).unwrap_or(u32::MAX), Vec::new());
        }
        for (path, uses) in recording.opened().into_iter().flat_map(OpenedFiles::by_file) {
            for used in uses {
                if let Some(known) = opened.get_mut(&used.process) {
                    known.push((used.last_ns, base(path)));
                }
            }
        }
        Self { opened }
    }

    /// True if the search went on, and the process opened a file of this name.
    fn is(&self, process: usize, missed: Missed<'_>) -> bool {
        let opened = u32::try_from(process).ok().and_then(|process| self.opened.get(&process));
        let is_it = |(last_ns, name): &(u64, &[u8])| {
            *last_ns >= missed.time_ns && *name == base(missed.path)
        };
        opened.is_some_and(|opened| opened.iter().any(is_it))
    }
}

/// The file that a failed process looked for.
enum Sought {
    /// Path below the directory of the job.
    Path(Vec<u8>),
    /// Somewhere else.
    Outside,
    /// It is not known in which directory.
    Unknown,
}

/// True of programs that change their directory as they are told to.
fn changes_directory(program: &str) -> bool {
    is_shell(program) || program == "busybox"
}

fn sought(recording: &Recording, process: usize, missed: Missed<'_>) -> Sought {
    let of = &recording.processes()[process];
    let start = if missed.path.starts_with(b"/") {
        &b""[..]
    } else {
        // A process that ran no program may have gone elsewhere than where its parent's began.
        let is_known = missed.is_from_cwd
            && of.execs > 0
            && !changes_directory(&recording.program_of(of).name);
        let run = of.run().filter(|_| is_known);
        match run.and_then(|run| recording.run_directories().of(run)) {
            Some(directory) => directory,
            None => return Sought::Unknown,
        }
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    let all = start.split(|byte| *byte == b'/').chain(missed.path.split(|byte| *byte == b'/'));
    for part in all {
        match part {
            b"" | b"." => {}
            // Where the directory before is a link, this names another file, which nobody wrote.
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let absolute = [&b"/"[..], &parts.join(&b'/')].concat();
    below(&absolute, &recording.header().cwd)
        .map_or(Sought::Outside, |path| Sought::Path(path.to_vec()))
}

/// Who wrote a file after it was missed.
struct Written<'a, 'b> {
    recording: &'a Recording,
    sums: &'a [StepSum],
    declared: &'b mut DeclaredBefore<'a>,
}

impl Written<'_, '_> {
    /// The step that wrote a file for the first time after this, and when, if it should have come before.
    fn later(self, file: &StepFile<'_>, reader: u32, missed_ns: u64) -> Option<(u32, u64)> {
        let Self { recording, sums, declared } = self;
        let steps = recording.steps();
        let written = |used: &StepUse| Some((used.step, used.written_ns?));
        let all = || file.uses.iter().filter_map(written);
        // Who wrote it before has removed it, and who wrote it itself did not want it from others.
        if all().any(|(step, written_ns)| written_ns < missed_ns || step == reader) {
            return None;
        }
        let (writer, written_ns) = all().min_by_key(|(_, written_ns)| *written_ns)?;
        let is_within = |inner: u32, outer: u32| steps.up(inner).any(|at| at == outer);
        let name = |step: u32| &steps.all[step as usize].named.name;
        // What is only begun after a failure is a second try, or another way.
        let is_beside = sums[writer as usize].begin_ns < sums[reader as usize].end_ns;
        let is_meant = !is_beside
            || is_within(writer, reader)
            || is_within(reader, writer)
            || name(writer) == name(reader)
            || declared.is_before(reader, writer);
        (!is_meant).then_some((writer, written_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_files::{Level, step_files};
    use crate::step_scenes::WRITE;
    use crate::steps::sums;
    use proctrace_classify::Rules;
    use proctrace_scenes::{MS, Scene};

    /// A scene in which `use` starts cat, which looks for a path at 20 ms and fails with this status at 21 ms; `gen` writes
    /// another one at 30 ms.
    struct Job<'a> {
        missed: &'a [&'a str],
        opened: &'a str,
        written: &'a str,
        status: u32,
        /// Time at which `gen` begins.
        gen_ms: u64,
        json: &'a str,
    }

    const JOB: Job<'_> = Job {
        missed: &["/work/gen/x.h"],
        opened: "/etc/x",
        written: "/work/gen/x.h",
        status: 1,
        gen_ms: 2,
        json: r#"[{"name": "gen", "command": "gen"}, {"name": "use", "command": "use"}]"#,
    };

    fn found(job: &Job<'_>) -> Vec<(String, String, String)> {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        for (at, begin_ms, name) in [(2, job.gen_ms, "gen"), (3, 3, "use")] {
            scene.fork(begin_ms * MS, 1, at);
            scene.exec_with(begin_ms * MS, at, "/bin/sh", &["sh", "-c", name], (0, 0));
        }
        scene.fork(10 * MS, 3, 5).exec(11 * MS, 5, "/usr/bin/cat", (0, 0));
        for missed in job.missed {
            scene.open_failed(20 * MS, 5, missed);
        }
        scene.open(20 * MS, 5, 1, job.opened, 0);
        scene.exit_with(21 * MS, 5, (0, 0), |exit| exit.status = job.status << 8);
        scene.exit_with(22 * MS, 3, (0, 0), |exit| exit.status = job.status << 8);
        scene.open(30 * MS, 2, 2, job.written, WRITE);
        scene.exit(40 * MS, 2, (0, 0)).exit(50 * MS, 1, (0, 0));
        let rules = Rules::generic().with_steps("steps.json", job.json.as_bytes()).unwrap();
        let recording = scene.launched_in("/work").load_by(&rules, None);
        let files = step_files(&recording, Level::Innermost);
        let (told, others) = too_early(&recording, &sums(&recording), &files);
        assert_eq!(others, 0);
        let name = |step: u32| recording.steps().all[step as usize].named.name.clone();
        let told = told.iter();
        told.map(|of| (name(of.step), name(of.writer), of.path.escape_ascii().to_string()))
            .collect()
    }

    #[test]
    fn a_step_that_fails_for_want_of_what_is_written_later_ran_too_early() {
        let expected = [("use".to_owned(), "gen".to_owned(), "gen/x.h".to_owned())];
        assert_eq!(found(&JOB), expected);
        // A search, to the last directory.
        let search = ["/work/x.h", "/usr/include/x.h"];
        assert_eq!(found(&Job { missed: &search, ..JOB }), expected);
    }

    #[test]
    fn what_may_have_other_reasons_is_not_told() {
        for (job, why) in [
            (Job { missed: &["/usr/include/x.h"], ..JOB }, "no search"),
            (Job { missed: &["/work/other/x.h"], ..JOB }, "another file of this name"),
            (Job { missed: &["/work/gen/y.h"], ..JOB }, "another name"),
            (Job { missed: &["gen/x.h"], ..JOB }, "an unknown directory"),
            (Job { status: 0, ..JOB }, "no failure"),
            (Job { opened: "/usr/include/x.h", ..JOB }, "it was found elsewhere"),
            (Job { gen_ms: 25, ..JOB }, "the writer began after the failure"),
            (
                Job {
                    missed: &["/work/__pycache__/x.pyc"],
                    written: "/work/__pycache__/x.pyc",
                    ..JOB
                },
                "a cache",
            ),
            (
                Job {
                    json: r#"[{"name": "gen", "command": "gen", "needs": ["use"]},
                        {"name": "use", "command": "use", "needs": []}]"#,
                    ..JOB
                },
                "the writer waits for the step that failed",
            ),
            (
                Job {
                    json: r#"[{"name": "x", "command": "gen"}, {"name": "x", "command": "use"}]"#,
                    ..JOB
                },
                "a second try",
            ),
        ] {
            assert_eq!(found(&job), [], "{why}");
        }
    }
}
