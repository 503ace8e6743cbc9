//! Files that root writes where another user may put things, for each command that writes: nothing is written into
//! what was planted, and nothing behind it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::proctrace;
use crate::common::scene::{OTHER, PRECIOUS, Scene, limited};
use crate::pty::Terminal;

/// A log of strace.
const LOG: &str = "1 1700000000.000001 execve(\"/bin/true\", [\"true\"], 0x7ffd /* 1 var */) = 0\n\
                   1 1700000000.100000 exit_group(0) = ?\n1 1700000000.100001 +++ exited with 0 +++\n";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn trace() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-6.ptrace")
}

/// proctrace with these arguments, in which TRACE is a recording.
fn run(scene: &Scene, arguments: &[&str]) -> Output {
    let mut command = proctrace();
    for argument in arguments {
        match *argument {
            "TRACE" => command.arg(trace()),
            "SELF" => command.arg(std::process::id().to_string()),
            argument => command.arg(argument),
        };
    }
    command.current_dir(scene.at("shared"));
    limited(command)
}

#[test]
fn a_recording_is_not_written_into_a_file_that_somebody_keeps_open() {
    for scene in [Scene::new(), Scene::new().sticky()] {
        let held = scene.held("out.ptrace");
        let output = scene.record(&scene.shared("out.ptrace"), &[]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("a file of user 65534 has this name"), "{said}");
        assert!(!scene.ran(), "the command must not run");
        assert_eq!(held.seen(), b"");
        assert_eq!(fs::metadata(scene.shared("out.ptrace")).unwrap().len(), 0);
        assert_eq!(fs::read_dir(scene.at("shared")).unwrap().count(), 1);
    }
}

#[test]
fn what_is_planted_under_the_name_of_a_trace_is_refused() {
    for planted in [
        "mkfifo out.ptrace; chmod 666 out.ptrace",
        "ln -s ../private/victim out.ptrace",
        "ln -s ../private/new out.ptrace",
        "echo old > out.ptrace",
        "mkdir out.ptrace",
    ] {
        let scene = Scene::new();
        scene.other(planted);
        let output = scene.record(&scene.shared("out.ptrace"), &[]);
        assert_eq!(output.status.code(), Some(125), "{planted}: {}", said(&output));
        assert!(!scene.ran(), "{planted}");
        scene.assert_nothing_behind(planted);
        let left = fs::read_dir(scene.at("shared")).unwrap().count();
        assert_eq!(left, 1, "{planted}: nothing is left beside it");
    }
    // The directory is led elsewhere.
    let scene = Scene::new();
    scene.other("ln -s ../private place");
    let output = scene.record(&scene.shared("place/out.ptrace"), &[]);
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("which root does not follow"), "{}", said(&output));
    assert!(!scene.ran());
    scene.assert_nothing_behind("place");
}

#[test]
fn an_earlier_trace_is_not_kept_where_another_user_has_something() {
    for planted in ["ln -s ../private/victim out.ptrace.old", "echo mine > out.ptrace.old"] {
        let scene = Scene::new();
        assert!(scene.record(&scene.shared("out.ptrace"), &[]).status.success());
        let before = fs::read(scene.shared("out.ptrace")).unwrap();
        fs::remove_file(scene.at("it-ran")).unwrap();
        scene.other(planted);
        let output = scene.record(&scene.shared("out.ptrace"), &[]);
        assert_eq!(output.status.code(), Some(125), "{planted}: {}", said(&output));
        assert!(!scene.ran(), "{planted}");
        assert_eq!(fs::read(scene.shared("out.ptrace")).unwrap(), before);
        scene.assert_nothing_behind(planted);
    }
}

#[test]
fn what_the_command_prints_is_not_written_into_a_planted_file() {
    for planted in
        ["ln -s ../private/victim out.ptrace.out", ": > out.ptrace.out", "mkfifo out.ptrace.out"]
    {
        let scene = Scene::new();
        scene.other(planted);
        let mut record = proctrace();
        record.args(["record", "--live", "-o", "out.ptrace", "--", "sh", "-c"]);
        record.arg("echo secret; touch ../it-ran").current_dir(scene.at("shared"));
        let terminal = Terminal::run(&record, (100, 30));
        terminal.wait_for("status=125.");
        terminal.press("\n");
        assert!(!scene.ran(), "{planted}");
        scene.assert_nothing_behind(planted);
        let planted_file = fs::symlink_metadata(scene.shared("out.ptrace.out")).unwrap();
        assert!(!planted_file.is_file() || planted_file.len() == 0, "{planted}");
    }
}

