//! Imported logs of strace and prmon: hand-made ones of old versions, and real ones of each combination of
//! options, against what the program declares.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{Events, fixture, header, proctrace, report, text, u64_of};
use serde_json::Value;
use tempfile::TempDir;

fn log(name: &str) -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/strace")
        .join(name)
}

/// Imports logs; returns the trace and what was said on stderr.
fn import(directory: &TempDir, logs: &[PathBuf]) -> (PathBuf, String) {
    let trace = directory.path().join("imported.ptrace");
    let _ = fs::remove_file(&trace);
    let output =
        proctrace().args(["import", "strace", "-o"]).arg(&trace).args(logs).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (trace, said)
}

fn refused(arguments: &[&str], input: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut child = proctrace()
        .args(arguments)
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
    String::from_utf8(output.stderr).unwrap()
}

fn check(trace: &Path) -> Output {
    proctrace().arg("check").arg(trace).output().unwrap()
}

/// Counts of the contents of a log.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    processes: usize,
    threads: usize,
    execs: usize,
    execs_failed: usize,
    exits: usize,
    lookups_failed: usize,
    opened: usize,
    renames: usize,
}

impl Counts {
    fn of(events: &Events) -> Self {
        Self {
            processes: events.count("attach") + events.forks(false).len(),
            threads: events.forks(true).len(),
            execs: events.count("exec"),
            execs_failed: events.count("exec_failed"),
            exits: events.count("exit"),
            lookups_failed: events.count("lookup_failed"),
            opened: events.count("opened"),
            renames: events.count("rename"),
        }
    }
}

/// A log, its counts in the order of `Counts`, lost records, and lines that are not understood.
const EXPECTED: &[(&str, [usize; 8], u64, &str)] = &[
    ("tt-stderr-4.24.log", [3, 0, 3, 1, 3, 2, 1, 0], 0, "1 line was not understood"),
    ("thread-exec-4.26.log", [1, 2, 2, 0, 3, 1, 0, 1], 0, ""),
    ("relative-T-5.5.log", [4, 0, 1, 0, 4, 3, 0, 0], 0, ""),
    ("cut-6.1.log", [3, 0, 0, 0, 1, 3, 0, 0], 1, "3 lines were not understood"),
    ("qq-6.1.log", [4, 0, 1, 0, 4, 0, 0, 0], 0, ""),
    ("pid-reuse-6.8.log", [4, 1, 3, 0, 4, 1, 0, 0], 1, ""),
    ("y-v-xx-6.17.log", [2, 0, 1, 0, 2, 3, 2, 0], 1, "1 line was not understood"),
    ("misread-exec-6.8.log", [1, 2, 3, 0, 3, 1, 0, 0], 0, ""),
    ("noise-tt-6.1.log", [2, 0, 2, 0, 2, 1, 0, 0], 0, "6 lines were not understood"),
    ("attached-6.1.log", [4, 0, 1, 0, 4, 0, 0, 0], 0, ""),
    ("names-verbose-7.2.log", [4, 0, 3, 0, 4, 4, 7, 0], 0, ""),
    ("color-C-7.2.log", [4, 0, 3, 0, 4, 4, 7, 0], 0, ""),
];

#[test]
fn odd_logs_hold_what_they_hold() {
    let directory = tempfile::tempdir().unwrap();
    for (name, counts, lost, doubted) in EXPECTED {
        let (trace, said) = import(&directory, &[log(name)]);
        let [processes, threads, execs, execs_failed, exits, lookups_failed, opened, renames] =
            *counts;
        let expected = Counts {
            processes,
            threads,
            execs,
            execs_failed,
            exits,
            lookups_failed,
            opened,
            renames,
        };
        assert_eq!(Counts::of(&Events::of(&trace)), expected, "{name}");
        assert!(said.contains(doubted), "{name}: {said}");
        assert_eq!(said.contains("not understood"), !doubted.is_empty(), "{name}: {said}");
        let health = &report(&trace)["health"];
        assert_eq!(u64_of(&health["lost"]), *lost, "{name}");
        for law in health["laws"].as_array().unwrap() {
            assert_ne!(law["holds"], false, "{name}: {law}");
        }
        let code = if *lost == 0 { 0 } else { 3 };
        assert_eq!(check(&trace).status.code(), Some(code), "{name}");
    }
}

