//! Programs that the recording user may not trace: the process is recorded, but its data is
//! withheld.

use std::collections::BTreeSet;
use std::fs;

use crate::common::records::each;
use crate::common::{Events, header, proctrace, report, text, u64_of};
use crate::users::{CAP_NET_RAW, Contents, Stage, give_capabilities};
use proctrace_wire::Record;
use proctrace_wire::layout::EXEC_WITHHELD;
use serde_json::Value;

const MINE: &str = "zqmine7f3a";
const AGAIN: &str = "zqagain7f3a";
const SET_ID: &str = "zqsuid7f3a";
const DEEP: &str = "zqdeep7f3a";

/// Records a shell script of the user's; its text occurs in no argument.
fn record_script(stage: &Stage, recorder: u32, script: &str) -> (Contents, Events) {
    let file = stage.path().join("script.sh");
    fs::write(&file, script).unwrap();
    for mark in [MINE, AGAIN, SET_ID, DEEP] {
        let directory = stage.path().join(format!("{mark}.cwd/{mark}.sub"));
        fs::create_dir_all(directory).unwrap();
        // and in the recorder's working directory
        fs::create_dir_all(stage.path().join(format!("traces/{mark}.sub"))).unwrap();
    }
    let mut command = stage.record(recorder, &["--", "sh"]);
    command.arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let check = proctrace().arg("check").arg(stage.trace()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    (Contents::of(&stage.trace()), Events::of(&stage.trace()))
}

/// A script line that runs `program` with its mark everywhere.
fn line(stage: &Stage, mark: &str, steps: &str) -> String {
    let program = stage.program(mark);
    format!(
        "(cd {}/{mark}.cwd; PT_SECRET={mark}.env exec {} {mark} {steps})\n",
        stage.path().display(),
        program.display()
    )
}

fn withheld(events: &Events) -> Vec<&Value> {
    events.kind("exec").filter(|exec| exec["withheld"] == true).collect()
}

/// /proc/PID/syscall is for those who may trace the process.
#[test]
fn the_system_call_in_which_it_wakes_others_is_its_own() {
    let stage = Stage::new();
    stage.set_user_id_program(SET_ID, stage.other);
    let script = line(&stage, SET_ID, "nap 20000") + "(sleep 0.05; echo x) | cat > /dev/null\n";
    record_script(&stage, stage.user, &script);
    let (mut withheld, mut wakers) = (BTreeSet::new(), Vec::new());
    each(&stage.trace(), |record| match record {
        Record::Exec(exec) if exec.fixed.bits & EXEC_WITHHELD != 0 => {
            withheld.insert(exec.fixed.head.task);
        }
        Record::Wait(wait) if wait.waker != 0 => wakers.push((wait.waker, wait.waker_syscall)),
        _ => {}
    });
    let (hidden, seen): (Vec<_>, Vec<_>) =
        wakers.iter().partition(|(waker, _)| withheld.contains(waker));
    assert!(!hidden.is_empty() && hidden.iter().all(|(_, call)| *call == -1), "{hidden:?}");
    assert!(seen.iter().any(|(_, call)| *call >= 0), "{seen:?}");
}

#[test]
fn a_set_user_id_program_is_a_process_without_a_word() {
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);
    let deep = stage.program(DEEP);
    // Programs that it executes inherit its privileges.
    let script = [
        line(&stage, MINE, "work"),
        format!("{} {SET_ID} work\n", program.display()),
        format!(
            "PT_SECRET={DEEP}.env {} {SET_ID} work exec {} {DEEP} work\n",
            program.display(),
            deep.display()
        ),
    ]
    .concat();
    let (contents, events) = record_script(&stage, stage.user, &script);
    contents.assert_all_of(MINE);
    contents.assert_nothing_of(SET_ID);
    contents.assert_nothing_of(DEEP);

    let withheld = withheld(&events);
    assert_eq!(withheld.len(), 3);
    for exec in &withheld {
        assert_eq!(exec["path"], "");
        assert_eq!(exec["argv"].as_array().unwrap().len(), 0);
        let end = events.end_of(&exec["pid"]);
        assert_eq!(end["withheld"], true);
        assert_eq!(end["code"], 0);
        assert_eq!(end["comm"], "");
        // Values that any user may read in /proc.
        assert!(u64_of(&end["run_ns"]) > 0 && u64_of(&end["minflt"]) > 0, "{end}");
        // Values that require permission to trace it.
        assert_eq!((u64_of(&end["rchar"]), u64_of(&end["lookups_failed"])), (0, 0), "{end}");
    }
    // Three shells forked three children, and each `work` one more.
    assert_eq!(events.forks(false).len(), 7);
    assert_eq!(header(&stage.trace())["header"]["restricted"], true);
    let findings = report(&stage.trace());
    let spot = &findings["blind_spots"][0];
    assert_eq!(spot["what"], "withheld", "{findings}");
    assert_eq!(spot["programs"], serde_json::json!(["(withheld)"]));
    assert!(text(&spot["says"]).contains("I/O of 5 processes"), "{spot}");
    let report = proctrace().arg("report").arg(stage.trace()).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap().replace('\n', " ");
    assert!(report.contains("of 5 processes that the recording user may not trace"), "{report}");
}

