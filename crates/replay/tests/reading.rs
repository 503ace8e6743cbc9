//! Reading a real trace, as another program would; the example in the documentation included.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctrace_replay::{Body, Replay, records};
use proctrace_trace::Reader;
use proctrace_wire::{Record, Stream};

fn tour() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/tour-1.ptrace")
}

#[test]
fn events_come_in_order_of_time_and_none_is_missing() {
    let mut replay = Replay::open(tour()).unwrap();
    let events: Vec<_> = replay.by_ref().collect();
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    let summary = replay.summary();
    assert_eq!(summary.damage, []);
    let trailer = summary.trailer.unwrap();
    let count = |kind: &str| events.iter().filter(|event| event.kind().name() == kind).count();
    for (kind, expected) in &trailer.records {
        // What is joined into others is no event of its own.
        if kind != "env" && kind != "exec_args" {
            assert_eq!(count(kind) as u64, *expected, "{kind}");
        }
    }
    assert_eq!(summary.decoded.records, trailer.records.values().sum::<u64>());
}

#[test]
fn no_task_acts_before_its_birth_or_after_its_death() {
    let mut alive = std::collections::BTreeSet::new();
    for event in Replay::open(tour()).unwrap() {
        match &event.body {
            Body::Attach(_) => assert!(alive.insert(event.task)),
            Body::Fork(fork) => {
                assert!(alive.contains(&event.task), "{event:?}");
                assert!(alive.insert(fork.record.child));
            }
            Body::Exit(_) => assert!(alive.remove(&event.task), "{event:?}"),
            Body::Tick(_) | Body::Loss(_) => {}
            // A sample can still see a task that has begun to exit.
            Body::Sample(_) => {}
            _ => assert!(alive.contains(&event.task), "{event:?}"),
        }
    }
    assert_eq!(alive.len(), 0);
}

#[test]
fn counting_needs_no_order() {
    let mut reader = Reader::open(tour()).unwrap();
    let mut execs = 0;
    let decoded = records(&mut reader, Stream::Lifecycle, |record| {
        execs += u64::from(matches!(record, Record::Exec(_)));
    });
    assert_eq!(execs, reader.trailer().unwrap().records["exec"]);
    assert_eq!((decoded.unknown, decoded.undecodable), (0, 0));
}

#[test]
fn the_example_works() {
    // cargo builds examples before it runs tests, beside the directory this test is in.
    let this = std::env::current_exe().unwrap();
    let example = this.ancestors().nth(2).unwrap().join("examples/programs");
    let output = Command::new(example).arg(tour()).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    // 12 rounds of `mixed`, a search in every 4th, and what `exec_argv` runs.
    let true_line = text.lines().find(|line| line.ends_with("/usr/bin/true")).unwrap();
    assert_eq!(true_line.trim(), "16  /usr/bin/true");
}