/// Each log in detail, where numbers do not say enough.
#[test]
fn odd_logs_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let of = |name| {
        let (trace, _) = import(&directory, &[log(name)]);
        (Events::of(&trace), report(&trace), header(&trace))
    };
    let (events, found, _) = of("tt-stderr-4.24.log");
    let wall_ms = u64_of(&found["run"]["wall_ns"]) / 1_000_000;
    assert_eq!(wall_ms, 303, "across midnight");
    assert_eq!(events.root()["pid"], 4710);
    assert_eq!(found["run"]["started_unix_ns"], Value::Null);

    let (events, _, head) = of("thread-exec-4.26.log");
    let execs: Vec<&Value> = events.kind("exec").collect();
    let argv = serde_json::json!(["true", "with \"quotes\"", "tab\tandé\u{1}2"]);
    assert_eq!((&execs[1]["argv"], &execs[1]["old_tid"]), (&argv, &Value::from(101)));
    assert_eq!(events.kind("exit").filter(|exit| exit["core"] == true).count(), 1);
    assert_eq!(events.kind("rename").next().unwrap()["tid"], 102);
    assert_eq!(u64_of(&head["header"]["started_unix_ns"]), 1_600_000_000_000_000_000);

    let (events, _, head) = of("relative-T-5.5.log");
    let mut forks: Vec<_> = events
        .forks(false)
        .iter()
        .map(|it| (u64_of(&it["pid"]), u64_of(&it["child_pid"])))
        .collect();
    forks.sort_unstable();
    assert_eq!(forks, [(200, 201), (200, 202), (201, 203)]);
    assert_eq!(events.kind("exec").next().unwrap()["argv_truncated"], true);
    assert!(head["header"]["knowledge"]["argv"]["estimate"].is_object());
    let errors: Vec<u64> = events.kind("lookup_failed").map(|it| u64_of(&it["errno"])).collect();
    assert_eq!(errors, [2, 22, 512]);

    let (events, ..) = of("qq-6.1.log");
    let codes: Vec<(i64, usize)> = events.codes().into_iter().collect();
    assert_eq!(codes, [(0, 1), (7, 1), (8, 1), (9, 1)]);

    let (events, _, head) = of("y-v-xx-6.17.log");
    let exec = events.kind("exec").next().unwrap();
    assert_eq!(exec["argv"], serde_json::json!(["env", "caf\\xe9"]));
    assert_eq!(exec["env"], serde_json::json!({ "PATH": "/bin" }));
    let opened: Vec<&str> = events.kind("opened").map(|open| text(&open["path"])).collect();
    assert_eq!(opened, ["/home/a/lib", "/dev/null"]);
    assert_eq!(events.forks(false)[0]["child_pid"], 601);
    assert_eq!(head["header"]["knowledge"]["opened_files"], "exact");
    let missed: Vec<&str> = events.kind("lookup_failed").map(|it| text(&it["path"])).collect();
    assert_eq!(missed, ["/home/a/lib/x", "/home/a/y", "/home/a/z"]);

    let (events, found, head) = of("misread-exec-6.8.log");
    let paths: Vec<&str> = events.kind("exec").map(|it| text(&it["path"])).collect();
    assert_eq!(paths, ["/usr/bin/python3", "/usr/bin/env", "/usr/bin/id"]);
    assert_eq!(head["header"]["cwd"], "/home/a");
    assert_eq!(
        (&found["summary"]["processes"], &found["summary"]["threads"]),
        (&1.into(), &2.into())
    );

    let (_, found, head) = of("noise-tt-6.1.log");
    assert_eq!(u64_of(&found["run"]["wall_ns"]) / 1_000_000, 17);
    assert_eq!(head["trailer"]["losses"], serde_json::json!([]));

    let (_, found, _) = of("attached-6.1.log");
    assert_eq!(
        (&found["summary"]["processes"], &found["summary"]["threads"]),
        (&2.into(), &2.into())
    );

    for name in ["names-verbose-7.2.log", "color-C-7.2.log"] {
        let (events, _, head) = of(name);
        let argv: Vec<&Value> = events.kind("exec").map(|it| &it["argv"]).collect();
        assert_eq!(argv[0], &serde_json::json!(["/bin/sh", "j.sh"]), "{name}");
        assert_eq!(argv[2], &serde_json::json!(["cat", "/nonexistent-7.2"]), "{name}");
        assert_eq!(events.codes().into_iter().collect::<Vec<_>>(), [(0, 1), (1, 1), (3, 2)]);
        assert_eq!(head["header"]["cwd"], "/home/a", "{name}");
    }
}

