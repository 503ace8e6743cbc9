//! Reads a real trace as another program would, including the example in the documentation.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctrace_replay::{Body, Replay, records};
use proctrace_trace::Reader;
use proctrace_wire::{Record, Stream, WIRE_VERSION};

/// The same tour, recorded with each version of the record layout.
fn tours() -> impl Iterator<Item = PathBuf> {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    (1..=WIRE_VERSION).map(move |version| traces.join(format!("tour-{version}.ptrace")))
}

#[test]
fn events_come_in_order_of_time_and_none_is_missing() {
    for tour in tours() {
        let mut replay = Replay::open(tour).unwrap();
        let events: Vec<_> = replay.by_ref().collect();
        assert!(events.is_sorted_by_key(|event| event.time_ns));
        let summary = replay.summary();
        assert_eq!(summary.damage, []);
        let trailer = summary.trailer.unwrap();
        let mut expected = trailer.records.clone();
        // Records joined into others are not events of their own.
        for joined in ["env", "exec_args"] {
            expected.remove(joined);
        }
        // Repeated look-ups are resolved.
        for (form, joined) in [
            ("lookup_named", "lookup_failed"),
            ("lookup_again", "lookup_failed"),
            ("opened_named", "opened"),
            ("opened_again", "opened"),
        ] {
            if let Some(records) = expected.remove(form) {
                *expected.entry(joined.to_owned()).or_default() += records;
            }
        }
        let mut counted = std::collections::BTreeMap::new();
        for event in &events {
            *counted.entry(event.kind().to_owned()).or_default() += 1_u64;
            assert!(
                !matches!(&event.body, Body::LookupFailed(miss) if miss.record.call == 0),
                "{event:?}"
            );
        }
        assert_eq!(counted, expected);
        assert_eq!(summary.decoded.records, trailer.records.values().sum::<u64>());
    }
}

#[test]
fn no_task_acts_before_its_birth_or_after_its_death() {
    for tour in tours() {
        lives_are_in_order(&tour);
    }
}

fn lives_are_in_order(tour: &Path) {
    let mut alive = std::collections::BTreeSet::new();
    for event in Replay::open(tour).expect("a tour is a trace") {
        match &event.body {
            Body::Attach(_) => assert!(alive.insert(event.task)),
            Body::Fork(fork) => {
                assert!(alive.contains(&event.task), "{event:?}");
                assert!(alive.insert(fork.child));
            }
            Body::Exit(_) => assert!(alive.remove(&event.task), "{event:?}"),
            Body::Tick(_) | Body::Loss(_) | Body::Mounts(_) => {}
            // A task that has begun to exit can still be sampled, and wait while it is torn down.
            Body::Sample(_) => {}
            Body::Wait(_) => assert!(event.pid.is_some(), "{event:?}"),
            _ => assert!(alive.contains(&event.task), "{event:?}"),
        }
    }
    assert_eq!(alive.len(), 0);
}

#[test]
fn counting_needs_no_order() {
    for tour in tours() {
        let mut reader = Reader::open(tour).unwrap();
        let mut execs = 0;
        let decoded = records(&mut reader, Stream::Lifecycle, |record| {
            execs += u64::from(matches!(record, Record::Exec(_)));
        });
        assert_eq!(execs, reader.trailer().unwrap().records["exec"]);
        assert_eq!((decoded.unknown, decoded.undecodable), (0, 0));
    }
}

#[test]
fn the_example_works() {
    // cargo builds examples before it runs tests, next to this test's directory.
    let this = std::env::current_exe().unwrap();
    let example = this.ancestors().nth(2).unwrap().join("examples/programs");
    let output = Command::new(example).arg(tours().last().unwrap()).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    // 12 rounds of `mixed`, a search in every 4th, and the programs run by `exec_argv` and
    // `workdirs`.
    let true_line = text.lines().find(|line| line.ends_with("/usr/bin/true")).unwrap();
    assert_eq!(true_line.trim(), "17  /usr/bin/true");
}

/// The payloads' declarations when these were recorded: processes, threads, execs.
const PAYLOADS: [(&str, [usize; 3]); 4] = [
    ("alice-o2-before", [380, 347, 377]),
    ("alice-o2-before-2", [380, 347, 377]),
    ("alice-o2-after", [93, 292, 91]),
    ("alice-o2-after-2", [93, 292, 91]),
];

#[test]
fn payloads_are_read_as_they_were_declared() {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    for (name, declared) in PAYLOADS {
        let mut found = [0; 3];
        for event in Replay::open(traces.join(format!("{name}.ptrace"))).unwrap() {
            match event.body {
                Body::Attach(_) => found[0] += 1,
                Body::Fork(fork) => found[usize::from(fork.is_thread())] += 1,
                Body::Exec(_) => found[2] += 1,
                _ => {}
            }
        }
        assert_eq!(found, declared, "{name}");
    }
}
