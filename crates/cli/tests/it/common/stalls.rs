//! Storms on a machine that may stand still: a virtual CPU that its host does not run empties no ring.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Recorded, cpus, header};

/// Minimum pause of a CPU that counts as a stall. A ring holds at least 20 ms of the heaviest load of a CPU, and the
/// recorder is woken when a quarter is full. A thread that sleeps is normally given a CPU within a few milliseconds,
/// however busy the machine is.
const STALL: Duration = Duration::from_millis(10);

/// A recording whose losses, if it has any, are the recorder's own fault: repeated if records were lost while a CPU stood
/// still.
pub(crate) fn unless_stalled(record: impl Fn() -> Recorded) -> Recorded {
    const TRIES: u32 = 5;
    for _ in 1..TRIES {
        let (recorded, longest) = watched(&record);
        let lost = header(&recorded.trace())["trailer"]["losses"].clone();
        if lost == Value::Array(Vec::new()) || longest < STALL {
            return recorded;
        }
    }
    record()
}

/// Result of a function, and the longest time in which a CPU did not run a thread that slept for a millisecond.
fn watched<T>(of: impl Fn() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let beat = |cpu: String| scope.spawn(move || longest_gap(&cpu, over));
        let beats: Vec<_> = cpus().into_iter().map(beat).collect();
        let result = of();
        over.store(true, Ordering::Relaxed);
        let gaps = beats.into_iter().map(|beat| beat.join().unwrap());
        (result, gaps.max().unwrap())
    })
}

fn longest_gap(cpu: &str, over: &AtomicBool) -> Duration {
    let mut only = CpuSet::new();
    only.set(cpu.parse().unwrap()).unwrap();
    sched_setaffinity(Pid::from_raw(0), &only).unwrap();
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        longest = longest.max(before.elapsed());
    }
    longest
}
