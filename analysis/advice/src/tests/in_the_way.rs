//! Scenes of one process in the way of others: serial parts, writers, processes left behind, large forks, searches.

use proctrace_findings::Advice;
use proctrace_scenes::{MB, MS, S, Scene, daemon};

use super::{Job, WAIT4, kinds, ms, of};
use crate::{AdviceRules, advise};

/// futex(2) of x86-64.
const FUTEX: i16 = 202;

/// Workers for 400 ms, of which so many run at once, and then one process for as long, with others.
fn merged(workers: u32, beside: u32) -> Job {
    let mut job = Job::new();
    let all: Vec<u32> = (0..workers).map(|at| job.start(&["work", &format!("{at}x")])).collect();
    for at in 1..=3 {
        job.scene.tick(at * 100 * MS, [workers, 0, 0]);
    }
    job.now = 400;
    for worker in all {
        job.scene.exit(400 * MS, worker, (400 * MS, 0));
        job.waits(1, 399, 400, WAIT4, worker);
    }
    for at in 4..=7 {
        job.scene.tick(at * 100 * MS + 50 * MS, [1 + beside, 0, 0]);
    }
    job.run(&["merge"], 400);
    job
}

#[test]
fn what_computes_alone_after_a_pool_could_be_divided() {
    let advice = merged(4, 0).advice();
    let found = of(&advice, "serial-process");
    assert_eq!(found.wall_ns, ms(0, 150, 330));
    assert_eq!(found.commands, ["merge"]);
    assert!(found.evidence.contains("`work 0x` is on the path for"), "{}", found.evidence);
}

#[test]
fn a_process_that_is_not_alone_or_is_all_of_the_job_is_no_serial_part() {
    assert!(!kinds(&merged(4, 1).advice()).contains(&"serial-process"));
    // One worker: at no time is there work for several cores.
    assert!(!kinds(&merged(1, 0).advice()).contains(&"serial-process"));
}

/// Producers of 300 ms that wait for one process nearly all of the time.
fn compressed(producers: u64, busy: bool) -> Vec<Advice> {
    let mut job = Job::new();
    let all: Vec<u32> = (0..producers).map(|_| job.start(&["produce"])).collect();
    let writer = job.start(&["gzip"]);
    for (at, producer) in all.iter().enumerate() {
        job.waits(*producer, 10 * (at as u64 + 1), 290, FUTEX, writer);
        job.scene.exit(295 * MS, *producer, (10 * MS, 0));
    }
    if !busy {
        job.waits(writer, 5, 285, FUTEX, 0);
    }
    job.end(writer, 300, 300);
    job.advice()
}

#[test]
fn a_process_for_which_others_wait_is_in_their_way() {
    let advice = compressed(3, true);
    let found = of(&advice, "shared-writer");
    // Two wait from 20 ms to 290 ms, for one of three cores; they compute for 30 ms.
    assert_eq!(found.wall_ns, ms(0, 170, 198));
    assert_eq!(found.commands, ["gzip"]);
}

/// As `awstats`, whose log files are unpacked by children of it.
#[test]
fn who_reads_what_its_children_write_is_not_in_their_way() {
    let mut job = Job::new();
    let reader = job.start(&["perl", "merge.pl"]);
    let all: Vec<u32> = (0..3).map(|_| job.start_by(reader, &["gzip", "-cd"])).collect();
    for (at, child) in all.iter().enumerate() {
        job.waits(*child, 10 * (at as u64 + 1), 290, FUTEX, reader);
        job.scene.exit(295 * MS, *child, (10 * MS, 0));
    }
    job.end(reader, 300, 300);
    assert!(!kinds(&job.advice()).contains(&"shared-writer"));
}

#[test]
fn two_that_wait_or_one_that_is_not_busy_are_no_crowd() {
    assert!(!kinds(&compressed(2, true)).contains(&"shared-writer"));
    assert!(!kinds(&compressed(3, false)).contains(&"shared-writer"));
}

#[test]
fn what_outlives_its_parent_uses_cpu_time_that_nobody_counts() {
    let advice = advise(&daemon(), &AdviceRules::built_in(), 1.0).advice;
    let found = of(&advice, "detached-cpu");
    // 3 s in 3.98 s: all but 10 ms after its parent, and 2 s after the command.
    let (since, after) = (3.0 * 3.97 / 3.98, 3.0 * 2.0 / 3.98);
    let seconds = |ns: u64| ns as f64 / S as f64;
    assert!((seconds(found.cpu_ns.middle) - (after + since) / 2.0).abs() < 0.01, "{found:#?}");
    assert!((seconds(found.cpu_ns.high) - 3.0).abs() < 0.01, "{found:#?}");
    assert_eq!((found.cpu_ns.low, found.wall_ns), (0, ms(0, 0, 0)));
}

/// A process with so much memory starts ten commands, each of which comes to its exec after so long.
fn forks(rss_bytes: u64, until_exec: u64, shared: bool) -> Vec<Advice> {
    forks_before(rss_bytes, until_exec, shared, (&["/opt/big"], false))
}

