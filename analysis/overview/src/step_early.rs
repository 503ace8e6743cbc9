//! Steps that failed because a file was not there that another step wrote later: they ran too early.

use std::collections::BTreeMap;

use proctrace_classify::names::base;
use proctrace_recording::Recording;

use crate::blame::{Failed, Missed};
use crate::step_files::{StepFile, StepUse, below};
use crate::step_order::is_declared_before;
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

/// Steps that failed at once after they had looked in vain for what another step wrote later, in order of time.
///
/// A search ends in a directory of the system: then it is the name that tells.
pub fn too_early<'a>(
    recording: &Recording,
    sums: &[StepSum],
    files: &[StepFile<'a>],
) -> Vec<TooEarly<'a>> {
    let steps = &recording.steps.all;
    let failed_steps =
        steps.iter().zip(sums).enumerate().filter(|(_, (_, sum))| sum.failed()).take(FAILED_MAX);
    let failed_steps: Vec<_> = failed_steps.map(|(at, (step, _))| (at as u32, step)).collect();
    if failed_steps.is_empty() {
        return Vec::new();
    }
    let failed = Failed::of(recording);
    let mut by_name: BTreeMap<&[u8], Vec<&StepFile<'a>>> = BTreeMap::new();
    for file in files {
        by_name.entry(base(file.path)).or_default().push(file);
    }
    let mut found: Vec<TooEarly<'a>> = Vec::new();
    for (at, step) in failed_steps {
        let process = recording.runs[step.run as usize].process as usize;
        let Some(missed) = failed.missed(recording, process) else { continue };
        if missed.errno != ENOENT {
            continue;
        }
        let sought = Sought::of(recording, &step.directory, missed);
        let named = by_name.get(base(missed.path)).into_iter().flatten();
        let candidates = named.filter(|file| sought.is(file.path));
        let written = candidates.filter_map(|file| {
            let (writer, written_ns) = written_later(recording, file, at, missed.time_ns)?;
            let (path, missed_ns) = (file.path, missed.time_ns);
            Some(TooEarly { step: at, writer, path, missed_ns, written_ns })
        });
        found.extend(written.min_by_key(|of| of.written_ns));
    }
    found.sort_by_key(|of| (of.missed_ns, of.step));
    found
}

/// The file that a failed step looked for.
enum Sought {
    /// Path below the directory of the job.
    Path(Vec<u8>),
    /// Of a path outside, only the name counts.
    Name,
}

impl Sought {
    /// A relative path is one in the directory of the step.
    fn of(recording: &Recording, directory: &[u8], missed: Missed<'_>) -> Self {
        let mut parts: Vec<&[u8]> = Vec::new();
        let start = if missed.path.starts_with(b"/") { &b""[..] } else { directory };
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
        below(&absolute, &recording.header.cwd).map_or(Self::Name, |path| Self::Path(path.to_vec()))
    }

    fn is(&self, path: &[u8]) -> bool {
        match self {
            Self::Path(sought) => sought == path,
            Self::Name => true,
        }
    }
}

/// The step that wrote a file for the first time after this, and when.
fn written_later(
    recording: &Recording,
    file: &StepFile<'_>,
    reader: u32,
    missed_ns: u64,
) -> Option<(u32, u64)> {
    let steps = &recording.steps;
    let written = |used: &StepUse| Some((used.step, used.written_ns?));
    // Who wrote it before has removed it: then it is not the order of these two that counts.
    if file.uses.iter().filter_map(written).any(|(_, written_ns)| written_ns < missed_ns) {
        return None;
    }
    let is_within = |inner: u32, outer: u32| steps.up(inner).any(|at| at == outer);
    let name = |step: u32| &steps.all[step as usize].named.name;
    file.uses
        .iter()
        .filter_map(written)
        .filter(|(writer, _)| {
            !is_within(*writer, reader)
                && !is_within(reader, *writer)
                // A second try of the same step.
                && name(*writer) != name(reader)
                && !is_declared_before(recording, reader, *writer)
        })
        .min_by_key(|(_, written_ns)| *written_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_files::{Level, step_files};
    use crate::step_scenes::{WRITE, table};
    use crate::steps::sums;
    use proctrace_classify::Rules;
    use proctrace_scenes::{MS, Scene};

    /// `use` looks for a path at 20 ms and fails with this status; `gen` writes another one at 30 ms.
    fn found(missed: &str, written: &str, status: u32, json: &str) -> Vec<(u32, u32, String)> {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        for (at, name) in [(2, "gen"), (3, "use")] {
            scene.fork(u64::from(at) * MS, 1, at);
            scene.exec_with(u64::from(at) * MS, at, "/bin/sh", &["sh", "-c", name], (0, 0));
        }
        scene.fork(10 * MS, 3, 5).exec(11 * MS, 5, "/usr/bin/cat", (0, 0));
        scene.open(20 * MS, 5, 1, "/etc/x", 0).open_failed(20 * MS, 5, missed);
        scene.exit_with(21 * MS, 5, (0, 0), |exit| exit.status = status << 8);
        scene.exit_with(22 * MS, 3, (0, 0), |exit| exit.status = status << 8);
        scene.open(30 * MS, 2, 2, written, WRITE).exit(40 * MS, 2, (0, 0)).exit(50 * MS, 1, (0, 0));
        let rules = Rules::generic().with_steps("steps.json", json.as_bytes()).unwrap();
        let recording = scene.launched_in("/work").load_by(&rules, None);
        let files = step_files(&recording, Level::Innermost);
        let told = too_early(&recording, &sums(&recording), &files);
        let told = told.iter();
        told.map(|of| (of.step, of.writer, of.path.escape_ascii().to_string())).collect()
    }

    #[test]
    fn a_step_that_fails_for_want_of_what_is_written_later_ran_too_early() {
        let json = table("");
        let expected = [(1, 0, "gen/x.h".to_owned())];
        assert_eq!(found("/work/gen/x.h", "/work/gen/x.h", 1, &json), expected);
        // The last directory of a search.
        assert_eq!(found("/usr/include/x.h", "/work/gen/x.h", 1, &json), expected);
        // Another file of this name, another name, or no failure.
        assert_eq!(found("/work/other/x.h", "/work/gen/x.h", 1, &json), []);
        assert_eq!(found("/work/gen/y.h", "/work/gen/x.h", 1, &json), []);
        assert_eq!(found("/work/gen/x.h", "/work/gen/x.h", 0, &json), []);
    }

    /// The writer waits for the step that failed: it cannot have been meant to come first.
    #[test]
    fn who_was_to_come_before_was_not_too_early() {
        let json = r#"[{"name": "gen", "command": "gen", "needs": ["use"]},
            {"name": "use", "command": "use", "needs": []}]"#;
        assert_eq!(found("/work/x", "/work/x", 1, json), []);
    }
}