/// Counts follow from a log without times, and every time is said not to be known.
#[test]
fn a_log_without_times_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let timed = import(&directory, &[log("qq-6.1.log")]).0;
    let text = fs::read_to_string(log("qq-6.1.log")).unwrap();
    let stamp = |line: &str| {
        let word = line.split(' ').find(|word| word.contains('.') && word.len() > 12);
        word.map(|word| format!("{word} ")).unwrap()
    };
    let lines = text.lines().map(|line| line.replacen(&stamp(line), "", 1));
    let path = directory.path().join("without.log");
    fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let (trace, said) = import(&directory, &[path]);
    assert!(said.contains("no times: strace ran without -ttt"), "{said}");
    assert_eq!(Counts::of(&Events::of(&trace)), Counts::of(&Events::of(&timed)));
    let found = report(&trace);
    let null = &Value::Null;
    assert_eq!((&found["run"]["wall_ns"], &found["summary"]["median_life_ns"]), (null, null));
    assert_eq!(found["summary"]["processes"], report(&timed)["summary"]["processes"]);
    let known = found["known"].as_array().unwrap();
    let times = known.iter().find(|known| known["quantity"] == "times").unwrap();
    assert_eq!(times["state"], "absent");
    for (command, is_refused) in [
        (&["metrics"][..], false),
        (&["query", "SELECT count(*) FROM processes WHERE start_ns IS NULL"], false),
        (&["report", "--section", "concurrency"], false),
        (&["report", "--html", "page.html"], true),
        (&["report", "--gantt", "chart.svg"], true),
        (&["advise"], true),
        (&["tree"], true),
    ] {
        let mut asked = proctrace();
        let output = asked.args(command).arg(&trace).current_dir(directory.path());
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), !is_refused, "{command:?}: {said}");
        assert_eq!(said.contains("has no times"), is_refused, "{command:?}: {said}");
    }
}

/// Rounds of `mixed`, which declares in its source what it does.
const ROUNDS: usize = 40;

/// Runs `mixed` under strace; returns its logs.
fn strace(directory: &Path, options: &[&str], output: &str) -> Vec<PathBuf> {
    let mut command = Command::new("strace");
    command.args(options).env_remove("LD_LIBRARY_PATH").current_dir(directory);
    if output.is_empty() {
        command.stderr(File::create(directory.join("stderr")).unwrap());
    } else {
        command.args(["-o", output]);
    }
    let status = command.arg(fixture("mixed")).arg(ROUNDS.to_string()).status();
    assert!(status.expect("strace is here: cargo xtask setup").success());
    let mut logs: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_none_or(|extension| extension != "ptrace"));
    logs.sort();
    logs
}

