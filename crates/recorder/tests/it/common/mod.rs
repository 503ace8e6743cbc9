//! Records declared processes and a mark by the recorder without the analysis, as on a worker node.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn recorder() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctrace-recorder"));
    // cargo adds its directories to the loader's search path, in which the payload's programs would look, too.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

fn run(arguments: &[&str], trace: &Path) -> Output {
    let output = recorder().args(arguments).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Records 20 × true and a mark, and returns the events.
fn records(backend: &str) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("job.ptrace");
    let spawn = proctrace_fixtures::program("spawn");
    let script = "\"$1\" 20 /bin/true; \"$2\" mark half; exit 3";
    let recorded = recorder()
        .args(["record", "--backend", backend, "--output"])
        .arg(&trace)
        .args(["--", "sh", "-c", script, "sh"])
        .arg(spawn)
        .arg(env!("CARGO_BIN_EXE_proctrace-recorder"))
        .output()
        .unwrap();
    let said = String::from_utf8(recorded.stderr).unwrap();
    assert_eq!(recorded.status.code(), Some(3), "{said}");
    assert!(said.contains("0 lost"), "{said}");
    let lines = String::from_utf8(run(&["top", "--progress=1s"], &trace).stdout).unwrap();
    assert!(lines.contains("23 processes"), "{lines}");
    let events = String::from_utf8(run(&["dump"], &trace).stdout).unwrap();
    events.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind).count()
}

/// Checks the events of a recording by this backend: the fixture, its 20 children, and the mark; sh is attached.
pub(crate) fn declared(backend: &str) {
    let events = records(backend);
    assert_eq!((count(&events, "attach"), count(&events, "fork")), (1, 22), "{backend}");
    assert_eq!((count(&events, "exit"), count(&events, "exec")), (23, 23), "{backend}");
    let marks = events.iter().filter(|event| {
        event["kind"] == "exec" && event["argv"][1] == "mark" && event["argv"][2] == "half"
    });
    assert_eq!(marks.count(), 1, "{backend}");
}

/// Checks the renames of a recording by this backend: of a file, of a directory, through a symbolic link, from elsewhere, and
/// by an absolute path. One that fails is none.
pub(crate) fn renames(backend: &str) {
    const SCRIPT: &str = "echo x > a.tmp; mv a.tmp a; cat a; mv nothing nowhere; \
        mkdir d.tmp; echo y > d.tmp/y; cat d.tmp/y; mv d.tmp d; cat d/y; \
        ln -s d link; mv -T link/y link/z; cat d/z; cd d; mv ../a ../b; mv -T \"$PWD/./../b\" c; cat c";
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("job.ptrace");
    let work = directory.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let recorded = recorder()
        .args(["record", "--opens", "--backend", backend, "--output"])
        .arg(&trace)
        .args(["--", "sh", "-c", SCRIPT])
        .current_dir(&work)
        .output()
        .unwrap();
    let said = String::from_utf8(recorded.stderr).unwrap();
    assert_eq!(recorded.status.code(), Some(0), "{said}");
    assert!(said.contains("0 lost"), "{said}");
    let events = String::from_utf8(run(&["dump"], &trace).stdout).unwrap();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let work = std::fs::canonicalize(work).unwrap();
    let below = |path: &Value| {
        path.as_str().unwrap().strip_prefix(work.to_str().unwrap()).unwrap().to_owned()
    };
    let all = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["kind"] == kind).collect()
    };
    let moved = all("moved");
    let paths: Vec<_> = moved.iter().map(|it| (below(&it["from"]), below(&it["path"]))).collect();
    let relative: Vec<_> =
        moved.iter().map(|it| (&it["from_is_relative"], &it["path_is_relative"])).collect();
    let pair = |from: &str, path: &str| (from.to_owned(), path.to_owned());
    let expected = [
        pair("/./a.tmp", "/./a"),
        pair("/./d.tmp", "/./d"),
        pair("/./link/y", "/./link/z"),
        pair("/d/./../a", "/d/./../b"),
        pair("/d/./../b", "/d/./c"),
    ];
    assert_eq!(paths, expected, "{backend}");
    // The paths before of the last two are the same, but a caller's own.
    let (yes, no) = (&Value::Bool(true), &Value::Bool(false));
    assert_eq!(relative, [(yes, yes), (yes, yes), (yes, yes), (yes, yes), (no, yes)], "{backend}");
    // Opens call the same files by the same names.
    let opened: Vec<&str> = all("opened").iter().filter_map(|it| it["path"].as_str()).collect();
    for name in ["a.tmp", "a", "d.tmp/y", "d/z", "d/c"] {
        let path = work.join(name);
        assert!(opened.contains(&path.to_str().unwrap()), "{backend}: {name} in {opened:?}");
    }
    // eBPF knows a file again whose directory has another name; its record is that of the first open.
    let count = |name: &str| {
        let path = work.join(name);
        opened.iter().filter(|opened| **opened == path.to_str().unwrap()).count()
    };
    assert_eq!(count("d.tmp/y") + count("d/y"), 3, "{backend}: {opened:?}");
    assert!(backend == "ebpf" || count("d/y") == 1, "{backend}: {opened:?}");
}
