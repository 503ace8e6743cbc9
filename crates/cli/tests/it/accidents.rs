//! Failures during and after recording: a killed recorder, a full disk, a damaged file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::stage::Stage;
use crate::common::{Recorder, fixture, header, proctrace, u64_of};

/// Polls until `done`, or fails after a time that no healthy run needs.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_reader_that_leaves_a_recording_is_an_error() {
    let recorder = Recorder::new();
    let fifo = recorder.trace();
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut reader = Command::new("head");
    let mut reader = reader.args(["-c", "1"]).arg(&fifo).stdout(Stdio::null()).spawn().unwrap();
    // More than the reader takes, and later than that.
    let recorded =
        recorder.run(["sh", "-c", "for i in 1 2 3; do sleep 0.7; /bin/true; done; exit 3"]);
    reader.wait().unwrap();
    assert_eq!(recorded.code(), 125, "{}", recorded.stderr());
    assert!(recorded.stderr().contains("Broken pipe"), "{}", recorded.stderr());
}

#[test]
fn a_killed_recorder_leaves_a_readable_trace_and_an_unharmed_command() {
    let mut recorder = Recorder::new();
    let finished = recorder.directory.path().join("finished");
    // It kills its own recorder halfway, once the trace has a program that ran after the first 800 processes: what was
    // drained is written every second.
    let script = format!(
        "{spawn} 800 /bin/true; /bin/echo 800 have ended; \
         until {proctrace} dump --kind exec {trace} 2>&1 | grep -q '\"/bin/echo\",\"800\"'; do sleep 0.1; done; \
         kill -9 $PPID; {spawn} 200 /bin/true && echo yes > {finished}",
        spawn = fixture("spawn").display(),
        proctrace = env!("CARGO_BIN_EXE_proctrace"),
        trace = recorder.trace().display(),
        finished = finished.display(),
    );
    recorder.command.args(["--", "sh", "-c", &script]).stderr(Stdio::null());
    let status = recorder.command.status().unwrap();
    assert_eq!(status.code(), None, "killed");
    wait_until("the command's end", || finished.exists());

    let dump = proctrace().arg("dump").arg(recorder.trace()).output().unwrap();
    assert!(dump.status.success());
    let warnings = String::from_utf8(dump.stderr).unwrap();
    assert!(warnings.contains("the trace is incomplete"), "{warnings}");
    let exits = String::from_utf8(dump.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.contains(r#""kind":"exit""#))
        .count();
    // Everything up to the last flush, in order of time: the 800 processes, and the program that started them.
    assert!(exits >= 801, "{exits}");
    let report = proctrace().arg("report").arg(recorder.trace()).output().unwrap();
    assert!(report.status.success());
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("INCOMPLETE"), "{text}");
    // None of our BPF programs remains in the kernel.
    wait_until("unloading", || {
        let listed = Command::new("bpftool")
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .args(["prog", "show", "name", "on_newtask"])
            .output()
            .unwrap();
        // other tests may be recording concurrently
        let ours = String::from_utf8_lossy(&listed.stdout).lines().count();
        ours == 0 || recording_elsewhere()
    });
}

fn recording_elsewhere() -> bool {
    Command::new("pgrep")
        .args(["-x", "proctrace"])
        .output()
        .is_ok_and(|found| found.status.success())
}

/// Runs a script on an empty file system of this size, which is its `$1`; its `$0` is proctrace, and `$2` a trace. Returns what it
/// prints, after checking that it was said why; what is on the file system at the end is then in `kept`.
fn on_full_disk(size: &str, script: &str, kept: &Path) -> String {
    let trace = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/alice-o2-before.ptrace");
    let directory = tempfile::tempdir().unwrap();
    let small = directory.path().join("small");
    fs::create_dir(&small).unwrap();
    // In a mount namespace of its own: nothing is left of it.
    let script =
        format!("mount -t tmpfs -o size={size} tmpfs \"$1\" && {script}; cp -r \"$1\" \"$3\"");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_proctrace")])
        .arg(&small)
        .arg(trace)
        .arg(kept)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot write") && !stderr.contains("panicked"), "{size}: {stderr}");
    assert!(stderr.contains("No space left on device"), "{size}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `report`, `report --json` and `dump` on a file; returns their exit codes and messages,
/// after checking that none of them panicked.
fn try_all(trace: &Path) -> Vec<(Option<i32>, String)> {
    let commands: [&[&str]; 4] =
        [&["report"], &["report", "--json"], &["dump"], &["dump", "--header"]];
    commands
        .iter()
        .map(|arguments| {
            let output = proctrace().args(*arguments).arg(trace).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
            (output.status.code(), stderr)
        })
        .collect()
}

#[test]
fn what_is_no_trace_is_refused_by_every_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ptrace");
    let expect = |contents: &[u8], message: &str| {
        fs::write(&path, contents).unwrap();
        for (code, stderr) in try_all(&path) {
            assert_eq!(code, Some(1), "{stderr}");
            assert!(stderr.contains(message), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        }
    };
    expect(b"", "it is empty");
    expect(b"hello", "not a proctrace trace");
    expect(b"PERFILE2........", "it is perf data");
    expect(&[0; 4096], "not a proctrace trace");
    for (code, stderr) in try_all(directory.path()) {
        assert_eq!(code, Some(1));
        assert!(stderr.contains("cannot read"), "{stderr}");
    }
    for (code, stderr) in try_all(Path::new("/no/such/trace")) {
        assert_eq!(code, Some(1));
        assert!(stderr.contains("No such file"), "{stderr}");
    }
}

#[test]
fn a_damaged_trace_gives_what_can_be_saved_and_a_warning() {
    let recorded = Recorder::new().fixture("mixed", &["60"]);
    let whole = fs::read(recorded.trace()).unwrap();
    let path = recorded.directory.path().join("damaged.ptrace");
    let first_block = whole.windows(4).position(|bytes| bytes == b"PTBK").unwrap();

    // Truncated anywhere after the header, it is readable and reported as incomplete.
    for part in 0..8 {
        let cut = first_block + (whole.len() - first_block) * part / 8;
        fs::write(&path, &whole[..cut]).unwrap();
        let said = try_all(&path);
        for (code, stderr) in &said {
            assert_eq!(*code, Some(0), "cut at {cut}: {stderr}");
        }
        assert!(said[2].1.contains("the trace is incomplete"), "cut at {cut}: {}", said[2].1);
    }
    // A flipped bit damages one block, and is reported.
    for part in 0..8 {
        let at = first_block + (whole.len() - first_block) * part / 8 + 20;
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(&path, &bytes).unwrap();
        let said = try_all(&path);
        assert!(said.iter().all(|(code, _)| *code == Some(0)), "{said:?}");
        let warned = &said[2].1;
        assert!(warned.contains("damaged") || warned.contains("incomplete"), "{warned}");
    }
    // Damage in the header is not recoverable.
    let mut bytes = whole.clone();
    bytes[40] ^= 4;
    fs::write(&path, &bytes).unwrap();
    assert!(
        try_all(&path)
            .iter()
            .all(|(code, stderr)| { *code == Some(1) && stderr.contains("its checksum is wrong") })
    );
    // From a later version.
    let mut bytes = whole;
    bytes[8] = 99;
    fs::write(&path, &bytes).unwrap();
    assert!(
        try_all(&path)
            .iter()
            .all(|(code, stderr)| { *code == Some(1) && stderr.contains("use a newer version") })
    );
}

#[test]
fn a_storm_behind_a_stopped_recorder_is_counted() {
    // The payload stops its own recorder, so records that do not fit the smallest rings are lost;
    // they must be counted, and the trace must otherwise be intact.
    let script =
        format!("kill -STOP $PPID; {} 4000; kill -CONT $PPID", fixture("fork_only").display());
    let recorded = Recorder::new().option(["--ring-size", "64KiB"]).run(["sh", "-c", &script]);
    assert_eq!(recorded.code(), 0);
    let trailer = header(&recorded.trace())["trailer"].clone();
    let lost = |kind: &str| -> u64 {
        let losses = trailer["losses"].as_array().unwrap().iter();
        losses.filter(|loss| loss["kind"] == kind).map(|loss| u64_of(&loss["count"])).sum()
    };
    let kept = |kind: &str| trailer["records"][kind].as_u64().unwrap_or(0);
    assert!(lost("fork") > 0 && lost("exit") > 0, "{trailer}");
    // 4,000 children, the fixture itself and one process for each kill that is not a shell built-in
    assert!(kept("fork") + lost("fork") >= 4_001);
    assert_eq!(kept("fork") + lost("fork") + 1, kept("exit") + lost("exit"));
    assert!(recorded.stderr().contains("lost"), "{}", recorded.stderr());
}

/// The recorder has other children than the command: by ptrace, the one that traces. Its status was taken for that of the job,
/// which did not run.
#[test]
fn a_job_whose_recording_cannot_begin_runs_alone() {
    for backend in ["auto", "ptrace"] {
        let directory = tempfile::tempdir().unwrap();
        let children =
            "read -r children < /proc/$$/task/$$/children; echo \"ran [$children]\"; exit 3";
        let output = Command::new(env!("CARGO_BIN_EXE_proctrace"))
            .args(["record", "--job-first", "--backend", backend, "--output"])
            .arg(directory.path())
            .args(["--", "sh", "-c", children])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("this job is not recorded, and runs all the same"), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ran []\n", "{backend}: {said}");
        assert_eq!(output.status.code(), Some(3), "{backend}: {said}");
    }
}

mod root {
    use super::*;

    #[test]
    fn a_full_disk_leaves_no_half_page() {
        for size in ["4k", "64k", "256k"] {
            let directory = tempfile::tempdir().unwrap();
            let kept = directory.path().join("kept");
            let script = "echo old > \"$1/there.html\"; for page in new.html there.html; do \
                          \"$0\" report \"$2\" --html \"$1/$page\"; echo \"exit $?\"; done";
            // Of the new page nothing is there, and the old one is as it was.
            assert_eq!(on_full_disk(size, script, &kept), "exit 1\nexit 1\n", "{size}");
            assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
            assert_eq!(fs::read(kept.join("there.html")).unwrap(), b"old\n");
        }
    }

    #[test]
    fn a_full_disk_leaves_no_half_table() {
        // A lake of one job, and tables of one file each.
        for (command, sizes) in [
            ("summarize \"$2\" --output \"$1/there\"", &["4k", "8k", "12k"][..]),
            ("export --format parquet \"$1/there\" \"$2\"", &["4k", "32k", "64k"]),
        ] {
            for size in sizes {
                let directory = tempfile::tempdir().unwrap();
                let kept = directory.path().join("kept");
                let script = format!("\"$0\" {command}; echo \"exit $?\"");
                assert_eq!(on_full_disk(size, &script, &kept), "exit 1\n", "{command} {size}");
                let mut places = vec![kept];
                while let Some(place) = places.pop() {
                    if place.is_dir() {
                        places.extend(fs::read_dir(&place).unwrap().map(|it| it.unwrap().path()));
                        continue;
                    }
                    let shown = place.display();
                    assert_eq!(place.extension().unwrap(), "parquet", "{command} {size} {shown}");
                    assert!(
                        fs::read(&place).unwrap().ends_with(b"PAR1"),
                        "{command} {size} {shown}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_full_disk_stops_the_recording_and_not_the_command() {
        let not_the_command = "the recording failed, not the command, which exited with 0";
        let not_the_job = "the recording failed, not the job, which exited with 7";
        let both = "both failed: the command, which exited with 7, and its recording";
        for (size, option, code, status, says) in [
            // Little more than the header.
            ("4k", "", 0, 125, not_the_command),
            ("8k", "", 7, 125, both),
            // As the wrappers of batch systems have it.
            ("32k", "--job-first", 7, 7, not_the_job),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let (small, finished) =
                (directory.path().join("small"), directory.path().join("finished"));
            fs::create_dir(&small).unwrap();
            // A small file system, visible only to this shell and its children.
            let script = format!(
                "mount -t tmpfs -o size={size} tmpfs {small} && \
                 {proctrace} record {option} --no-env -o {small}/full.ptrace -- \
                 sh -c '{misses} 3000000; echo yes > {finished}; exit {code}'; status=$?; \
                 {proctrace} dump {small}/full.ptrace > {finished}.read && exit $status",
                small = small.display(),
                finished = finished.display(),
                proctrace = env!("CARGO_BIN_EXE_proctrace"),
                misses = fixture("misses").display(),
            );
            let shell = ["--mount", "sh", "-c", &script];
            let output = Command::new("unshare").args(shell).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(status), "{stderr}");
            assert!(finished.exists(), "the command ran to its end");
            assert!(stderr.contains("No space left on device"), "{stderr}");
            let continued = format!("the command continued and exited with {code}");
            assert!(stderr.contains(&continued) && stderr.contains(says), "{stderr}");
            assert!(stderr.contains("the trace is incomplete"), "{stderr}");
            assert!(!stderr.contains("panicked"), "{stderr}");
        }
    }

    // It expects that a link is refused, which only root does.
    #[test]
    fn an_output_that_cannot_be_written_is_told_before_the_command_runs() {
        let directory = tempfile::tempdir().unwrap();
        let touched = directory.path().join("touched");
        for output in ["/no/such/directory/x.ptrace", "/", "/proc/version"] {
            let run = proctrace()
                .args(["record", "--output", output, "--", "touch"])
                .arg(&touched)
                .output()
                .unwrap();
            let stderr = String::from_utf8(run.stderr).unwrap();
            assert_eq!(run.status.code(), Some(125), "{stderr}");
            assert!(stderr.contains(&format!("cannot write {output}")), "{stderr}");
            assert!(!touched.exists());
        }
        // Root must not follow a link.
        let (link, target) = (directory.path().join("link"), directory.path().join("target"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let run = proctrace()
            .args(["record", "--output"])
            .arg(&link)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(125));
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }

    /// A user, or a container, that has as many processes as it may.
    #[test]
    fn where_no_thread_can_be_started_all_is_the_same() {
        let stage = Stage::new();
        let (log, trace) = (stage.path("job.log"), stage.path("job.ptrace"));
        fs::write(&log, log_of_processes(40_000)).unwrap();
        let imported = proctrace().args(["import", "strace", "-o"]).args([&trace, &log]).output();
        assert!(imported.unwrap().status.success());
        fs::set_permissions(&trace, fs::Permissions::from_mode(0o644)).unwrap();
        let program = stage.path("proctrace");
        let limited = |threads: usize, arguments: &[&str]| {
            let mut prlimit = stage.as_user("prlimit");
            prlimit.arg(format!("--nproc={threads}")).arg(&program).args(arguments).arg(&trace);
            prlimit.output().unwrap()
        };
        let alone = |arguments: &[&str]| limited(1, arguments);
        for arguments in [
            &["check"][..],
            &["report", "--all"],
            &["report", "--json"],
            &["advise", "--json"],
            &["metrics"],
        ] {
            let (alone, usual) =
                (alone(arguments), proctrace().args(arguments).arg(&trace).output().unwrap());
            assert!(usual.status.success() && usual.stdout.len() > 200, "{arguments:?}: {usual:?}");
            assert_eq!(alone, usual, "{arguments:?}");
        }
        // The engine of tables must have threads.
        for arguments in [&["query", "SELECT 1 FROM processes"][..], &["export", "all.parquet"]] {
            let alone = alone(arguments);
            let said = String::from_utf8(alone.stderr).unwrap();
            assert!(said.contains("cannot start a thread"), "{arguments:?}: {said}");
            assert!(!said.contains("panicked") && alone.status.code() != Some(101), "{said}");
        }
        let cores = std::thread::available_parallelism().unwrap().get();
        for threads in 2..cores + 6 {
            let some = limited(threads, &["query", "SELECT 1 FROM processes"]);
            let said = String::from_utf8(some.stderr).unwrap();
            assert!(some.status.success() || said.contains("cannot start a thread"), "{said}");
        }
    }
}

/// What strace says of this many processes, each of which looks for a file in vain.
fn log_of_processes(processes: u32) -> String {
    let mut log =
        String::from("1 1700000000.000000 execve(\"/bin/sh\", [\"sh\"], 0x1 /* 0 vars */) = 0\n");
    for pid in 2..processes + 2 {
        let at = f64::from(pid) * 0.001 + 1.7e9;
        log += &format!("1 {at:.6} clone(child_stack=NULL, flags=SIGCHLD) = {pid}\n");
        log += &format!(
            "{pid} {at:.6} open(\"/no/{}\", O_RDONLY) = -1 ENOENT (No such file or directory)\n",
            pid % 7
        );
        log += &format!("{pid} {:.6} +++ exited with 0 +++\n", at + 0.0005);
    }
    log
}