/// Commands that write files which the user names, and the name of the file.
const NAMED: [(&str, &str, &[&str]); 11] = [
    ("query -o", "out", &["query", "SELECT * FROM processes", "TRACE", "-o", "out"]),
    ("report --html", "out", &["report", "TRACE", "--html", "out"]),
    ("report --gantt", "out.svg", &["report", "TRACE", "--gantt", "out.svg"]),
    ("export perfetto", "out", &["export", "out", "TRACE", "--format", "perfetto"]),
    ("export prmon", "out.txt", &["export", "out.txt", "TRACE", "--format", "prmon"]),
    ("diff --waterfall", "out.svg", &["diff", "TRACE", "TRACE", "--waterfall", "out.svg"]),
    ("gate --junit", "out", &["gate", "--limit", LIMIT, "TRACE", "--junit", "out"]),
    ("gate --json", "out", &["gate", "--limit", LIMIT, "TRACE", "--json", "out"]),
    ("gate --markdown", "out", &["gate", "--limit", LIMIT, "TRACE", "--markdown", "out"]),
    ("import", "out", &["import", "strace", "../log", "-o", "out"]),
    ("record -p", "out", &["record", "-q", "--duration", "100ms", "-p", "SELF", "-o", "out"]),
];

/// A limit that holds.
const LIMIT: &str = "total_processes=|9999";

#[test]
fn no_output_that_is_named_goes_through_what_is_planted() {
    for (what, out, arguments) in NAMED {
        for planted in [
            "ln -s ../private/victim OUT",
            "ln -s ../private/new OUT",
            "mkfifo OUT; chmod 666 OUT",
            "echo mine > OUT; chmod 666 OUT",
        ] {
            let scene = Scene::new();
            fs::write(scene.at("log"), LOG).unwrap();
            scene.other(&planted.replace("OUT", out));
            let before = fs::symlink_metadata(scene.shared(out)).unwrap();
            let output = run(&scene, arguments);
            let what = format!("{what}: {planted}: {}", said(&output));
            assert!(!output.status.success(), "{what}");
            scene.assert_nothing_behind(&what);
            let after = fs::symlink_metadata(scene.shared(out)).unwrap();
            assert_eq!(
                (after.ino(), after.uid(), after.len()),
                (before.ino(), OTHER, before.len()),
                "{what}"
            );
            assert!(said(&output).contains("cannot write"), "{what}");
            assert_eq!(fs::read_dir(scene.at("shared")).unwrap().count(), 1, "{what}");
        }
        // Nobody who has an earlier file of that name open sees the new one, which has the mode that it should have.
        let scene = Scene::new();
        fs::write(scene.at("log"), LOG).unwrap();
        if what.contains("markdown") {
            continue;
        }
        fs::write(scene.shared(out), "").unwrap();
        fs::set_permissions(scene.shared(out), fs::Permissions::from_mode(0o666)).unwrap();
        let mut opened = fs::File::open(scene.shared(out)).unwrap();
        let output = run(&scene, arguments);
        assert!(output.status.success(), "{what}: {}", said(&output));
        let mut seen = Vec::new();
        opened.read_to_end(&mut seen).unwrap();
        assert_eq!(seen, b"", "{what}");
        let written = fs::metadata(scene.shared(out)).unwrap();
        let is_public =
            what.contains("gantt") || what.contains("waterfall") || what.contains("gate");
        let mode = if is_public { 0o644 } else { 0o600 };
        assert_eq!(written.mode() & 0o7777, mode, "{what}");
        assert!(written.len() > 0, "{what}");
    }
}

/// Commands that fill a directory, and names in it that can be known before.
const FILLED: [(&str, &[&str], &[&str]); 4] = [
    (
        "report --out",
        &["report", "TRACE", "--out", "."],
        &["report.txt", "index.md", "report.html", "findings.json"],
    ),
    ("export", &["export", ".", "TRACE"], &["processes.parquet"]),
    ("export csv", &["export", ".", "TRACE", "--format", "csv"], &["processes.csv"]),
    ("export prmon", &["export", ".", "TRACE", "--format", "prmon"], &["prmon.txt", "prmon.json"]),
];

