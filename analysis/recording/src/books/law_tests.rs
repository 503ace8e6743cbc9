//! Tests of each law by a recording that breaks it, and of what else a recording's health is made of.

use std::collections::BTreeSet;

use proctrace_trace::{Damage, LossCount};

use super::*;
use crate::testing::{MS, S, Scene};

/// The command (1) with a child (2), which both end.
fn sound() -> Scene {
    let mut scene = Scene::new(1, 100 * MS);
    scene.fork(MS, 1, 2).exit(100 * MS, 2, (MS, 0)).exit(S, 1, (MS, 0));
    scene
}

fn checked(recording: &Recording) -> Vec<Law> {
    recording.health().laws
}

fn found(recording: &Recording, name: &str) -> Law {
    checked(recording).into_iter().find(|law| law.name == name).unwrap()
}

/// The laws that do not hold, with what was found.
fn broken(recording: &Recording) -> Vec<(&'static str, f64)> {
    let laws = checked(recording).into_iter().filter(Law::is_broken);
    laws.map(|law| (law.name, law.found.unwrap())).collect()
}

#[test]
fn each_law_has_words_of_its_own_and_says_what_it_needs() {
    let names =
        ["births", "parents", "starts", "clock", "waits", "lookups", "opens", "failed execs"];
    let all = names.into_iter().chain(["cpu", "cgroup"]);
    let says: BTreeSet<&str> = all.map(|name| about(name).0).collect();
    assert_eq!(says.len(), 10);
    assert!(says.iter().all(|says| says.contains(' ')));
    assert_eq!(about("births").2, [Quantity::Forks]);
    assert_eq!(about("births").1, "tasks");
    assert_eq!((about("cpu").1, about("cgroup").1), ("s", "s"));
    assert_eq!(about("failed execs").2, [Quantity::LookupsExec]);
    assert_eq!(about("opens").2, [Quantity::OpenedFiles]);
}

#[test]
fn a_sound_recording_keeps_each_law() {
    let recording = sound().load(Some((S, 2 * MS, 0)));
    let laws = checked(&recording);
    assert_eq!(broken(&recording), []);
    let births = found(&recording, "births");
    assert_eq!((births.holds, births.expected, births.found), (Some(true), Some(2.0), Some(2.0)));
    assert_eq!(births.not_checked, None);
    assert!(laws.iter().all(|law| law.name != "opens" && law.name != "cgroup"));
}

#[test]
fn each_broken_law_says_what_was_found() {
    let mut scene = sound();
    scene.open_failed(500 * MS, 7, "/x");
    let recording = scene.load(Some((S, 2 * MS, 0)));
    assert!(broken(&recording).contains(&("parents", 1.0)), "{:?}", broken(&recording));
    let mut recording = sound().load(Some((S, 2 * MS, 0)));
    (recording.counts.exits, recording.counts.orphan_exits) = (3, 1);
    assert_eq!(broken(&recording), [("births", 3.0), ("starts", 1.0)]);
    // More failed opens than there are records of, and a failed exec without any.
    let mut scene = Scene::new(1, 100 * MS);
    scene.open_failed(MS, 1, "/x").exit_with(S, 1, (MS, 0), |exit| {
        (exit.lookups_failed, exit.execs_failed) = (3, 1);
    });
    let recording = scene.load(Some((S, MS, 0)));
    assert_eq!(found(&recording, "lookups").expected, Some(3.0));
    assert_eq!(broken(&recording), [("lookups", 1.0), ("failed execs", 0.0)]);
    let recording = sound().load(Some((S, 9 * MS, 0)));
    assert_eq!(broken(&recording), [("cpu", 0.002)]);
}