#[test]
fn real_logs_of_all_options_hold_what_the_program_declares() {
    for (options, output) in [
        (&["-f", "-ttt"][..], "log"),
        (&["-f", "-tt", "-T", "-y", "-v", "-s", "4096"], "log"),
        (&["-f", "-t", "-yy", "-xx"], "log"),
        (&["-f", "-r", "-T", "-x"], "log"),
        (&["-ff", "-ttt"], "log"),
        (&["-ff", "-tt", "-v", "-s", "100"], "log"),
        (&["-f", "-ttt"], ""),
        (&["-f", "-q", "-tt", "-T"], ""),
        (&["-f", "-qq", "-ttt"], "log"),
        (&["-f", "-ttt", "-e", "trace=%process,%file,prctl,chdir"], "log"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let logs = strace(directory.path(), options, output);
        let (trace, said) = import(&directory, &logs);
        let what = format!("{options:?} {output}");
        assert!(!said.contains("not understood"), "{what}: {said}");
        let events = Events::of(&trace);
        let searches = ROUNDS.div_ceil(4);
        let processes = 1 + 2 * ROUNDS + searches;
        assert_eq!(events.forks(false).len(), processes - 1, "{what}");
        assert_eq!(events.forks(true).len(), ROUNDS, "{what}");
        assert_eq!(events.count("exit"), processes + ROUNDS, "{what}");
        assert_eq!(events.count("exec"), 1 + ROUNDS + searches, "{what}");
        assert_eq!(events.count("exec_failed"), 2 * searches, "{what}");
        let killed = events.kind("exit").filter(|exit| exit["process"] == true);
        let killed = killed.filter(|exit| exit["signal"] == 15).count();
        assert_eq!(killed, ROUNDS.div_ceil(10), "{what}");
        let own = |event: &&Value| text(&event["path"]).starts_with("/missing/");
        let missed = events.kind("lookup_failed").filter(own).count();
        assert!(missed >= 3 * ROUNDS, "{what}: {missed}");
        let output = check(&trace);
        let verdict = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{what}: {verdict}");
        unknown_is_null(&trace);
    }
}

/// Asserts that no figure which strace does not know is a number.
fn unknown_is_null(trace: &Path) {
    let found = report(trace);
    for key in
        ["cpu_ns", "user_ns", "system_ns", "waited_cpu_ns", "unwaited_cpu_ns", "maxrss_bytes"]
    {
        assert_eq!(found["summary"][key], Value::Null, "{key}");
    }
    for key in ["host", "kernel", "cores"] {
        assert_eq!(found["run"][key], Value::Null, "{key}");
    }
    assert_eq!(found["run"]["outcome"]["code"], 0);
    for exit in Events::of(trace).kind("exit") {
        for key in ["run_ns", "user_ns", "nvcsw", "minflt", "maxrss_bytes", "rchar", "run_delay_ns"]
        {
            assert_eq!(exit[key], Value::Null, "{key}");
        }
    }
}

#[test]
fn every_command_reads_an_imported_trace() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, _) = import(&directory, &[log("tt-stderr-4.24.log")]);
    let chart = directory.path().join("chart.svg");
    let page = directory.path().join("page.html");
    let tables = directory.path().join("tables");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let trace_name = path(&trace);
    for arguments in [
        &["report", &trace_name][..],
        &["report", "--all", &trace_name],
        &["report", "--gantt", &path(&chart), &trace_name],
        &["report", "--html", &path(&page), &trace_name],
        &["advise", &trace_name],
        &["libs", &trace_name],
        &["diff", &trace_name, &trace_name],
        &["metrics", &trace_name],
        &["query", "SELECT * FROM processes", &trace_name],
        &["export", &path(&tables), &trace_name],
    ] {
        let output = proctrace().args(arguments).env("COLUMNS", "80").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
    let metrics = proctrace().args(["metrics", &trace_name]).output().unwrap();
    let metrics = String::from_utf8(metrics.stdout).unwrap();
    assert!(metrics.contains("total_processes") && !metrics.contains("total_cpu_seconds{"));
}

#[test]
fn what_is_not_a_log_is_refused() {
    for (input, wanted) in [
        (&b""[..], "- is not a log of strace"),
        (b"hello\nworld\n\xff\xfe\n", "- is not a log of strace"),
        (b"7 1700000000.1 execve(0x7ffc, 0x7ffd, 0x7ffe) = 0\n", "-e raw="),
        (b"7 1700000000.1 fork() = 8\n7 1700000000.1 clone3(0x7ffc, 0x58) = 0x9\n", "line 2"),
    ] {
        let said = refused(&["import", "strace", "-"], input);
        assert!(said.contains(wanted), "{said}");
        assert!(said.lines().all(|line| line.len() <= 80), "{said}");
    }
    let said = refused(&["import", "strace", "missing.log"], b"");
    assert!(said.contains("cannot read missing.log: No such file"), "{said}");
    let said = refused(&["import", "prmon", "-"], b"hello\n");
    assert!(said.contains("- is not a log of prmon"), "{said}");
}

