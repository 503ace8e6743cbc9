//! Records as they are in a trace, which say more than `dump` prints of them.

use std::path::Path;

use proctrace_trace::Reader;
use proctrace_wire::layout::{EXIT_RELEASED, Exit};
use proctrace_wire::{Frames, Record};
use serde_json::Value;

use super::{Recorded, proctrace, u64_of};

/// Calls a function with each record of a trace.
pub(crate) fn each(trace: &Path, mut take: impl FnMut(Record<'_>)) {
    let mut reader = Reader::open(trace).unwrap();
    while let Some(block) = reader.next_block() {
        for frame in Frames::new(&block.bytes).flatten() {
            take(Record::decode(frame).unwrap());
        }
    }
}

/// All exit records of a trace.
pub(crate) fn exits(trace: &Path) -> Vec<Exit> {
    let mut exits = Vec::new();
    each(trace, |record| {
        if let Record::Exit(exit) = record {
            exits.push(exit);
        }
    });
    exits
}

/// CPU time that wait4(2) may not see of a task: its last slice, if it was reaped, or released itself, before it had left
/// its CPU. How often that happens depends on how fast another CPU wakes up.
pub(crate) fn unseen_ns(exit: &Exit) -> u64 {
    if exit.bits & EXIT_RELEASED == 0 { 0 } else { exit.run_ns - exit.run_at_exit_ns }
}

/// Asserts that the kernel's sum over the tasks that `waited_for` selects is theirs, except for what it may not see of
/// them, up to a millisecond or a thousandth.
pub(crate) fn assert_agrees(trace: &Path, waited_for: impl Fn(&Exit) -> bool, kernels_ns: u64) {
    let exits: Vec<Exit> = exits(trace).into_iter().filter(waited_for).collect();
    let sum = |of: &dyn Fn(&Exit) -> u64| exits.iter().map(of).sum::<u64>();
    let (run_ns, unseen_ns) = (sum(&|exit| exit.run_ns), sum(&unseen_ns));
    let rounding_ns = 1_000_000.max(run_ns / 1000);
    let all =
        format!("{run_ns} ns, of which {unseen_ns} may not be seen; {kernels_ns} by wait4(2)");
    assert!(kernels_ns <= run_ns + rounding_ns, "{all}");
    assert!(kernels_ns + unseen_ns + rounding_ns >= run_ns, "{all}");
    // Or the comparison would show nothing.
    assert!(exits.len() == 1 || unseen_ns <= run_ns / 2, "{all}");
}

/// Compares the memory of files at the end of the fixture `mapped` with the 40 MB of a file that it has read, and with what
/// the kernel told it. Pages of a file on tmpfs are shared memory to the kernel, and not of a file.
pub(crate) fn assert_memory_of_files(recorded: &Recorded) {
    let printed = String::from_utf8(recorded.output.stdout.clone()).unwrap();
    let printed: Vec<u64> = printed.split_whitespace().map(|it| it.parse().unwrap()).collect();
    let (printed, shared) = (printed[0], printed[1]);
    let events = recorded.sound(0);
    let end = events.kind("exit").next().unwrap();
    let found = u64_of(&end["file_rss_bytes"]);
    // The kernel counts pages by CPU, and adds up those of a CPU when they are 32 or more (percpu_counter.h).
    assert!(found.abs_diff(printed) < 1 << 20, "{printed} {end}");
    assert!(found + shared >= 39 << 20, "{shared} {end}");
    assert!(u64_of(&end["maxrss_bytes"]) >= found + (39 << 20), "{end}");
    let metrics =
        proctrace().args(["metrics", "--format", "json"]).arg(recorded.trace()).output().unwrap();
    let metrics: Value = serde_json::from_slice(&metrics.stdout).unwrap();
    let of_program = |metric: &&Value| metric["name"] == "command_file_rss_bytes";
    let kept = metrics["metrics"].as_array().unwrap().iter().find(of_program).unwrap();
    assert_eq!(kept["value"].as_f64(), Some(found as f64), "{kept}");
}