#[test]
fn what_lives_has_not_told_its_counts() {
    let mut scene = Scene::new(1, 100 * MS);
    scene.fork(MS, 1, 2).exit(S, 1, (MS, 0));
    let mut recording = scene.load(Some((S, MS, 0)));
    let births = found(&recording, "births");
    assert_eq!((births.holds, births.found), (Some(true), Some(2.0)));
    let lookups = found(&recording, "lookups");
    assert_eq!((lookups.holds, lookups.found, lookups.expected), (None, None, None));
    let why = "live tasks have not reported their counts yet";
    assert_eq!(lookups.not_checked.as_deref(), Some(why));
    let cpu = found(&recording, "cpu").not_checked;
    assert_eq!(cpu.as_deref(), Some("1 process was still alive"));
    recording.blind.let_go.insert(1);
    let why = found(&recording, "lookups").not_checked.unwrap();
    assert!(why.contains("a debugger"), "{why}");
    let why = found(&recording, "cpu").not_checked.unwrap();
    assert_eq!(why, "the end of 1 process is not recorded");
}

#[test]
fn what_is_not_known_is_not_checked() {
    let mut recording = sound().load(Some((S, 2 * MS, 0)));
    recording.knows.lacks(Quantity::LookupsStat, "left out".to_owned());
    // The other families are known.
    assert_eq!(found(&recording, "lookups").holds, Some(true));
    for family in Quantity::LOOKUPS {
        recording.knows.lacks(family, "left out".to_owned());
    }
    let lookups = found(&recording, "lookups");
    assert_eq!((lookups.holds, lookups.expected, lookups.found), (None, None, None));
    assert!(lookups.not_checked.unwrap().contains("left out"));
    recording.knows.lacks(Quantity::Forks, "no births".to_owned());
    let births = found(&recording, "births");
    assert_eq!((births.holds, births.expected, births.found), (None, None, None));
    assert!(births.not_checked.unwrap().contains("no births"));
    // It needs nothing.
    assert_eq!(found(&recording, "clock").holds, Some(true));
    let estimate = Knowledge::Estimate { method: "of wait4".to_owned() };
    recording.header.knowledge.insert(Quantity::Cpu.name().to_owned(), estimate);
    let why = found(&recording, "waits").not_checked;
    assert_eq!(why.as_deref(), Some("an estimate: of wait4"));
}

#[test]
fn damage_is_told_but_for_the_end_of_what_is_being_written() {
    let cut = |what: DamageKind| {
        let mut recording = sound().load(None);
        recording.cut_short(Damage { offset: 9, what, records: None });
        recording
    };
    let mut recording = cut(DamageKind::Truncated);
    let health = recording.health();
    assert_eq!((health.damage.len(), health.complete, health.laws.is_empty()), (1, false, false));
    recording.set_recording_now(true);
    let health = recording.health();
    assert_eq!((health.damage.len(), health.recording_now, health.laws.len()), (0, true, 0));
    recording.undecodable = 2;
    assert_eq!(recording.health().damage, ["2 records cannot be decoded"]);
    let mut recording = cut(DamageKind::Corrupt);
    recording.set_recording_now(true);
    assert_eq!(recording.health().damage.len(), 1);
}

#[test]
fn losses_of_one_kind_and_reason_are_one() {
    let mut recording = sound().load(None);
    let loss = |kind, cpu, count| LossCount {
        kind,
        reason: LossReason::from_number(1).unwrap(),
        cpu: Some(cpu),
        count,
    };
    recording.trailer.as_mut().unwrap().losses =
        vec![loss(Kind::Fork, 0, 3), loss(Kind::Exit, 0, 1), loss(Kind::Fork, 1, 4)];
    let health = recording.health();
    let told: Vec<_> = health.losses.iter().map(|loss| (&*loss.kind, loss.count)).collect();
    assert_eq!(told, [("exit", 1), ("fork", 7)]);
    assert_eq!(health.lost, 8);
    // Cut short: what the records told until then.
    recording.trailer = None;
    recording.counts.losses.insert((Kind::Exec as u16, 1, 0), 5);
    assert_eq!(recording.health().lost, 5);
}

