//! The two clocks: that of the records, and the wall clock.

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_BOOTTIME, the clock of the records: it continues while the machine is suspended, and task
/// start times use it.
pub fn boot_ns() -> u64 {
    now_ns(ClockId::Boottime)
}

/// The real-time clock, since 1970.
pub fn unix_ns() -> u64 {
    now_ns(ClockId::Realtime)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
