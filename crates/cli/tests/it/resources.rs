//! Resource usage of each process, compared with wait4(2) and the programs' declarations.

use crate::common::records::{assert_agrees, assert_memory_of_files, exits, unseen_ns};
use crate::common::{Events, Recorded, Recorder, fixture, report, text, u64_of};
use proctrace_wire::layout::Exit;
use serde_json::Value;

/// The output of the fixture `rusage`, by name.
struct Usage {
    user_ns: u64,
    system_ns: u64,
    maxrss_bytes: u64,
    nvcsw: u64,
    nivcsw: u64,
    minflt: u64,
    majflt: u64,
}

/// Records a program under `rusage`; returns its wait4(2) usage as well.
fn waited_for(program: &[&str]) -> (Recorded, Events, Usage) {
    let runner = fixture("rusage");
    let runner = runner.to_str().unwrap();
    let recorded = Recorder::new().run([runner].iter().chain(program));
    let events = recorded.sound(0);
    let stdout = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let figures: Vec<u64> =
        stdout.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    let usage = Usage {
        user_ns: figures[0] * 1000,
        system_ns: figures[1] * 1000,
        maxrss_bytes: figures[2] * 1024,
        nvcsw: figures[3],
        nivcsw: figures[4],
        minflt: figures[5],
        majflt: figures[6],
    };
    (recorded, events, usage)
}

/// Exits of all processes except the runner.
fn ends(events: &Events) -> Vec<&Value> {
    let runner = &events.root()["pid"];
    events.kind("exit").filter(|exit| exit["pid"] != *runner).collect()
}

fn sum(ends: &[&Value], key: &str) -> u64 {
    ends.iter().map(|end| u64_of(&end[key])).sum()
}

#[test]
fn memory_that_is_shared_is_told_from_memory_of_ones_own() {
    let recorded =
        Recorder::new().option(["--memory=100ms"]).fixture("share", &["200", "3", "1200"]);
    let events = recorded.sound(0);
    let root = &events.root()["pid"];
    assert!(events.count("memory") > 12);
    let mut together = 0;
    for memory in events.kind("memory") {
        let (pss, uss) = (u64_of(&memory["pss_bytes"]), u64_of(&memory["uss_bytes"]));
        let (rss, shared) = (u64_of(&memory["rss_bytes"]), u64_of(&memory["shared_bytes"]));
        assert_eq!(uss + shared, rss);
        assert!(uss <= pss && pss <= rss);
        if memory["pid"] != *root && shared > 150 << 20 {
            // A child shares the parent's memory, with almost none of its own.
            assert!(uss < 10 << 20, "{memory}");
            together += 1;
        }
    }
    assert!(together > 0, "no child was looked at");
    let memory = report(&recorded.trace())["memory"].clone();
    let peak = u64_of(&memory["peak_pss_bytes"]);
    // 200 MB counted once, however many share it and whoever ends during a pass, and the programs.
    assert!((200 << 20..210 << 20).contains(&peak), "{peak}");
    let resident = u64_of(&memory["rss_bytes_then"]);
    let processes = u64_of(&memory["processes_then"]);
    assert!(resident >= processes.saturating_sub(1) * (200 << 20), "{resident} {processes}");
    assert_eq!(memory["processes"].as_array().unwrap().len(), 4);
    assert_eq!(text(&memory["processes"][0]["program"]), "share");
}

#[test]
fn memory_of_files_is_told_from_other_memory() {
    assert_memory_of_files(&Recorder::new().fixture("mapped", &["40"]));
}

#[test]
fn memory_is_not_looked_at_unless_asked_for() {
    let events = Recorder::new().fixture("share", &["10", "1", "300"]).sound(0);
    assert_eq!(events.count("memory"), 0);
}

mod root {
    use super::*;

    #[test]
    fn tearing_down_memory_counts() {
        let peak = fixture("peak");
        let (recorded, events, usage) = waited_for(&[peak.to_str().unwrap(), "1000", "/bin/true"]);
        let ends = ends(&events);
        let peak = ends.iter().find(|end| end["comm"] == "peak").unwrap();
        let runner = u64_of(&events.root()["pid"]);
        let kernels_ns = usage.user_ns + usage.system_ns;
        assert_agrees(&recorded.trace(), |exit| exit.tgid as u64 != runner, kernels_ns);
        // To clear and to release 250,000 pages is the kernel's work.
        assert!(u64_of(&peak["system_ns"]) > u64_of(&peak["user_ns"]), "{peak}");
        // wait4(2) and proctrace agree on the parent's peak; the child's own is that of its program.
        assert!(u64_of(&peak["maxrss_bytes"]).abs_diff(usage.maxrss_bytes) < 1 << 20, "{peak}");
        let child = ends.iter().find(|end| end["comm"] == "true").unwrap();
        assert!(u64_of(&child["maxrss_bytes"]) < 20 << 20, "{child}");
        assert_eq!(sum(&ends, "minflt"), usage.minflt);
        assert_eq!(sum(&ends, "majflt"), usage.majflt);
    }

    #[test]
    fn threads_are_added_up_as_the_kernel_does() {
        let threads = fixture("threads");
        let (recorded, events, usage) = waited_for(&[threads.to_str().unwrap(), "40", "10"]);
        let ends = ends(&events);
        assert_eq!(ends.len(), 41);
        let total = sum(&ends, "run_ns");
        let kernels = usage.user_ns + usage.system_ns;
        // 40 times 10 ms by each thread's own clock, less the end of each last slice, which the kernel
        // omits: it releases a thread that is still running.
        assert!(total >= 400_000_000, "{total}");
        assert!(total >= kernels, "{total} {kernels}");
        let runner = u64_of(&events.root()["pid"]);
        let of_threads = |exit: &&Exit| exit.tgid as u64 != runner;
        let unseen_ns: u64 =
            exits(&recorded.trace()).iter().filter(of_threads).map(unseen_ns).sum();
        assert!(total - kernels <= unseen_ns + 1_000_000, "{total} {kernels} {unseen_ns}");
        let switches = sum(&ends, "nvcsw") + sum(&ends, "nivcsw");
        let of_kernel = usage.nvcsw + usage.nivcsw;
        // Each task's last switch happens after the kernel's last count.
        assert!((of_kernel..=of_kernel + 41).contains(&switches), "{switches} {of_kernel}");
    }
}
