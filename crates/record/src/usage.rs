//! Usage of this process itself.

use nix::sys::resource::{UsageWho, getrusage};
use proctrace_trace::RecorderUsage;

/// The resources used by this process so far; `loading_ns` of its CPU time before the recording
/// began.
pub fn usage(loading_ns: u64) -> RecorderUsage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Default::default() };
    let nanoseconds = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0) * 1000
    };
    RecorderUsage {
        user_ns: nanoseconds(usage.user_time()),
        system_ns: nanoseconds(usage.system_time()),
        maxrss_bytes: peak_rss_bytes().unwrap_or(0),
        loading_ns,
    }
}

/// Resident memory of this process.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// The peak RSS of this process. getrusage(2) would report that of the process that called exec, if
/// it was larger: the peak survives exec.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024))
}
