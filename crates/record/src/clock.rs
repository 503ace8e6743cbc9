//! The two clocks: that of the records, and the wall clock.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_BOOTTIME, the clock of the records: it continues while the machine is suspended, and task
/// start times use it. In the initial time namespace, as the kernel has it, wherever this process is.
pub fn boot_ns() -> u64 {
    now_ns(ClockId::Boottime).saturating_add_signed(boot_offset_ns().saturating_neg())
}

/// Difference by which CLOCK_BOOTTIME is later for this process than in the initial time namespace. A process has one
/// namespace for all its life: time_namespaces(7).
pub(crate) fn boot_offset_ns() -> i64 {
    static OFFSET_NS: OnceLock<i64> = OnceLock::new();
    *OFFSET_NS.get_or_init(|| {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets");
        boot_offset_of(&offsets.unwrap_or_default())
    })
}

fn boot_offset_of(offsets: &str) -> i64 {
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        // Its name or, before 5.6.1, its number.
        let is_boottime = matches!(words.next()?, "boottime" | "7");
        let (seconds, ns) =
            (words.next()?.parse::<i64>().ok()?, words.next()?.parse::<i64>().ok()?);
        is_boottime.then(|| seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    };
    offsets.lines().find_map(parse).unwrap_or(0)
}

/// The real-time clock, since 1970.
pub fn unix_ns() -> u64 {
    now_ns(ClockId::Realtime)
}

/// A duration in nanoseconds; the largest number for the longest ones.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        let some = "monotonic           0         0\nboottime     86400        5\n";
        assert_eq!(boot_offset_of(some), 86_400_000_000_005);
        assert_eq!(boot_offset_of("monotonic 7 0\nboottime -1 0\n"), -1_000_000_000);
        assert_eq!(boot_offset_of("7 3 0\n"), 3_000_000_000);
        assert_eq!(boot_offset_of(""), 0);
        assert_eq!(boot_offset_of("boottime x\n"), 0);
    }
}
