//! Scenes of steps that pass files on, for tests.

use proctrace_classify::Rules;
use proctrace_recording::Recording;
use proctrace_scenes::{MS, Scene};

pub(crate) const WRITE: u32 = 0o1101;
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

pub(crate) fn with(json: &str) -> Recording {
    let rules = Rules::generic().with_steps("steps.json", json.as_bytes()).unwrap();
    scene().launched_in("/work").load_by(&rules, None)
}

pub(crate) fn table(merge_needs: &str) -> String {
    format!(
        r#"[{{"name": "gen", "command": "gen", "needs": []}},
            {{"name": "use", "command": "use", "needs": ["gen"]}},
            {{"name": "merge", "command": "merge", "needs": [{merge_needs}]}}]"#
    )
}

/// `gen`, `use` and `merge`, after what `acts` adds.
pub(crate) fn renaming(acts: impl FnOnce(&mut Scene)) -> Recording {
    ending([90 * MS; 3], acts)
}

/// The same, where these end at these times.
pub(crate) fn ending(ends_ns: [u64; 3], acts: impl FnOnce(&mut Scene)) -> Recording {
    let mut scene = Scene::new(1, 100 * MS);
    scene.exec(0, 1, "/bin/runner", (0, 0));
    for (at, name) in [(2, "gen"), (3, "use"), (4, "merge")] {
        scene.fork(u64::from(at) * MS, 1, at);
        scene.exec_with(u64::from(at) * MS, at, "/bin/sh", &["sh", "-c", name], (0, 0));
    }
    acts(&mut scene);
    for (task, ended_ns) in (2..).zip(ends_ns) {
        scene.exit(ended_ns, task, (0, 0));
    }
    scene.exit(90 * MS, 1, (0, 0));
    let rules = Rules::generic().with_steps("steps.json", table("").as_bytes()).unwrap();
    scene.launched_in("/work").load_by(&rules, None)
}
