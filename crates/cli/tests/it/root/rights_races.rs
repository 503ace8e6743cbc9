//! Processes that gain other privileges while the recorder attaches to them.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use crate::common::{Events, u64_of};
use crate::users::{Contents, Stage};

const MINE: &str = "zqmine7f3a";
const SET_ID: &str = "zqsuid7f3a";

/// A process of the user's that naps, and then executes a set-user-ID program once it is told which. It reads the name of
/// the program from its input, so that its own arguments do not contain it.
fn racer(stage: &Stage, after_us: u32) -> Child {
    let after_us = after_us.to_string();
    let mut command = stage.marked(stage.user, MINE, &["nap", &after_us, "run"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn tell(racer: &mut Child, program: &Path, steps: &[&str]) {
    let mut input = racer.stdin.take().unwrap();
    let line = [&[program.to_str().unwrap(), SET_ID], steps].concat();
    // It may have finished already, but it reads up to the empty line.
    writeln!(input, "{}\n", line.join("\n")).unwrap();
}

/// Number of execs recorded without their data.
fn withheld(events: &Events) -> usize {
    events.kind("exec").filter(|exec| exec["withheld"] == true).count()
}

#[test]
fn an_exec_during_a_pass_over_all_tasks_tells_nothing() {
    // How many are hit depends on how often a busy recorder gets to its passes.
    let (mut attached, mut withheld) = (0, 0);
    for _ in 0..10 {
        let (more_attached, more_withheld) = race_with_passes();
        attached += more_attached;
        withheld += more_withheld;
        if attached >= 30 && withheld >= 10 {
            return;
        }
    }
    panic!("{attached} attached, {withheld} withheld");
}

/// Numbers of tasks that were attached, and of execs recorded without their data.
fn race_with_passes() -> (usize, usize) {
    const RACERS: u32 = 300;
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);
    let own = stage.program(MINE);
    let own = own.to_str().unwrap();
    let attached = stage.attached(stage.user, &["-a", "--interval", "1ms"]);
    for number in 0..RACERS {
        // Half of them return to their own identity before the recorder can have checked twice.
        let steps: &[&str] = if number % 2 == 0 {
            &["work", "write", "nap", "2000"]
        } else {
            &["drop", "exec", own, MINE, "nap", "2000"]
        };
        let mut racer = racer(&stage, number % 30 * 100);
        tell(&mut racer, &program, steps);
        if number % 8 == 7 {
            racer.wait_with_output().unwrap();
        } else {
            // reaped when the test ends
            std::thread::spawn(move || racer.wait_with_output());
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    attached.interrupt();
    let contents = Contents::of(&stage.trace());
    contents.assert_run_of(MINE);
    contents.assert_nothing_of(SET_ID);
    let events = Events::of(&stage.trace());
    // What these programs have written is not told either, by samples or by ends.
    for event in events.0.iter().filter(|event| event["wchar"].is_u64()) {
        assert!(u64_of(&event["wchar"]) < 1_000_000, "{event}");
    }
    (events.count("attach"), withheld(&events))
}

#[test]
fn an_exec_while_its_process_is_attached_tells_nothing() {
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);
    for number in 0..40 {
        let mut racer = racer(&stage, number * 15_000);
        tell(&mut racer, &program, &["work", "nap", "150000"]);
        let pid = racer.id().to_string();
        let output =
            stage.record(stage.user, &["-p", &pid, "--duration", "300ms"]).output().unwrap();
        racer.wait_with_output().unwrap();
        if output.status.success() {
            Contents::of(&stage.trace()).assert_nothing_of(SET_ID);
        } else {
            assert_refused(&output);
        }
    }
}

fn assert_refused(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    let reasons = ["belongs to another user", "ended before", "there is no process"];
    assert!(reasons.iter().any(|why| said.contains(why)), "{said}");
}

#[test]
fn an_exec_before_or_after_its_process_is_attached_tells_nothing() {
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);

    let mut after = racer(&stage, 0);
    let attached = stage.attached(stage.user, &["-p", &after.id().to_string()]);
    tell(&mut after, &program, &["work"]);
    after.wait_with_output().unwrap();
    attached.wait();
    Contents::of(&stage.trace()).assert_nothing_of(SET_ID);
    assert_eq!(withheld(&Events::of(&stage.trace())), 1);

    let mut before = racer(&stage, 0);
    tell(&mut before, &program, &["ready", "nap", "60000000"]);
    let mut said = [0; 6];
    before.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"ready\n");
    let options = ["-p", &before.id().to_string(), "--duration", "300ms"];
    assert_refused(&stage.record(stage.user, &options).output().unwrap());
    before.kill().unwrap();
    before.wait().unwrap();
}
