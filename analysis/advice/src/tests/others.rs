//! Scenes of the other kinds: children at once or in a row, waits for CPUs, failures, wrappers, loading, cures.

use proctrace_findings::{Advice, Taken};
use proctrace_scenes::MS;

use super::super::{AdviceRules, Found, advise, agreed, observed};
use super::{Job, WAIT4, kinds, ms, of};

#[test]
fn children_one_after_the_other_could_run_at_once() {
    let mut job = Job::new();
    (0..4).for_each(|at| job.run(&["work", &format!("{at}x")], 100));
    let advice = job.advice();
    assert_eq!(kinds(&advice), ["serial-stretch"]);
    // On four cores all of them take as long as one.
    assert_eq!(advice[0].wall_ns, ms(0, 300, 300));
    let mut eight = Job::new();
    (0..8).for_each(|at| eight.run(&["work", &format!("{at}x")], 100));
    assert_eq!(of(&eight.advice(), "serial-stretch").wall_ns, ms(0, 600, 700));
}

#[test]
fn different_commands_of_a_shell_depend_on_each_other_but_those_of_make_may_not() {
    let steps = |job: &mut Job| {
        ["compile", "link", "check"].iter().for_each(|step| job.run(&[step], 100));
        job.advice()
    };
    assert_eq!(kinds(&steps(&mut Job::new())), [] as [&str; 0]);
    let advice = steps(&mut Job::of(&["/usr/bin/make", "all"]));
    assert_eq!(kinds(&advice), ["make-without-j"]);
    // Three steps may be those of one thing, four of a kind are four things.
    assert_eq!(advice[0].wall_ns, ms(0, 200, 200));
    let mut job = Job::of(&["/usr/bin/make", "all"]);
    (0..4).for_each(|at| job.run(&["compile", &format!("{at}x.c")], 100));
    assert_eq!(of(&job.advice(), "make-without-j").wall_ns, ms(75, 300, 300));
}

/// -j of the first make is that of all: one piece of advice. Below taskset, there may be fewer cores.
#[test]
fn all_makes_are_one_change() {
    let mut job = Job::of(&["/usr/bin/taskset", "-c", "0", "sh", "job.sh"]);
    job.scene.exec_with(0, 1, "/bin/sh", &["sh", "job.sh"], (0, 0));
    for _ in 0..2 {
        let (make, began) = (job.start(&["make", "all"]), job.now);
        for step in ["compile", "link", "check"] {
            let (child, since) = (job.next, job.now);
            (job.next, job.now) = (job.next + 1, job.now + 100);
            job.scene.fork(since * MS, make, child);
            job.scene.exec_with(since * MS, child, &format!("/bin/{step}"), &[step], (0, 0));
            job.scene.exit(job.now * MS, child, (100 * MS, 0));
            job.waits(make, since, job.now, WAIT4, child);
        }
        job.scene.exit(job.now * MS, make, (0, 0));
        job.waits(1, began, job.now, WAIT4, make);
    }
    let advice = job.advice();
    assert_eq!(kinds(&advice), ["make-without-j"], "{advice:#?}");
    assert_eq!((advice[0].wall_ns, advice[0].processes), (ms(0, 400, 400), 6));
    let seen = "`make all` and 1 other run 6 children one after the other, 600 ms in total";
    assert!(advice[0].evidence.starts_with(seen), "{}", advice[0].evidence);
    assert!(advice[0].risk.ends_with("`taskset` may keep them on fewer cores: --cores"));
}

#[test]
fn children_that_run_at_once_are_no_row() {
    let mut job = Job::new();
    let all: Vec<u32> = (0..4).map(|at| job.start(&["work", &format!("{at}x")])).collect();
    all.into_iter().zip([30, 1, 1, 1]).for_each(|(child, takes)| job.end(child, takes, takes));
    assert_eq!(kinds(&job.advice()), [] as [&str; 0]);
}

fn workers(last: u64) -> Vec<Advice> {
    let mut job = Job::new();
    let all: Vec<u32> = (0..4).map(|at| job.start(&["work", &format!("{at}x")])).collect();
    for (child, takes) in all.into_iter().zip([100, 1, 1, last]) {
        job.end(child, takes, takes);
    }
    job.advice()
}

#[test]
fn a_worker_that_ends_late_is_waited_for() {
    let advice = workers(200);
    assert_eq!(kinds(&advice), ["straggler"]);
    assert_eq!(advice[0].wall_ns, ms(0, 150, 220));
    assert_eq!(kinds(&workers(2)), [] as [&str; 0]);
}

