//! Files between steps: which step writes and which reads each file below the directory of the job.

use std::collections::BTreeMap;

use proctrace_recording::Recording;
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
}

/// A file that steps used.
#[derive(Debug, Clone)]
pub struct StepFile<'a> {
    /// Path below the directory of the job.
    pub path: &'a [u8],
    /// By number of the step.
    pub uses: Vec<StepUse>,
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

    /// Steps that wrote it, with steps that read it afterwards and did not write it themselves.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&StepUse, &StepUse)> {
        self.writers().take(USERS_MAX).flat_map(move |writer| {
            let reads = move |reader: &&StepUse| {
                reader.step != writer.step
                    && reader.written_ns.is_none()
                    && Some(reader.last_ns) >= writer.written_ns
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
fn below<'a>(path: &'a [u8], directory: &str) -> Option<&'a [u8]> {
    let directory = directory.trim_end_matches('/').as_bytes();
    path.strip_prefix(directory)?.strip_prefix(b"/").filter(|rest| !rest.is_empty())
}

/// The files below the directory of the job that steps used, by path. Directories are left out.
pub fn step_files(recording: &Recording, level: Level) -> Vec<StepFile<'_>> {
    let steps = &recording.steps;
    if steps.all.is_empty() {
        return Vec::new();
    }
    let mut files = Vec::new();
    for (path, uses) in recording.opened.by_file() {
        let Some(path) = below(path, &recording.header.cwd) else { continue };
        if uses.iter().any(|used| used.modes.directory) {
            continue;
        }
        let mut by_step: BTreeMap<u32, StepUse> = BTreeMap::new();
        for used in uses {
            let Some(step) = steps.of_process(used.process) else { continue };
            let step = at_level(steps, step, level);
            let first = |is: bool| is.then_some(used.first_ns);
            let (read_ns, written_ns) = (first(used.modes.read), first(used.modes.write));
            let earliest = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
            by_step
                .entry(step)
                .and_modify(|known| {
                    known.read_ns = earliest(known.read_ns, read_ns);
                    known.written_ns = earliest(known.written_ns, written_ns);
                    known.last_ns = known.last_ns.max(used.last_ns);
                })
                .or_insert(StepUse { step, read_ns, written_ns, last_ns: used.last_ns });
        }
        if !by_step.is_empty() {
            files.push(StepFile { path, uses: by_step.into_values().collect() });
        }
    }
    files.sort_by_key(|file| file.path);
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_classify::Rules;
    use proctrace_scenes::{MS, Scene};

    const WRITE: u32 = 0o1101;
    const DIRECTORY: u32 = 0o200_000;

    /// A runner starts gen, which writes two files, then use and merge, which read them; merge waits for use only.
    fn scene() -> Scene {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/bin/runner", (0, 0));
        for (at, name) in [(2, "gen"), (3, "use"), (4, "merge")] {
            let begin = u64::from(at) * 10 * MS;
            scene.fork(begin, 1, at);
            scene.exec_with(begin + MS, at, "/bin/sh", &["sh", "-c", name], (0, 0));
        }
        scene
            .open(22 * MS, 2, 1, "/work/gen.dat", WRITE)
            .open(23 * MS, 2, 2, "/work/tf1/sub.dat", WRITE)
            .open(23 * MS, 2, 3, "/work/tf1", DIRECTORY)
            .open(24 * MS, 2, 4, "/etc/passwd", 0)
            .open(32 * MS, 3, 1, "/work/gen.dat", 0)
            .open(33 * MS, 3, 5, "/work/use.dat", WRITE)
            .open(42 * MS, 4, 2, "/work/tf1/sub.dat", 0)
            .open(43 * MS, 4, 5, "/work/use.dat", 0);
        for task in [2, 3, 4, 1] {
            scene.exit(50 * MS, task, (0, 0));
        }
        scene
    }

    fn with(json: &str) -> Recording {
        let rules = Rules::generic().with_steps("steps.json", json.as_bytes()).unwrap();
        scene().launched_in("/work").load_by(&rules, None)
    }

    fn table(merge_needs: &str) -> String {
        format!(
            r#"[{{"name": "gen", "command": "gen", "needs": []}},
                {{"name": "use", "command": "use", "needs": ["gen"]}},
                {{"name": "merge", "command": "merge", "needs": [{merge_needs}]}}]"#
        )
    }

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
}
