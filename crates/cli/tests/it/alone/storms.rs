//! Storms with default options: no losses, exact counts, exact CPU time. A storm tests the load of a single payload on a recorder.

use crate::common::records::assert_agrees;
use crate::common::stalls::unless_stalled;
use crate::common::{Events, Recorded, Recorder, fixture, header, report, text, u64_of};

#[test]
fn twenty_thousand_processes_lose_nothing() {
    let storm = || Recorder::new().fixture("spawn", &["20000", "/bin/true", "2"]);
    let recorded = unless_stalled(storm);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let findings = report(&recorded.trace());
    let (summary, health) = (&findings["summary"], &findings["health"]);
    assert_eq!(health["lost"], 0);
    assert_eq!(summary["processes"], 20_001);
    assert_eq!(summary["execs"], 20_001);
    let records = header(&recorded.trace())["trailer"]["records"].clone();
    assert_eq!(records["fork"], 20_000);
    assert_eq!(records["exec"], 20_001);
    assert_eq!(records["exit"], 20_001);
    for law in health["laws"].as_array().unwrap() {
        assert_eq!(law["holds"], true, "{law}");
    }
}

#[test]
fn a_million_failed_opens_lose_nothing() {
    let recorded = unless_stalled(|| Recorder::new().fixture("open_storm", &["1000000"]));
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let findings = report(&recorded.trace());
    assert_eq!(findings["health"]["lost"], 0);
    // 60 directories with equal counts; the loader's misses are elsewhere.
    let storm: Vec<u64> = findings["lookups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["directory"].as_str().unwrap().starts_with("/cvmfs/"))
        .map(|row| u64_of(&row["count"]))
        .collect();
    assert_eq!(storm.len(), 60);
    assert_eq!(storm.iter().sum::<u64>(), 1_000_000);
    for law in findings["health"]["laws"].as_array().unwrap() {
        assert_eq!(law["holds"], true, "{law}");
    }
}

#[test]
fn cpu_time_of_short_processes_is_the_kernels_own_figure() {
    let recorded = unless_stalled(|| Recorder::new().fixture("spawn", &["5000", "/bin/true"]));
    let events = recorded.sound(0);
    assert_eq!(events.count("exit"), 5_001);
    // wait4(2) of the payload: RUSAGE_CHILDREN.
    let usage = header(&recorded.trace())["trailer"]["payload"].clone();
    let kernels_ns = u64_of(&usage["user_ns"]) + u64_of(&usage["system_ns"]);
    assert_agrees(&recorded.trace(), |_| true, kernels_ns);
}

#[test]
fn thousands_of_threads_lose_nothing() {
    let recorded = unless_stalled(|| Recorder::new().fixture("threads", &["20000"]));
    let events = recorded.sound(0);
    assert_eq!(events.forks(true).len(), 20_000);
    assert_eq!(events.count("exit"), 20_001);
}

/// More distinct look-ups than the BPF programs can number at a time: each keeps its name.
#[test]
fn look_ups_keep_their_names_when_there_are_too_many_to_number() {
    let recorded = unless_stalled(|| Recorder::new().fixture("many_paths", &["100000", "3"]));
    assert_names(&recorded, 100_000, 3);
}

/// The same with several processes that miss the same paths at the same time.
#[test]
fn look_ups_keep_their_names_when_several_number_them_at_once() {
    let script = "for i in 1 2 3 4; do \"$0\" 40000 2 & done; wait";
    let program = fixture("many_paths");
    let storm = || Recorder::new().run(["sh", "-c", script, program.to_str().unwrap()]);
    let recorded = unless_stalled(storm);
    assert_names(&recorded, 40_000, 8);
}

fn assert_names(recorded: &Recorded, paths: usize, times: usize) {
    let events = recorded.sound(0);
    let mut seen = std::collections::HashMap::new();
    let ours = |miss: &&serde_json::Value| text(&miss["path"]).starts_with("/no/such/file-");
    for miss in events.kind("lookup_failed").filter(ours) {
        *seen.entry(text(&miss["path"])).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), paths);
    assert!(seen.values().all(|seen| *seen == times));
    assert!(events.kind("lookup_failed").all(|miss| miss.get("lost").is_none()));
}

mod root {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_displaces_nothing_else() {
        // The recorder's child stops it during the storm, so that most records do not fit.
        let script = format!(
            "kill -STOP $PPID; {} 300000; kill -CONT $PPID",
            fixture("open_storm").display()
        );
        let recorded = Recorder::new().option(["--ring-size", "64KiB"]).run(["sh", "-c", &script]);
        assert_eq!(recorded.code(), 0);
        let findings = report(&recorded.trace());
        // Durations of look-ups may be lost, too: for them there is no other count.
        let losses = findings["health"]["losses"].as_array().unwrap();
        let lost = |kind: &str| losses.iter().find(|loss| loss["kind"] == kind);
        let count = |kind: &str| lost(kind).map_or(0, |loss| u64_of(&loss["count"]));
        let (lost, kept) = (count("lookup_failed"), u64_of(&findings["summary"]["lookups_failed"]));
        assert!(lost > 200_000, "only {lost} were lost, so this test shows nothing");
        // Every lost record is counted: those of the storm, and the few misses of the loader.
        let events = Events::of(&recorded.trace());
        let missed: u64 = events.kind("exit").map(|exit| u64_of(&exit["lookups_failed"])).sum();
        assert_eq!(lost + kept, missed);
        assert!(missed >= 300_000);
        // Look-ups never displace a fork or an exit.
        let all = u64_of(&findings["health"]["lost"]);
        assert_eq!(lost + count("lookup_time"), all, "{losses:#?}");
        assert!(recorded.stderr().contains("lost"), "{}", recorded.stderr());
        let broken: Vec<&str> = findings["health"]["laws"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|law| law["holds"] == false)
            .map(|law| law["name"].as_str().unwrap())
            .collect();
        assert_eq!(broken, ["lookups"]);
    }
}