#[test]
fn a_task_that_waits_for_a_cpu_is_late() {
    let waits = |running: u32, cpu: u64| {
        let mut job = Job::new();
        let others: Vec<u32> = (0..5).map(|at| job.start(&["work", &format!("{at}x")])).collect();
        job.scene.wait_for_cpu(1, 100 * MS, 200 * MS).tick(150 * MS, [running, 0, 0]);
        job.computes(299);
        for child in others {
            job.scene.exit_with(job.now * MS, child, (cpu * MS, 0), |exit| {
                exit.run_delay_ns = (299 - cpu) * MS;
            });
        }
        job.computes(1);
        job.advice()
    };
    let advice = waits(5, 240);
    assert_eq!(kinds(&advice), ["overcommit"]);
    // It runs for 200 ms, a fifth of which it may spin.
    let wall = advice[0].wall_ns;
    assert_eq!((wall.low, wall.middle, wall.high.div_ceil(MS)), (0, 50 * MS, 154));
    // If they have half of the CPU time, other jobs have the rest, and are waited for as much.
    let half = of(&waits(5, 120), "overcommit").wall_ns;
    assert!((95..105).contains(&half.high.div_ceil(MS)), "{half:?}");
    // On four cores, four of its tasks have room: another job takes the CPU.
    assert_eq!(kinds(&waits(4, 240)), [] as [&str; 0]);
}

fn attempts(command: &str, status: u32) -> Vec<Advice> {
    let mut job = Job::new();
    for _ in 0..4 {
        let child = job.start(&[command, "x"]);
        let since = job.now;
        job.now += 20;
        let end_ns = job.now * MS;
        job.scene.exit_with(end_ns, child, (20 * MS, 0), |exit| exit.status = status);
        job.waits(1, since, job.now, WAIT4, child);
        job.computes(20);
    }
    job.advice()
}

#[test]
fn a_command_that_fails_each_time_is_not_worth_another_try() {
    let advice = attempts("flaky", 1 << 8);
    let failed = of(&advice, "failed-again");
    assert_eq!(failed.wall_ns.low, 72 * MS);
    assert!(failed.evidence.contains("exits with 1"), "{}", failed.evidence);
    assert!(!kinds(&attempts("flaky", 0)).contains(&"failed-again"));
    assert!(!kinds(&attempts("grep", 1 << 8)).contains(&"failed-again"));
}

#[test]
fn a_command_that_works_in_the_end_may_have_been_needed_before() {
    let mut job = Job::new();
    for status in [1 << 8, 1 << 8, 1 << 8, 0] {
        let child = job.start(&["fetch", "all"]);
        job.now += 20;
        job.scene.exit_with(job.now * MS, child, (20 * MS, 0), |exit| exit.status = status);
        job.waits(1, job.now - 20, job.now, WAIT4, child);
    }
    let advice = job.advice();
    let found = of(&advice, "failed-again");
    assert!(!found.is_certain() && found.wall_ns.middle > 0, "{found:#?}");
}

/// A script, which may have been there before, starts helpers of 10 ms each, and then executes the program.
fn wrapped(helpers: u32, was_there: bool) -> Vec<Advice> {
    let mut job = Job::new();
    let wrapper = match was_there {
        false => job.start(&["shim", "run"]),
        true => {
            let task = job.next;
            job.next += 1;
            job.scene.there_before(0, task, 1_000 * MS).exec(0, task, "/bin/shim", (0, 0));
            task
        }
    };
    for at in 0..helpers {
        let child = job.next;
        job.next += 1;
        job.scene.fork(job.now * MS, wrapper, child);
        let name = format!("helper{at}");
        job.scene.exec(job.now * MS, child, &format!("/bin/{name}"), (0, 0));
        let since = job.now;
        job.now += 10;
        job.scene.exit(job.now * MS, child, (10 * MS, 0));
        job.waits(wrapper, since, job.now, WAIT4, child);
    }
    job.scene.exec(job.now * MS, wrapper, "/opt/program", (5 * MS, 0));
    let begun = job.now;
    job.now += 100;
    job.scene.exit(job.now * MS, wrapper, (105 * MS, 0));
    job.waits(1, 0, begun + 100, WAIT4, wrapper);
    job.advice()
}

#[test]
fn what_runs_before_the_program_is_the_wrappers() {
    let advice = wrapped(4, false);
    assert_eq!(kinds(&advice), ["wrappers"]);
    assert_eq!(advice[0].processes, 4);
    assert_eq!((advice[0].wall_ns.low, advice[0].wall_ns.middle), (36 * MS, 40 * MS));
    // The helpers, and 5 ms of the script itself.
    assert_eq!(advice[0].cpu_ns.middle, 45 * MS);
    assert_eq!(kinds(&wrapped(2, false)), [] as [&str; 0]);
    // It may be a subshell, of which only the first exec is not its own.
    assert!(!kinds(&wrapped(4, true)).contains(&"wrappers"));
}

