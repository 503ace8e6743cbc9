//! Who may record whom: a user with a recorder that has file capabilities records no more than what
//! that user may trace.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod users;

use users::{Actor, Contents, Stage};

const MINE: &str = "zqmine7f3a";
const ROOTS: &str = "zqroot7f3a";
const OTHERS: &str = "zqother7f3a";

/// Runs before, during and across a recording.
const STEPS: [&str; 6] = ["work", "ready", "wait", "work", "ready", "wait"];

/// What three users do while one of them records it all.
fn record_three(stage: &Stage, recorder: u32) -> Contents {
    let users = [(stage.user, MINE), (stage.other, OTHERS), (0, ROOTS)];
    let mut before: Vec<Actor> =
        users.map(|(uid, mark)| Actor::start(stage.marked(uid, mark, &STEPS))).into();
    let attached = stage.attached(recorder, &["-a"]);
    let mut during: Vec<Actor> =
        users.map(|(uid, mark)| Actor::start(stage.marked(uid, mark, &STEPS))).into();
    for actor in before.iter_mut().chain(&mut during) {
        actor.tell("\n");
        actor.ready();
    }
    // Time to be found by a later pass, for those who were there unseen.
    std::thread::sleep(std::time::Duration::from_millis(300));
    for actor in before.into_iter().chain(during) {
        assert_eq!(actor.end(), 0);
    }
    attached.interrupt();
    Contents::of(&stage.trace())
}

#[test]
fn a_user_records_only_own_processes() {
    let stage = Stage::new();
    let contents = record_three(&stage, stage.user);
    contents.assert_all_of(MINE);
    contents.assert_nothing_of(OTHERS);
    contents.assert_nothing_of(ROOTS);
}

#[test]
fn root_records_everybody() {
    let stage = Stage::new();
    let contents = record_three(&stage, 0);
    for mark in [MINE, OTHERS, ROOTS] {
        contents.assert_all_of(mark);
    }
}
