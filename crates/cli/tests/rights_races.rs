//! Processes that gain other privileges while the recorder attaches to them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod users;

use std::process::{Child, Stdio};

use std::io::Write;
use std::path::Path;

use common::Events;
use users::{Contents, Stage};

const MINE: &str = "zqmine7f3a";
const SET_ID: &str = "zqsuid7f3a";

/// A process of the user's that executes a set-user-ID program after a delay. It reads the name of
/// the program from its input, so that its own arguments do not contain it.
fn racer(stage: &Stage, program: &Path, after_us: u32, steps: &[&str]) -> Child {
    let after_us = after_us.to_string();
    let mut command = stage.marked(stage.user, MINE, &["nap", &after_us, "run"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let line = [&[program.to_str().unwrap(), SET_ID], steps].concat();
    // It may have finished already, but it reads up to the empty line.
    writeln!(input, "{}\n", line.join("\n")).unwrap();
    child
}

/// Number of execs recorded without their data.
fn withheld(events: &Events) -> usize {
    events.kind("exec").filter(|exec| exec["withheld"] == true).count()
}

#[test]
fn an_exec_during_a_pass_over_all_tasks_tells_nothing() {
    const RACERS: u32 = 300;
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);
    let own = stage.program(MINE);
    let own = own.to_str().unwrap();
    let attached = stage.attached(stage.user, &["-a", "--interval", "1ms"]);
    for number in 0..RACERS {
        // Half of them return to their own identity before the recorder can have checked twice.
        let steps: &[&str] = if number % 2 == 0 {
            &["work", "nap", "2000"]
        } else {
            &["drop", "exec", own, MINE, "nap", "2000"]
        };
        let racer = racer(&stage, &program, number % 30 * 100, steps);
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
    let (attached, withheld) = (events.count("attach"), withheld(&events));
    assert!(attached >= 30 && withheld >= 10, "{attached} attached, {withheld} withheld");
}

#[test]
fn an_exec_while_its_process_is_attached_tells_nothing() {
    let stage = Stage::new();
    let program = stage.set_user_id_program(SET_ID, stage.other);
    let (mut recorded, mut refused, mut seen_to_change) = (0, 0, 0);
    for number in 0..40 {
        let racer = racer(&stage, &program, number * 15_000, &["work", "nap", "150000"]);
        let pid = racer.id().to_string();
        let output =
            stage.record(stage.user, &["-p", &pid, "--duration", "300ms"]).output().unwrap();
        racer.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            recorded += 1;
            Contents::of(&stage.trace()).assert_nothing_of(SET_ID);
            seen_to_change += withheld(&Events::of(&stage.trace()));
        } else {
            refused += 1;
            assert_eq!(output.status.code(), Some(125), "{said}");
            assert!(
                ["belongs to another user", "ended before", "there is no process"]
                    .iter()
                    .any(|why| said.contains(why)),
                "{said}"
            );
        }
    }
    // Some before and some after the attachment.
    assert!(recorded > 0 && refused > 0, "{recorded} recorded, {refused} refused");
    assert!(seen_to_change > 0, "none changed while it was recorded");
}