#[test]
fn starts_that_mostly_load_could_be_one() {
    let starts = |loads: u64| {
        let mut job = Job::new();
        for at in 0..11_u32 {
            let child = job.start(&["tool", &format!("{at}x")]);
            job.scene.open_failed((job.now + loads) * MS, child, "/a/libtool.so");
            job.end(child, 10, 10);
            job.computes(10);
        }
        job.advice()
    };
    let advice = starts(6);
    let found = of(&advice, "startup-cost");
    // All of ten starts, and what the shell takes for them, is 200 ms of the path and 109 ms of the CPU time.
    assert_eq!(found.wall_ns, ms(0, 60, 220));
    assert_eq!((found.cpu_ns.low, found.cpu_ns.middle), (0, 60 * MS));
    assert_eq!(found.cpu_ns.high.div_ceil(MS), 120);
    assert!(!kinds(&starts(1)).contains(&"startup-cost"));
}

#[test]
fn a_known_cure_saves_its_part() {
    let configure = |name: &str| {
        let mut job = Job::of(&["sh", "./configure"]);
        (0..20).for_each(|_| job.run(&["gcc", "-o", name, "a.c"], 10));
        job.run(&["sh", "./config.status"], 1);
        job.advice()
    };
    let advice = configure("conftest");
    // Of 200 ms: half of 180, 90 % of 200, all of that and of the time of the shell.
    assert_eq!(of(&advice, "known-cure").wall_ns, ms(90, 180, 201));
    assert!(!kinds(&configure("program")).contains(&"known-cure"));
}

#[test]
fn children_that_run_two_at_a_time_are_no_row() {
    // As make -j2 does: half of them are on the path.
    let mut job = Job::of(&["/usr/bin/make", "-j2"]);
    for pair in 0..4 {
        let both = [pair, pair + 10].map(|at| job.start(&["work", &format!("{at}x")]));
        both.into_iter().zip([99, 1]).for_each(|(child, takes)| job.end(child, takes, takes));
    }
    assert_eq!(kinds(&job.advice()), [] as [&str; 0]);
}

#[test]
fn children_that_are_waited_for_by_sleeping_are_a_row() {
    let mut job = Job::new();
    for at in 0..4 {
        let child = job.start(&["work", &format!("{at}x")]);
        (0..2).for_each(|_| job.sleeps(50));
        job.end(child, 1, 90);
    }
    let advice = job.advice();
    let wall = of(&advice, "serial-stretch").wall_ns;
    // The time of the sleeps is that of the children.
    assert_eq!(wall, ms(0, 303, 303));
}

#[test]
fn together_each_process_counts_once() {
    let mut job = Job::new();
    (0..20).for_each(|at| job.run(&["basename", &format!("{at}x")], 10));
    (0..4).for_each(|at| job.run(&["gzip", &format!("{at}x")], 100));
    let advised = advise(&job.load(), &AdviceRules::built_in(), 1.0);
    let (short, row) =
        (of(&advised.advice, "short-commands"), of(&advised.advice, "serial-stretch"));
    let together = advised.together.unwrap();
    // The low figure of short commands keeps one of them, which the one of all advice need not.
    assert_eq!(together.wall_ns.low, 180 * MS);
    assert_eq!(together.wall_ns.middle, short.wall_ns.middle + row.wall_ns.middle);
    assert_eq!(together.wall_ns.high, short.wall_ns.high + row.wall_ns.high);
    assert_eq!(together.cpu_ns.middle, 200 * MS);
}

#[test]
fn what_runs_at_another_time_can_still_be_left_out() {
    let mut job = Job::new();
    (0..6).for_each(|_| job.run(&["work", "same"], 100));
    let advice = job.advice();
    // Five of six runs are not needed, or each needs what the one before it did: they are no row.
    assert_eq!(of(&advice, "repeated-command").part_of, None);
    assert!(advice.iter().all(|advice| advice.kind != "serial-stretch"));
    let mut job = Job::new();
    (0..8).for_each(|at| {
        let child = job.start(&["work", &format!("{at}x")]);
        let helper = job.next;
        job.next += 1;
        job.scene.fork(job.now * MS, child, helper);
        job.scene.exec_with(job.now * MS, helper, "/bin/tool", &["tool", "same"], (0, 0));
        job.scene.exit((job.now + 20) * MS, helper, (20 * MS, 0));
        job.end(child, 100, 80);
    });
    let advice = job.advice();
    assert_eq!(of(&advice, "serial-stretch").part_of, None);
    assert_eq!(of(&advice, "repeated-command").part_of, None);
}