#[test]
fn no_file_of_a_directory_goes_through_what_is_planted() {
    for (what, arguments, names) in FILLED {
        for name in names {
            for planted in
                ["ln -s ../private/victim NAME", "ln -s ../private/new NAME", "mkfifo NAME"]
            {
                let scene = Scene::new();
                scene.other(&planted.replace("NAME", name));
                let output = run(&scene, arguments);
                let what = format!("{what}: {planted} {name}: {}", said(&output));
                assert!(!output.status.success(), "{what}");
                scene.assert_nothing_behind(&what);
            }
        }
    }
    // Directories, and the names that files had before they were complete.
    for (what, arguments, planted) in [
        ("report --out", FILLED[0].1, "ln -s ../private tables"),
        ("report --out", FILLED[0].1, "ln -s ../private figures"),
    ] {
        let scene = Scene::new();
        scene.other(planted);
        let output = run(&scene, arguments);
        assert!(!output.status.success(), "{what}: {planted}");
        scene.assert_nothing_behind(planted);
    }
    let scene = Scene::new();
    scene.other(
        "for table in processes programs lookups; do ln -s ../private/victim .$table.parquet.part; \
         ln -s ../private/victim .$table.csv.part; done; ln -s ../private/victim .out.part",
    );
    for arguments in [FILLED[1].1, FILLED[2].1, NAMED[3].2] {
        let output = run(&scene, arguments);
        assert!(output.status.success(), "{}", said(&output));
        scene.assert_nothing_behind("parts");
    }
}

#[test]
fn a_lake_that_others_write_to_leads_nowhere() {
    let summarize = ["summarize", "TRACE", "-o", "lake"];
    // A writer.
    for planted in [
        "mkdir lake; ln -s ../../private lake/table=jobs",
        "ln -s ../private lake",
        "mkdir -p lake/table=jobs; ln -s ../../../private lake/table=jobs/DAY",
        "mkdir -p lake/table=jobs/DAY; ln -s ../../../../private/victim lake/table=jobs/DAY/JOB",
        "mkdir -p lake/table=jobs/DAY; ln -s ../../../../private/new lake/table=jobs/DAY/JOB",
        "mkdir -p lake/table=jobs/DAY; echo mine > lake/table=jobs/DAY/JOB",
    ] {
        let scene = Scene::new();
        // Where its files will be.
        let probe = Scene::new();
        assert!(run(&probe, &summarize).status.success());
        let day = fs::read_dir(probe.shared("lake/table=jobs")).unwrap().next().unwrap().unwrap();
        let job = fs::read_dir(day.path()).unwrap().next().unwrap().unwrap().file_name();
        let planted = planted
            .replace("DAY", day.file_name().to_str().unwrap())
            .replace("JOB", job.to_str().unwrap());
        scene.other(&planted);
        let output = run(&scene, &summarize);
        assert!(!output.status.success(), "{planted}: {}", said(&output));
        scene.assert_nothing_behind(&planted);
    }
}

/// A lake with two jobs in directories that all may write to, and the directory of one table.
fn lake(scene: &Scene) -> PathBuf {
    for job in ["1", "2"] {
        let label = format!("batch_id={job}");
        let output = run(scene, &["summarize", "TRACE", "-o", "lake", "--label", &label]);
        assert!(output.status.success(), "{}", said(&output));
    }
    let days = fs::read_dir(scene.shared("lake/table=jobs")).unwrap();
    let day = days.map(|it| it.unwrap().path()).next().unwrap();
    for place in [scene.shared("lake"), scene.shared("lake/table=jobs"), day.clone()] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
    }
    day
}

