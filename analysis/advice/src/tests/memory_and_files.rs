//! Scenes of peaks of memory, and of files that are opened or looked for again.

use proctrace_findings::{Advice, Gain};
use proctrace_scenes::{MB, MS, S};
use proctrace_wire::layout;

use super::{Job, kinds, ms, of};
use crate::{AdviceRules, advise};

/// futex(2) of x86-64.
const FUTEX: i16 = 202;

/// Kind of wait of a process that another one ends.
enum Waits {
    No,
    /// Data: a futex in shared memory.
    ForData,
    /// A lock in the kernel.
    ForTheKernel,
}

/// A shell with so many processes of 200 MB and one of 300 MB, which live at the same time; the latter has a peak
/// RSS of 350 MB and waits, or not, for the first of the others.
fn together(others: u64, waits: Waits) -> Vec<Advice> {
    let mut job = Job::new();
    let large = job.start(&["large"]);
    let others: Vec<u32> = (0..others).map(|_| job.start(&["other"])).collect();
    for at in [S, 2 * S] {
        job.scene.memory(at, 1, (3 * MB, 2 * MB, MB));
        job.scene.memory(at + MS, large, (310 * MB, 300 * MB, 290 * MB));
        for other in &others {
            job.scene.memory(at + 2 * MS, *other, (210 * MB, 200 * MB, 190 * MB));
        }
    }
    match waits {
        Waits::No => {}
        Waits::ForData => job.waits(large, 100, 200, FUTEX, others[0]),
        Waits::ForTheKernel => {
            job.scene.wait_with(large, (100 * MS, 200 * MS, 200 * MS), |wait| {
                (wait.state, wait.waker, wait.bits) =
                    (b'D'.into(), others[0], layout::WAIT_BY_TASK);
            });
        }
    }
    let peak = |bytes: u64| {
        move |exit: &mut proctrace_wire::layout::Exit| exit.maxrss_pages = bytes / 4096
    };
    job.now = 3000;
    for other in others {
        job.scene.exit_with(2_900 * MS, other, (S, 0), peak(220 * MB));
    }
    job.scene.exit_with(3_000 * MS, large, (S, 0), peak(350 * MB));
    job.advice()
}

#[test]
fn two_that_make_a_peak_could_run_one_after_the_other() {
    let advice = together(1, Waits::No);
    let found = of(&advice, "memory-peak");
    // 502 MB, of which 302 MB are left without the smaller one; it has 190 MB alone, and 220 MB at its peak.
    let expected = Gain { low: 171 * MB, middle: 200 * MB, high: 242 * MB };
    let memory = found.memory_bytes.unwrap();
    assert_eq!(memory.middle, expected.middle);
    let near = |one: u64, other: u64| one.abs_diff(other) < 100;
    assert!(near(memory.low, expected.low) && near(memory.high, expected.high), "{memory:?}");
    assert_eq!((found.wall_ns, found.cpu_ns), (ms(0, 0, 0), ms(0, 0, 0)));
}

#[test]
fn one_that_waits_for_the_other_or_is_alone_makes_its_own_peak() {
    assert!(!kinds(&together(1, Waits::ForData)).contains(&"memory-peak"));
    assert!(!kinds(&together(0, Waits::No)).contains(&"memory-peak"));
}

#[test]
fn a_lock_in_the_kernel_does_not_tie_two_together() {
    assert!(kinds(&together(1, Waits::ForTheKernel)).contains(&"memory-peak"));
}

#[test]
fn a_pool_of_workers_is_one_group() {
    // 902 MB: without the pool 302 MB are left, without the large one 602 MB.
    let advice = together(3, Waits::No);
    let found = of(&advice, "memory-peak");
    assert_eq!(found.memory_bytes.unwrap().middle, 300 * MB);
    assert!(found.what.contains("3 × `other`"), "{}", found.what);
    // A pool alone has no second group.
    let mut job = Job::new();
    let pool: Vec<u32> = (0..3).map(|_| job.start(&["other"])).collect();
    for worker in &pool {
        job.scene.memory(S, *worker, (210 * MB, 200 * MB, 190 * MB));
    }
    job.now = 2000;
    for worker in &pool {
        job.scene.exit(2 * S, *worker, (S, 0));
    }
    assert!(!kinds(&job.advice()).contains(&"memory-peak"));
}

