//! Errors of the file system at each call that writes a trace, a page or the tables of a fleet: they are told, and what has
//! its name afterwards is whole, or says that it is not. Needs strace.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proctrace_trace::Reader;

use crate::common::faults::{Call, FAULTS, calls_on, injected, under_strace};
use crate::common::{Recorder, proctrace};

/// Calls by which a file comes to be.
const CALLS: &str = "openat,write,pwrite64,writev,ftruncate,fsync,fdatasync,mkdir,mkdirat,rename,renameat,\
                     renameat2,link,linkat";

fn traces() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces")
}

fn assert_told(output: &Output, code: i32, reason: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(reason), "{stderr}");
    assert!(stderr.contains("cannot write") && !stderr.contains("panicked"), "{stderr}");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The calls by which a command writes below a directory, of which each file takes these numbers.
fn writing(place: &Path, command: &Command, [writes, syncs, renames]: [usize; 3]) -> Vec<Call> {
    let mut calls = calls_on(place, CALLS, command);
    calls.retain(Call::writes);
    let count = |name: &str| calls.iter().filter(|call| call.name.starts_with(name)).count();
    assert_eq!(
        [count("write"), count("fsync"), count("rename")],
        [writes, syncs, renames],
        "{calls:#?}"
    );
    calls
}

#[test]
fn a_page_is_whole_or_not_there_whichever_call_fails() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let mut command = proctrace();
    command.arg("report").arg(traces().join("alice-o2-before.ptrace")).arg("--html").arg(&page);
    let calls = writing(directory.path(), &command, [2, 1, 1]);
    for (fault, reason) in FAULTS {
        for call in &calls {
            fs::write(&page, "an earlier one").unwrap();
            assert_told(&injected(call, fault, &command).output().unwrap(), 1, reason);
            assert_eq!(fs::read(&page).unwrap(), b"an earlier one", "{call:?}");
            assert_eq!(names(directory.path()), ["page.html"], "{call:?}");
        }
    }
}

/// The tables of a lake that have a file, each of which must be whole.
fn tables(lake: &Path) -> BTreeSet<String> {
    let Ok(tables) = fs::read_dir(lake) else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    for table in tables.map(|table| table.unwrap().path()) {
        for day in fs::read_dir(&table).unwrap().map(|day| day.unwrap().path()) {
            for name in names(&day) {
                assert!(name.ends_with(".parquet"), "{name} is left in {}", day.display());
                let table = table.file_name().unwrap().to_str().unwrap();
                found.insert(table.strip_prefix("table=").unwrap().to_owned());
            }
        }
    }
    for table in &found {
        let sql = format!("SELECT count(*) AS n FROM {table}");
        let output = proctrace().arg("fleet").arg(sql).arg(lake).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    found
}

#[test]
fn a_job_of_a_fleet_has_all_its_tables_whichever_call_fails() {
    let all = ["advice", "jobs", "misses", "programs", "step_groups"].map(str::to_owned).into();
    let directory = tempfile::tempdir().unwrap();
    let lake = directory.path().join("lake");
    let mut command = proctrace();
    command.arg("summarize").arg(traces().join("tour-6.ptrace")).arg("--output").arg(&lake);
    let calls = writing(directory.path(), &command, [5; 3]);
    for (fault, reason) in FAULTS {
        for call in &calls {
            // Of the run before; the first call that fails is the one that would make it.
            let _ = fs::remove_dir_all(&lake);
            assert_told(&injected(call, fault, &command).output().unwrap(), 1, reason);
            let there = tables(&lake);
            assert!(!there.contains("jobs") || there == all, "{call:?}: {there:?}");
            assert!(command.output().unwrap().status.success());
            assert_eq!(tables(&lake), all, "{call:?}");
        }
    }
}

/// The number of blocks of a trace, and whether it has its trailer.
fn read(trace: &Path) -> (usize, bool) {
    let mut reader = Reader::open(trace).unwrap();
    let blocks = std::iter::from_fn(|| reader.next_block()).count();
    (blocks, reader.trailer().is_some())
}

#[test]
fn a_recording_goes_on_if_nothing_can_be_said_about_it() {
    // A file on a full disk, to which messages go.
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut recorder = Recorder::new();
    let earlier = recorder.trace();
    fs::write(&earlier, "an earlier one, which is moved, and that is said").unwrap();
    recorder.command.args(["--", "sh", "-c", "mkdir finished; exit 3"]);
    let status = recorder.command.stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(3));
    assert!(recorder.directory.path().join("finished").exists());
    assert!(read(&recorder.trace()).1);
    let refused = proctrace().args(["report", "/no/such"]).stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(1));
}