#[test]
fn a_compaction_follows_no_link_and_believes_no_journal_of_others() {
    let up = "../../../../private";
    for planted in [
        format!("ln -s {up}/new .compact.lock"),
        format!("ln -s {up}/victim .compact.lock"),
        "mkfifo .compact.lock".to_owned(),
        format!("ln -s {up}/victim .compact.journal"),
        format!("ln -s {up}/victim other.parquet"),
        "mkfifo other.parquet; chmod 666 other.parquet".to_owned(),
        // A journal that has all be removed in favour of a file of the other user.
        "for it in *.parquet; do echo $(stat -c %i-%Y-%y $it | sed 's/-[^.]*[.]/-/; s/ .*//') $it; done > list; \
         echo x > compact-0.parquet; (echo compact-0.parquet; cat list) > .compact.journal"
            .to_owned(),
    ] {
        let scene = Scene::new();
        let day = lake(&scene);
        let parquet = || {
            let names = fs::read_dir(&day).unwrap().map(|it| it.unwrap().file_name());
            let mut names: Vec<String> = names.map(|it| it.into_string().unwrap()).collect();
            names.retain(|name| name.ends_with(".parquet") && !name.starts_with("compact-"));
            names.sort();
            names
        };
        let mut shell = scene.shell(&planted);
        assert!(shell.current_dir(&day).status().unwrap().success(), "{planted}");
        let before = parquet();
        let output = run(&scene, &["compact", "lake"]);
        assert!(!output.status.success(), "{planted}: {}", said(&output));
        scene.assert_nothing_behind(&planted);
        assert_eq!(parquet(), before, "{planted}: {}", said(&output));
    }
    // Names of earlier versions that could be known before.
    let scene = Scene::new();
    let day = lake(&scene);
    let mut shell = scene.shell(&format!("ln -s {up}/victim .compact.journal.part"));
    assert!(shell.current_dir(&day).status().unwrap().success());
    let output = run(&scene, &["compact", "lake"]);
    assert!(output.status.success(), "{}", said(&output));
    scene.assert_nothing_behind("journal.part");
    // The name of the compacted file follows from the files, and so could be known, too.
    let made = fs::read_dir(&day).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let made: Vec<String> = made.filter(|name| name.starts_with("compact-")).collect();
    assert_eq!(made.len(), 1);
}

#[test]
fn a_directory_of_traces_of_jobs_is_not_where_a_link_of_others_leads() {
    let scene = Scene::new();
    scene.other("ln -s ../private jobs");
    let output = run(
        &scene,
        &[
            "record",
            "-a",
            "--per-cgroup=/proctrace-none-*",
            "--duration",
            "100ms",
            "-o",
            "jobs/traces",
        ],
    );
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("symbolic link of user 65534"), "{}", said(&output));
    scene.assert_nothing_behind("jobs");
}

#[test]
fn under_sudo_files_belong_to_who_asked_for_them() {
    let scene = Scene::new();
    scene.other("echo old > out; mkfifo fifo");
    let sudo = |arguments: &[&str]| {
        let mut command = proctrace();
        command.args(arguments).arg(trace()).env("SUDO_UID", "65534").env("SUDO_GID", "65534");
        command.current_dir(scene.at("shared"));
        limited(command)
    };
    let query = |out| ["query", "SELECT * FROM processes", "-o", out];
    let before = fs::metadata(scene.shared("out")).unwrap().ino();
    let output = sudo(&["query", "SELECT * FROM processes", "-o", "out"]);
    // The trace comes last.
    assert!(output.status.success(), "{}", said(&output));
    let file = fs::metadata(scene.shared("out")).unwrap();
    assert_ne!(file.ino(), before);
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o7777), (OTHER, OTHER, 0o600));
    // A pipe of this user is one that was asked for.
    let reader = {
        let fifo = scene.shared("fifo");
        std::thread::spawn(move || fs::read(fifo).unwrap())
    };
    assert!(sudo(&query("fifo")).status.success());
    assert!(!reader.join().unwrap().is_empty());
    let output = sudo(&["export", "--format", "csv", "tables"]);
    assert!(output.status.success(), "{}", said(&output));
    for name in ["tables", "tables/processes.csv"] {
        assert_eq!(fs::metadata(scene.shared(name)).unwrap().uid(), OTHER, "{name}");
    }
}

/// Whoever runs a gate under sudo uploads its recordings without it, whichever user the command was run as.
#[test]
fn kept_runs_belong_to_who_called_sudo() {
    let scene = Scene::new();
    for (user, directory) in
        [(None, "kept"), (Some("root"), "kept-root"), (Some("daemon"), "kept-daemon")]
    {
        let mut command = proctrace();
        command.args([
            "gate",
            "run",
            "--runs",
            "1",
            "--limit",
            "total_execs=|9",
            "--keep",
            directory,
        ]);
        command.args(user.into_iter().flat_map(|user| ["--user", user])).args(["--", "true"]);
        command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").current_dir(scene.at("shared"));
        let output = limited(command);
        assert!(output.status.success(), "{user:?}: {}", said(&output));
        for name in [directory.to_owned(), format!("{directory}/run-1.ptrace")] {
            let file = fs::metadata(scene.shared(&name)).unwrap();
            assert_eq!((file.uid(), file.gid()), (OTHER, OTHER), "{name}");
        }
        let trace = fs::metadata(scene.shared(&format!("{directory}/run-1.ptrace"))).unwrap();
        assert_eq!(trace.mode() & 0o777, 0o600);
    }
}