#[test]
fn lines_that_are_not_understood_are_named_with_their_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.log");
    let mut bad = String::from("7 1700000000.1 execve(\"/x\", [\"x\"], 0x7f /* 0 vars */) = 0\n");
    for at in 0..7 {
        bad.push_str(&format!("7 1700000000.2 \x1b]31;{at}\n"));
    }
    bad.push_str("7 1700000000.3 execve(\"/y\", [\"y\"], 0x7\n7 1700000000.4 pause() = 0\n");
    fs::write(&path, bad).unwrap();
    let (trace, said) = import(&directory, &[path]);
    assert!(said.contains("8 lines were not understood; the first:"), "{said}");
    assert!(said.contains("bad.log:2:") && said.contains("bad.log:6:") && !said.contains(":7:"));
    assert!(!said.contains('\x1b'), "{said}");
    let losses = &report(&trace)["health"]["losses"];
    assert_eq!((&losses[0]["reason"], &losses[0]["kind"]), (&"unreadable".into(), &"exec".into()));
    assert_eq!((losses.as_array().unwrap().len(), &losses[0]["count"]), (1, &1.into()));
}

#[test]
fn prmon_is_one_process_with_memory() {
    let directory = tempfile::tempdir().unwrap();
    let rows = directory.path().join("prmon.txt");
    let text = "Time\twtime\tpss\trss\tswap\trchar\tread_bytes\twchar\twrite_bytes\tstime\tutime\tnprocs\n\
                1700000010\t0\t100\t200\t0\t5\t6\t7\t8\t0\t0\t1\n\
                1700000020\t10\t900\t1000\t0\t50\t60\t70\t80\t2\t7\t3\n\
                1700000030\t20\t400\t500\t0\t500\t600\t700\t800\t3\t11\t2\n";
    fs::write(&rows, text).unwrap();
    let trace = directory.path().join("prmon.ptrace");
    let output =
        proctrace().args(["import", "prmon", "-o"]).arg(&trace).arg(&rows).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events = Events::of(&trace);
    let pss: Vec<u64> = events.kind("memory").map(|it| u64_of(&it["pss_bytes"]) >> 10).collect();
    assert_eq!(pss, [100, 900, 400]);
    assert!(events.kind("memory").all(|memory| memory["uss_bytes"] == Value::Null));
    let cpu: Vec<u64> =
        events.kind("sample").map(|it| u64_of(&it["run_ns"]) / 1_000_000_000).collect();
    assert_eq!(cpu, [0, 9, 14]);
    let found = report(&trace);
    assert_eq!(found["summary"]["processes"], Value::Null);
    assert_eq!(u64_of(&found["run"]["wall_ns"]), 20_000_000_000);
    assert_eq!(check(&trace).status.code(), Some(0));
}

/// Imports rows of prmon; returns the trace and what was said.
fn import_prmon(directory: &TempDir, text: &str) -> (PathBuf, String) {
    let (rows, trace) = (directory.path().join("in.txt"), directory.path().join("in.ptrace"));
    fs::write(&rows, text).unwrap();
    let _ = fs::remove_file(&trace);
    let output =
        proctrace().args(["import", "prmon", "-o"]).arg(&trace).arg(&rows).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (trace, said)
}