/// The same, and then it may execute another program, which has the peak.
fn forks_before(
    rss_bytes: u64,
    until_exec: u64,
    shared: bool,
    (argv, executes): (&[&str], bool),
) -> Vec<Advice> {
    let mut scene = Scene::new(4, 100 * MS);
    scene.exec_with(0, 1, argv[0], argv, (0, 0));
    let mut now = 0;
    for child in 2..12 {
        // It copies its page tables.
        now += 10;
        if shared {
            scene.vfork(now * MS, 1, child);
        } else {
            scene.fork(now * MS, 1, child);
        }
        scene.exec((now + until_exec) * MS, child, "/bin/true", (0, 0));
        scene.exit((now + until_exec + 1) * MS, child, (until_exec * MS, 0));
        let (since, until) = (now * MS, (now + until_exec + 1) * MS);
        scene.sleep(1, (since, until, until), WAIT4, child);
        now += until_exec + 1;
    }
    if executes {
        scene.exec(now * MS, 1, "/opt/java", (0, 0));
        now += 1;
    }
    scene.exit_with(now * MS, 1, (100 * MS, 0), |exit| exit.maxrss_pages = rss_bytes / 4096);
    advise(&scene.load(Some((now * MS, 0, 0))), &AdviceRules::built_in(), 1.0).advice
}

#[test]
fn copies_of_page_tables_take_as_long_as_giving_them_back() {
    let advice = forks(400 * MB, 10, false);
    let found = of(&advice, "large-fork");
    // Ten times 9.8 ms; the forker has 100 ms on the path of 210 ms.
    assert_eq!((found.wall_ns.low, found.wall_ns.middle), (88_200_000, 196 * MS));
    assert_eq!(found.wall_ns.high, 210 * MS);
    assert!(found.evidence.contains("10 × true"), "{}", found.evidence);
}

#[test]
fn the_memory_of_a_later_program_is_not_that_of_the_script_before_it() {
    let forks = forks_before(400 * MB, 10, false, (&["/opt/big"], true));
    assert!(!kinds(&forks).contains(&"large-fork"));
}

#[test]
fn how_an_installed_script_starts_programs_is_not_for_who_runs_it() {
    let of = |script: &str| {
        kinds(&forks_before(400 * MB, 10, false, (&["perl", script], false)))
            .contains(&"large-fork")
    };
    assert!(of("./report.pl") && !of("/usr/bin/lintian"));
}

#[test]
fn a_small_process_may_fork_and_a_large_one_may_share_its_memory() {
    assert!(!kinds(&forks(20 * MB, 10, false)).contains(&"large-fork"));
    assert!(!kinds(&forks(400 * MB, 10, true)).contains(&"large-fork"));
}

#[test]
fn a_child_that_is_late_for_another_reason_counts_as_its_forker_allows() {
    // At most 50 µs for each of 40 MB, of 100 ms.
    let advice = forks(40 * MB, 100, false);
    assert_eq!(of(&advice, "large-fork").wall_ns.low, 18 * MS);
}

/// Five starts of a command, each with so many failed look-ups of a library, of 10 µs; the first of the directories are
/// the system's.
fn searched(lookups: u32, of_system: u32, timed: bool) -> Vec<Advice> {
    let mut job = Job::new();
    for _ in 0..5 {
        let child = job.start(&["tool"]);
        for at in 0..lookups {
            let path = match at < of_system {
                true => format!("/usr/lib/a{at}-linux-gnu/libtool.so"),
                false => format!("/opt/{at}/libtool.so"),
            };
            if timed {
                let named = (at + 1, path.as_str());
                job.scene.open_failed_timed(job.now * MS, child, named, 10_000);
            } else {
                job.scene.open_failed(job.now * MS, child, &path);
            }
        }
        job.end(child, 10, 10);
    }
    job.advice()
}

#[test]
fn searches_in_many_directories_cost_what_the_timed_ones_did() {
    let advice = searched(124, 62, true);
    let found = of(&advice, "search-in-vain");
    // 5 starts, 100 look-ups of each avoidable; all are timed, so the mean has no interval.
    assert_eq!((found.wall_ns.low, found.wall_ns.middle), (4_500_000, 5 * MS));
    assert_eq!(found.cpu_ns.middle, 5 * MS);
    // 620 look-ups, half more, 10 %.
    assert_eq!(found.wall_ns.high, 10_230_000);
    assert!(found.evidence.contains("124 directories"), "{}", found.evidence);
}

#[test]
fn a_library_that_is_nowhere_is_no_reason_to_shorten_a_list() {
    assert!(!kinds(&searched(124, 63, true)).contains(&"search-in-vain"));
}

#[test]
fn short_searches_and_those_of_unknown_cost_are_not_named() {
    assert!(!kinds(&searched(24, 0, true)).contains(&"search-in-vain"));
    assert!(!kinds(&searched(124, 0, false)).contains(&"search-in-vain"));
}