#[test]
fn the_summary_of_a_step_is_added_to_the_file_of_the_runner() {
    let scene = Scene::new();
    scene.other("printf before > summary");
    let gate = |names_it: bool| {
        let mut command = proctrace();
        command.args(["gate", "--limit", "total_processes=|9999", "--markdown", "summary"]);
        command.arg(trace()).current_dir(scene.at("shared")).env_remove("GITHUB_STEP_SUMMARY");
        if names_it {
            command.env("GITHUB_STEP_SUMMARY", "summary");
        }
        limited(command)
    };
    assert!(!gate(false).status.success());
    let output = gate(true);
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(scene.shared("summary")).unwrap();
    assert!(text.starts_with("before#") || text.starts_with("before\n"), "{text}");
    assert!(text.contains("total_processes") || text.len() > 20, "{text}");
    assert_eq!(fs::metadata(scene.shared("summary")).unwrap().uid(), OTHER);
    scene.other("rm summary; ln -s ../private/victim summary");
    assert!(!gate(true).status.success());
    scene.assert_nothing_behind("summary");
}

#[test]
fn what_an_ordinary_user_cannot_replace_is_told_before_the_command_runs() {
    let scene = Scene::new().sticky();
    let binary = binary(&scene);
    fs::write(scene.shared("out.ptrace"), PRECIOUS).unwrap();
    fs::set_permissions(scene.shared("out.ptrace"), fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = Command::new(&binary);
    command.args(["record", "--backend", "ptrace", "-o", "out.ptrace", "--", "touch", "it-ran"]);
    command.current_dir(scene.at("shared")).gid(OTHER).uid(OTHER);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("a file of user 0 has this name"), "{}", said(&output));
    assert!(!scene.shared("it-ran").exists());
    assert_eq!(fs::read_to_string(scene.shared("out.ptrace")).unwrap(), PRECIOUS);
    assert_eq!(fs::read_dir(scene.at("shared")).unwrap().count(), 1);
}

#[test]
fn what_the_caller_has_opened_is_written_to_as_it_is() {
    let scene = Scene::new();
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let out = scene.at("out");
        let script = format!(
            "echo before > {out}; {proctrace} query 'SELECT * FROM processes' {trace} -o {path} >> {out}",
            out = out.display(),
            proctrace = env!("CARGO_BIN_EXE_proctrace"),
            trace = trace().display(),
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).env_remove("LD_LIBRARY_PATH");
        let output = limited(shell);
        assert!(output.status.success(), "{path}: {}", said(&output));
        let text = fs::read_to_string(&out).unwrap();
        assert!(text.starts_with("before\n") && text.contains("program"), "{path}: {text}");
    }
}

/// A copy of the binary that the other user may run.
fn binary(scene: &Scene) -> PathBuf {
    let copy = scene.at("proctrace");
    assert!(
        Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_proctrace"))
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    copy
}

#[test]
fn an_ordinary_user_follows_own_links_and_not_those_of_others() {
    let scene = Scene::new().sticky();
    let binary = binary(&scene);
    fs::copy(trace(), scene.at("trace")).unwrap();
    fs::set_permissions(scene.at("trace"), fs::Permissions::from_mode(0o644)).unwrap();
    scene.other("mkdir own; echo mine > own/file; ln -s own/file link; ln -s own/new dangling");
    std::os::unix::fs::symlink("own/file", scene.shared("foreign")).unwrap();
    std::os::unix::fs::lchown(scene.shared("foreign"), Some(OTHER - 1), None).unwrap();
    let query = |out: &str| {
        let mut command = Command::new(&binary);
        command.args(["query", "SELECT * FROM processes", "-o", out]).arg(scene.at("trace"));
        command.current_dir(scene.at("shared")).gid(OTHER).uid(OTHER).output().unwrap()
    };
    for (link, file) in [("link", "own/file"), ("dangling", "own/new")] {
        let output = query(link);
        assert!(output.status.success(), "{link}: {}", said(&output));
        assert!(scene.shared(link).is_symlink());
        assert!(fs::read_to_string(scene.shared(file)).unwrap().contains("program"), "{link}");
    }
    fs::write(scene.shared("own/file"), "mine").unwrap();
    let output = query("foreign");
    assert!(!output.status.success());
    assert!(said(&output).contains("symbolic link of user 65533"), "{}", said(&output));
    assert_eq!(fs::read(scene.shared("own/file")).unwrap(), b"mine");
    chown(scene.shared("own/file"), Some(0), Some(0)).unwrap();
}