#[test]
fn cpu_time_agrees_within_what_the_kernel_rounds() {
    // 100 us, and 2 us for each of two processes.
    let holds = |told_ns: u64| {
        let law = found(&sound().load(Some((S, told_ns, 0))), "cpu");
        assert_eq!(law.expected, Some(told_ns as f64 / 1e9));
        assert_eq!((law.found, law.unit), (Some(0.002), "s"));
        law.holds.unwrap()
    };
    let (exact_ns, within_ns, beyond_ns) = (2 * MS, 103_000, 105_000);
    assert!(holds(exact_ns) && holds(exact_ns + within_ns) && holds(exact_ns - within_ns));
    assert!(!holds(exact_ns + beyond_ns) && !holds(exact_ns - beyond_ns));
}

#[test]
fn cpu_time_agrees_with_that_of_its_cgroup() {
    let mut scene = Scene::new(1, 100 * MS);
    scene.exit(S, 1, (100 * MS, 0));
    let mut recording = scene.load(Some((S, 100 * MS, 0)));
    // 200 us, and a thousandth.
    let mut holds = |usage_ns: u64| {
        let used = proctrace_trace::CgroupUsage {
            path: "/job".to_owned(),
            usage_ns,
            user_ns: usage_ns,
            system_ns: 0,
        };
        recording.trailer.as_mut().unwrap().cgroup = Some(used);
        let law = found(&recording, "cgroup");
        assert_eq!(law.expected, Some(usage_ns as f64 / 1e9));
        assert_eq!(law.found, Some(0.1));
        law.holds.unwrap()
    };
    let (exact_ns, within_ns, beyond_ns) = (100 * MS, 299_000, 302_000);
    assert!(holds(exact_ns) && holds(exact_ns + within_ns) && holds(exact_ns - within_ns));
    assert!(!holds(exact_ns + beyond_ns) && !holds(exact_ns - beyond_ns));
}

#[test]
fn a_clock_may_be_off_by_a_second() {
    let mut recording = sound().load(None);
    let outside = |recording: &Recording| found(recording, "clock").found.unwrap();
    let child = recording.tasks[1].born_ns;
    recording.header.started_ns = child + S;
    let at_the_limit = outside(&recording);
    recording.header.started_ns = child + S + 1;
    assert_eq!(outside(&recording), at_the_limit + 1.0);
    recording.header.started_ns = 0;
    let ended_ns = recording.tasks[0].ended_ns().unwrap();
    recording.trailer.as_mut().unwrap().ended_ns = ended_ns - S;
    assert_eq!(outside(&recording), 0.0);
    recording.trailer.as_mut().unwrap().ended_ns = ended_ns - S - 1;
    assert_eq!(outside(&recording), 1.0);
}

/// What was never waited for (3) may be what the kernel left out of a child that was (2): both sides allow for it.
#[test]
fn what_the_kernel_left_out_is_allowed_for_on_both_sides() {
    let holds = |told_ns: u64| {
        let mut scene = Scene::new(1, 100 * MS);
        scene.fork(0, 1, 2).fork(MS, 2, 3);
        scene.exit_with(40 * MS, 2, (10 * MS, 0), |exit| {
            exit.run_at_exit_ns = 2 * MS;
            exit.bits |= proctrace_wire::layout::EXIT_RELEASED;
        });
        scene.exit(500 * MS, 3, (4 * MS, 0)).exit(S, 1, (MS, 0));
        let recording = scene.load(Some((S, told_ns, 0)));
        let accounting = Accounting::of(&recording);
        assert_eq!((accounting.tail_ns, accounting.unwaited_ns), (8 * MS, 4 * MS));
        found(&recording, "cpu").holds.unwrap()
    };
    // 15 ms in all, of which 4 were not waited for: 11, less at most 8, or more by what is hidden, at most 4.
    let all: Vec<u64> = (1..20).filter(|ms| holds(ms * MS)).collect();
    assert_eq!(all, (3..=15).collect::<Vec<u64>>());
}