#[test]
fn root_sees_set_user_id_programs() {
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);
    let line = line(&stage, SET_ID, "work");
    assert!(line.contains(program.to_str().unwrap()));
    let (contents, events) = record_script(&stage, 0, &line);
    contents.assert_all_of(SET_ID);
    assert_eq!(withheld(&events).len(), 0);
    assert_eq!(header(&stage.trace())["header"]["restricted"], false);
}

#[test]
fn who_gives_up_foreign_rights_is_seen_again() {
    let stage = Stage::new();
    stage.set_user_id_program(SET_ID, stage.other);
    let again = stage.program(AGAIN);
    // Without the privileges it stays undumpable, up to its next exec.
    let steps = format!("work drop work exec {} {AGAIN} work", again.display());
    let script =
        line(&stage, SET_ID, &steps).replace(&format!("{SET_ID}.cwd"), &format!("{AGAIN}.cwd"));
    let script = script.replace(&format!("{SET_ID}.env"), &format!("{AGAIN}.env"));
    let (contents, events) = record_script(&stage, stage.user, &script);
    contents.assert_all_of(AGAIN);
    contents.assert_nothing_of(SET_ID);
    assert_eq!(withheld(&events).len(), 1);
}

#[test]
fn file_capabilities_hide_a_program() {
    let stage = Stage::new();
    give_capabilities(&stage.program(SET_ID), &[CAP_NET_RAW]);
    let script = format!("{} {SET_ID} work\n", stage.program(SET_ID).display());
    let (contents, events) = record_script(&stage, stage.user, &script);
    contents.assert_nothing_of(SET_ID);
    assert_eq!(withheld(&events).len(), 1);
}

#[test]
fn who_forbids_tracing_is_hidden_from_then_on() {
    let stage = Stage::new();
    let hidden = "zqhide7f3a";
    let directory = stage.path().join(format!("{hidden}.cwd/{hidden}.sub"));
    fs::create_dir_all(directory).unwrap();
    let script = line(&stage, hidden, "hide work") + &line(&stage, MINE, "hide show work");
    let (contents, events) = record_script(&stage, stage.user, &script);
    contents.assert_run_of(hidden);
    for suffix in ["open", "stat", "run", "sub"] {
        contents.assert_nothing_of(&format!("{hidden}.{suffix}"));
    }
    assert!(!events.kind("rename").any(|rename| rename["comm"] == hidden));
    assert!(!events.kind("exit").any(|exit| exit["comm"] == hidden));
    contents.assert_all_of(MINE);
    assert_eq!(withheld(&events).len(), 0);
    assert_eq!(report(&stage.trace())["blind_spots"][0]["what"], "withheld");
}

#[test]
fn a_program_that_nobody_may_read_is_hidden() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let program = stage.program(SET_ID);
    // As in the kernel: a user who may not read a file may not trace its process (would_dump()).
    fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).unwrap();
    let script = format!("{} {SET_ID} work\n", program.display());
    let (contents, _) = record_script(&stage, stage.user, &script);
    contents.assert_nothing_of(SET_ID);
}