#[test]
fn memory_comes_after_wall_and_cpu_time_and_has_its_own_threshold() {
    let mut job = Job::new();
    let (one, other) = (job.start(&["one"]), job.start(&["other"]));
    job.scene.memory(S, one, (210 * MB, 200 * MB, 190 * MB));
    job.scene.memory(S, other, (210 * MB, 200 * MB, 190 * MB));
    job.scene.exit(1_500 * MS, one, (S, 0)).exit(1_500 * MS, other, (S, 0));
    job.now = 1_500;
    job.sleeps(500);
    let recording = job.load();
    let of = |min_percent: f64| advise(&recording, &AdviceRules::built_in(), min_percent);
    let advised = of(1.0);
    assert_eq!(kinds(&advised.advice), ["timer-in-path", "memory-peak"]);
    assert_eq!(advised.peak_bytes, Some(400 * MB));
    assert_eq!(kinds(&of(51.0).advice), [] as [&str; 0]);
}

/// A process of 10 ms that opens a file so often.
fn opens(times: u32) -> Vec<Advice> {
    let mut job = Job::new();
    let child = job.start(&["tool"]);
    job.scene.open(0, child, 1, "/data/list", 0);
    for _ in 1..times {
        job.scene.open_again(0, child, 1);
    }
    job.end(child, 10, 10);
    job.advice()
}

/// A process of 10 ms that looks for a file in vain so often, for this time each.
fn looks_for(times: u32, each_ns: u32) -> Vec<Advice> {
    let mut job = Job::new();
    let child = job.start(&["tool"]);
    for _ in 0..times {
        job.scene.open_failed_timed(0, child, (1, "/data/list"), each_ns);
    }
    job.end(child, 10, 10);
    job.advice()
}

#[test]
fn a_file_that_is_opened_again_costs_a_multiple_of_a_failed_open() {
    let advice = opens(201);
    // No failed open was timed: 200 opens of 0.8, 1.8 x 1.5 or 2.7 x 3 µs.
    let found = of(&advice, "repeated-opens");
    assert_eq!(found.wall_ns, Gain { low: 144_000, middle: 540_000, high: 1_782_000 });
    assert_eq!(found.commands, ["tool"]);
    assert!(found.evidence.contains("200 × /data/list"), "{}", found.evidence);
    assert!(!kinds(&opens(50)).contains(&"repeated-opens"));
}

#[test]
fn a_file_that_is_looked_for_again_costs_what_the_timed_ones_did() {
    let advice = looks_for(101, 10_000);
    let found = of(&advice, "repeated-opens");
    assert_eq!((found.wall_ns.middle, found.cpu_ns.middle), (MS, MS));
    // Half more, 10 %.
    assert_eq!(found.cpu_ns.high, 1_650_000);
    assert!(found.evidence.contains("100 × /data/list"), "{}", found.evidence);
    // The first look-up is needed, and nine more are less than a hundredth.
    assert!(!kinds(&looks_for(10, 10_000)).contains(&"repeated-opens"));
}

#[test]
fn the_work_beside_short_look_ups_is_longer_than_they_are() {
    let advice = looks_for(1_001, 200);
    let found = of(&advice, "repeated-opens");
    // 0.5 µs more each, 10 %.
    assert_eq!((found.cpu_ns.middle, found.cpu_ns.high), (200_000, 770_000));
    // 10,000 would take 12 ms, but the process has used 10 ms.
    let advice = looks_for(10_001, 600);
    assert_eq!(of(&advice, "repeated-opens").cpu_ns.high, 11_000_000);
}
