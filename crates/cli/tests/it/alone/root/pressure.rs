//! A recorder that is kept from draining its rings: lost records are counted, or there are none.

use crate::common::{Events, Recorder, fixture, header, proctrace, report, u64_of};

#[test]
fn a_stopped_recorder_loses_what_it_counts() {
    // Stopped before the storm and continued after it, however long that takes.
    let script =
        format!("kill -STOP $PPID; {} 40000; kill -CONT $PPID", fixture("fork_only").display());
    let recorded = Recorder::new().option(["--ring-size", "64KiB"]).run(["sh", "-c", &script]);
    // The payload has completed, and the trace is readable.
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let trailer = header(&recorded.trace())["trailer"].clone();
    let lost = |kind: &str| -> u64 {
        trailer["losses"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|loss| loss["kind"] == kind)
            .map(|loss| u64_of(&loss["count"]))
            .sum()
    };
    assert!(lost("fork") > 1_000, "{trailer}");
    let events = Events::of(&recorded.trace());
    // Declared: the storm and its program; the shell was launched.
    let forks = events.forks(false).len() as u64 + lost("fork");
    assert_eq!(forks, 40_001);
    assert_eq!(events.count("exit") as u64 + lost("exit"), 40_002);
    let check = proctrace().arg("check").arg(recorded.trace()).output().unwrap();
    assert_eq!(check.status.code(), Some(3), "{}", String::from_utf8_lossy(&check.stdout));
    let said = String::from_utf8(check.stdout).unwrap();
    assert!(said.contains("of kind fork (ring_full)"), "{said}");
    assert!(recorded.stderr().contains("lost"), "{}", recorded.stderr());
    assert_eq!(report(&recorded.trace())["health"]["complete"], true);
}

#[test]
fn a_payload_can_be_made_to_wait_instead() {
    // Three quarters of the buffer, which nobody empties meanwhile; then all that it can hold several times over.
    let fork_only = fixture("fork_only");
    let script =
        format!("kill -STOP $PPID; {0} 2000; kill -CONT $PPID; {0} 18000", fork_only.display());
    let options = ["--ring-size", "1MiB", "--on-full", "block"];
    let recorded = Recorder::new().option(options).run(["sh", "-c", &script]);
    let events = recorded.sound(0);
    // Declared: both storms and their programs; the shell was launched.
    assert_eq!(events.forks(false).len(), 20_002);
    assert_eq!(events.count("exit"), 20_003);
    let head = header(&recorded.trace());
    assert_eq!(head["header"]["on_full"], "block");
    // Each wait is bounded, and none is silent.
    let held_up = &head["trailer"]["held_up"];
    let (times, total_ns) = (u64_of(&held_up["times"]), u64_of(&held_up["total_ns"]));
    assert!(times > 0 && total_ns > 0, "{held_up}");
    assert!(recorded.stderr().contains("for the recorder"), "{}", recorded.stderr());
}