/// Records a job under strace, with these options of it; returns the output and whether strace has made a fault.
fn record(recorder: &Recorder, options: &[&str]) -> (Output, bool) {
    let log = recorder.directory.path().join("log");
    let job = "for i in 1 2; do sleep 0.6; /bin/true; done; mkdir finished; exit 3";
    let mut command = Command::new(recorder.command.get_program());
    command.args(recorder.command.get_args()).args(["--", "sh", "-c", job]);
    command.current_dir(recorder.directory.path());
    let options = [options, &["-o", log.to_str().unwrap()]].concat();
    let output = under_strace(options, &command).output().unwrap();
    (output, fs::read_to_string(log).unwrap().contains("(INJECTED)"))
}

/// Asserts that the job has run to its end, and that the trace has what was written before the failure.
fn assert_unharmed(recorder: &Recorder, output: &Output, reason: &str, blocks: Option<usize>) {
    assert_told(output, 125, reason);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let told =
        "contains the recording only up to the failure; the command continued and exited with 3";
    assert!(stderr.contains(told), "{stderr}");
    assert_eq!(names(recorder.directory.path()), ["finished", "log", "test.ptrace"]);
    let (found, is_whole) = read(&recorder.trace());
    assert!(blocks.map_or(found > 0, |blocks| blocks == found), "{found} blocks of {blocks:?}");
    assert!(!is_whole);
    let shown = proctrace().arg("report").arg(recorder.trace()).output().unwrap();
    assert!(
        shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("INCOMPLETE")
    );
}

mod root {
    use super::*;

    #[test]
    fn a_trace_reads_up_to_the_failure_and_the_job_goes_on_whichever_write_fails() {
        for (fault, reason) in FAULTS {
            // The main thread writes the header before the job is started, and the trailer at its end.
            let recorder = Recorder::new();
            let header = format!("inject=write:{fault}:when=1");
            let (output, made) = record(&recorder, &["-e", "trace=write", "-e", &header]);
            assert!(made);
            assert_told(&output, 125, reason);
            assert_eq!(names(recorder.directory.path()), ["log"], "the job has not run");
            let recorder = Recorder::new();
            let trailer = format!("inject=write:{fault}:when=2");
            let (output, made) = record(&recorder, &["-e", "trace=write", "-e", &trailer]);
            assert!(made);
            assert_unharmed(&recorder, &output, reason, None);
            // Another thread writes the blocks: when the file has its name, and each thread's calls are counted for itself.
            let mut blocks = 0;
            loop {
                let recorder = Recorder::new();
                let trace = recorder.trace();
                let block = format!("inject=write:{fault}:when={}", blocks + 1);
                let options =
                    ["-f", "-P", trace.to_str().unwrap(), "-e", "trace=write", "-e", &block];
                let (output, made) = record(&recorder, &options);
                if !made {
                    assert_eq!(output.status.code(), Some(3));
                    break;
                }
                assert_unharmed(&recorder, &output, reason, Some(blocks));
                blocks += 1;
            }
            assert!(blocks >= 4, "{blocks}");
        }
    }

    #[test]
    fn a_trace_that_gets_no_name_is_where_it_is_said_to_be() {
        for (fault, reason) in FAULTS {
            let recorder = Recorder::new();
            // The second write of the main thread says so, the third is the trailer.
            let (name, trailer) =
                (format!("inject=renameat:{fault}:when=1"), format!("inject=write:{fault}:when=3"));
            let calls = ["-e", "trace=renameat,write", "-e", &name, "-e", &trailer];
            for options in [&calls[..4], &calls] {
                let (output, made) = record(&recorder, options);
                assert!(made);
                let stderr = String::from_utf8_lossy(&output.stderr);
                let part =
                    names(recorder.directory.path()).into_iter().find(|it| it.ends_with(".part"));
                let part = recorder.directory.path().join(part.unwrap());
                let there = format!("the recording is in {}", part.display());
                assert!(stderr.contains(reason) && stderr.contains(&there), "{stderr}");
                let is_whole = options.len() == 4;
                assert_eq!(output.status.code(), Some(if is_whole { 3 } else { 125 }), "{stderr}");
                let cut = format!("{} contains the recording only up to", part.display());
                assert_eq!(stderr.contains(&cut), !is_whole, "{stderr}");
                assert_eq!(read(&part).1, is_whole);
                fs::remove_file(&part).unwrap();
                fs::remove_dir(recorder.directory.path().join("finished")).unwrap();
            }
        }
    }
}