/// Makefiles that cmake has written: the make that runs the others is the only child of one of the same name.
#[test]
fn makes_below_a_make_are_seen_to_run_at_once() {
    let job = |at_once: u64, flag: &str| {
        let mut job = Job::of(&["/usr/bin/make", flag]);
        let middle = job.start(&["make", "-f", "Makefile2", "all"]);
        let began = job.now;
        for round in 0..8 / at_once {
            let since = job.now;
            job.now += 100;
            for at in 0..at_once {
                let child = job.next;
                job.next += 1;
                let of = format!("{round}x{at}.make");
                job.scene.fork(since * MS, middle, child);
                job.scene.exec_with(since * MS, child, "/bin/make", &["make", "-f", &of], (0, 0));
                job.scene.exit(job.now * MS, child, (100 * MS, 0));
            }
            job.waits(middle, since, job.now, WAIT4, job.next - 1);
        }
        job.scene.exit(job.now * MS, middle, (0, 0));
        job.waits(1, began, job.now, WAIT4, middle);
        job.load()
    };
    let (before, after) = (job(1, "all"), job(2, "-j2"));
    let seen = observed(&before, &after, &AdviceRules::built_in(), 1.0);
    let make = seen.advice.iter().find(|one| one.advice.kind == "make-without-j").unwrap();
    assert_eq!((make.verdict.taken, &*make.verdict.because), (Taken::Yes, "1.0 -> 2.0 at once"));
}

/// `easyrsa build-client-full NAME` changes the files of its authority each time: whether such children need each other is not
/// in their names. That of programs like gzip is known, and the files that were opened show it.
#[test]
fn children_whose_independence_is_not_known_may_gain_nothing() {
    let low_ns = |name: &str, path: Option<fn(u64) -> String>| {
        let mut job = Job::new();
        for at in 0..4 {
            let child = job.start(&[name, &format!("{at}x")]);
            if let Some(path) = path {
                job.scene.open(job.now * MS + 1, child, at as u32 + 1, &path(at), 0o101);
            }
            job.end(child, 100, 100);
        }
        let advice = job.advice();
        let found = advice.iter().find(|one| one.kind == "serial-stretch");
        found.map(|found| found.wall_ns.low)
    };
    assert_eq!(low_ns("easyrsa", None), Some(0));
    assert!(low_ns("gzip", None) > Some(0));
    assert!(low_ns("gzip", Some(|at| format!("/out/{at}"))) > Some(0));
    // One may have been renamed to what another one reads.
    assert_eq!(low_ns("easyrsa", Some(|at| format!("/out/{at}"))), Some(0));
    assert_eq!(low_ns("gzip", Some(|_| "/pki/index.txt".to_owned())), None);
    assert!(low_ns("gzip", Some(|_| "/dev/null".to_owned())) > Some(0));
}

/// `dh_clean` writes nothing, and removes files.
#[test]
fn a_command_that_may_change_something_may_be_needed_again() {
    let low_ns = |argv: &[&str]| {
        let mut job = Job::new();
        (0..8).for_each(|_| job.run(argv, 50));
        of(&job.advice(), "repeated-command").wall_ns.low
    };
    assert_eq!(low_ns(&["dh_clean", "all"]), 0);
    assert!(low_ns(&["root-config", "--libs"]) > 0 && low_ns(&["tool", "--version"]) > 0);
}

#[test]
fn of_advice_that_contradicts_other_advice_the_better_is_left() {
    let found = |kind: &'static str| {
        let risk = "a".to_owned();
        Found::about(Vec::new(), Advice { kind, risk, ..Advice::default() })
    };
    let agree = |kinds: &[&'static str]| {
        let mut all: Vec<Found> = kinds.iter().map(|kind| found(kind)).collect();
        agreed(&mut all);
        all.into_iter().map(|one| (one.advice.kind, one.advice.risk)).collect::<Vec<_>>()
    };
    let more = agree(&["serial-stretch", "polling", "overcommit"]);
    assert_eq!(more.len(), 2);
    assert!(more[0].1.starts_with("a; at other times, more of its tasks want to run"));
    assert_eq!(more[1], ("polling", "a".to_owned()));
    let less = agree(&["overcommit", "make-without-j", "serial-process"]);
    assert_eq!(less.len(), 1);
    assert!(less[0].1.starts_with("a; at other times, cores are idle"));
    assert_eq!(agree(&["serial-stretch", "serial-process"]).len(), 2);
}