#[test]
fn what_prmon_wrote_is_reported_and_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let text = "Time\twtime\tpss\trss\tswap\tvmem\trchar\tread_bytes\twchar\twrite_bytes\tstime\tutime\n\
                1700000010\t10\t1000\t2000\t0\t9000\t500\t4096\t70\t0\t1\t6\n\
                1700000070\t70\t9000\t9500\t10\t9900\t5000\t8192\t700\t4096\t20\t70\n\
                1700000130\t130\t4000\t5000\t0\t9800\t50000\t40960\t7000\t8192\t30\t170\n";
    let (trace, said) = import_prmon(&directory, text);
    assert_eq!(said.lines().count(), 1, "{said}");
    let found = report(&trace);
    let summary = &found["summary"];
    let seconds = |key: &str| u64_of(&summary[key]) / 1_000_000_000;
    assert_eq!((seconds("cpu_ns"), seconds("user_ns"), seconds("system_ns")), (200, 170, 30));
    assert_eq!((u64_of(&summary["read_bytes"]), u64_of(&summary["write_bytes"])), (40960, 8192));
    assert_eq!(u64_of(&found["memory"]["peak_pss_bytes"]), 9000 << 10);
    assert_eq!(found["memory"]["uss_bytes_then"], Value::Null);
    for key in ["processes", "threads", "execs", "unwaited_cpu_ns", "efficiency_percent"] {
        assert_eq!(summary[key], Value::Null, "{key}");
    }
    let shown = |arguments: &[&str]| {
        let output = proctrace().args(arguments).arg(&trace).env("COLUMNS", "80").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let page = shown(&["report"]);
    assert!(page.contains("3 min 20 s") && page.contains("largest PSS of all together"), "{page}");
    let details = shown(&["show", "0"]);
    assert!(details.contains("9.2 MB    -"), "no USS: {details}");
    let metrics = shown(&["metrics"]);
    assert!(
        metrics.contains("total_cpu_seconds") && metrics.contains("peak_pss_bytes"),
        "{metrics}"
    );
    assert!(
        !metrics.contains("  detached_cpu_seconds ") && !metrics.contains("  total_processes ")
    );
    let out = directory.path().join("again");
    let output =
        proctrace().args(["export", "--format", "prmon"]).arg(&out).arg(&trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let again = fs::read_to_string(out.join("prmon.txt")).unwrap();
    let rows = |text: &str| -> Vec<std::collections::BTreeMap<String, String>> {
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
        let names: Vec<String> = lines.next().unwrap().collect();
        lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
    };
    assert_eq!(rows(&again), rows(text));
    let json: Value =
        serde_json::from_str(&fs::read_to_string(out.join("prmon.json")).unwrap()).unwrap();
    for (name, most) in
        [("pss", 9000), ("rss", 9500), ("utime", 170), ("stime", 30), ("wtime", 130)]
    {
        assert_eq!(json["Max"][name], most, "{name}: {json}");
    }
}

#[test]
fn counters_of_prmon_that_fall_are_lower_bounds_and_it_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let text = "Time\twtime\tstime\tutime\tpss\trss\tswap\trchar\tread_bytes\twchar\twrite_bytes\n\
                1700000000\t0\t0\t0\t50\t60\t0\t1\t4096\t1\t0\n\
                1700000060\t60\t40\t300\t50\t60\t0\t1\t8192\t1\t0\n\
                1700000120\t120\t50\t200\t50\t60\t0\t1\t8192\t1\t0\n\
                1700000180\t180\t0\t0\t0\t0\t0\t0\t0\t0\t0\n";
    let (trace, said) = import_prmon(&directory, text);
    assert!(
        said.contains("counters are below an earlier row") && said.contains("line 4"),
        "{said}"
    );
    let found = report(&trace);
    assert_eq!(u64_of(&found["summary"]["cpu_ns"]), 350_000_000_000);
    assert_eq!(u64_of(&found["summary"]["read_bytes"]), 8192);
    assert_eq!(u64_of(&found["run"]["wall_ns"]), 180_000_000_000);
}

/// A log that comes slowly is waited for, and whoever waits sees that.
#[test]
fn on_a_terminal_who_waits_is_told_for_what() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    nix::unistd::mkfifo(&at("log"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctrace"));
    command.args(["import", "strace", "-o"]).arg(at("out.ptrace")).arg(at("log"));
    let terminal = crate::pty::Terminal::run(&command, (80, 24));
    // Opening it waits for the reader.
    let mut log = std::fs::OpenOptions::new().write(true).open(at("log")).unwrap();
    terminal.wait_for("proctrace: reading the log, 1 s");
    let lines = "10 1000.000000 execve(\"/bin/true\", [\"true\"], 0x1 /* 3 vars */) = 0\n\
                 10 1000.100000 exit_group(0) = ?\n10 1000.100001 +++ exited with 0 +++\n";
    std::io::Write::write_all(&mut log, lines.as_bytes()).unwrap();
    drop(log);
    terminal.wait_for("status=0.");
    let text = terminal.text();
    assert!(!text.contains("reading the log"), "{text}");
    assert!(text.contains("1 process"), "{text}");
}
