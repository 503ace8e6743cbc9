//! The figures that are counters of a task: how its usage tells them.

use proctrace_findings::Figure;
use proctrace_replay::Usage;

/// The counter that is a figure of a task; `None` if it is none.
pub const fn counter(figure: Figure) -> Option<fn(&Usage) -> u64> {
    Some(match figure {
        Figure::CpuNs => |used| used.run_ns,
        Figure::UserTicksNs => |used| used.utime_ns,
        Figure::SystemTicksNs => |used| used.stime_ns,
        Figure::RunDelayNs => |used| used.run_delay_ns,
        Figure::VoluntarySwitches => |used| used.nvcsw,
        Figure::InvoluntarySwitches => |used| used.nivcsw,
        Figure::MinorFaults => |used| used.minflt,
        Figure::MajorFaults => |used| used.majflt,
        Figure::ReadBytes => |used| used.read_bytes,
        Figure::WriteBytes => |used| used.write_bytes,
        Figure::ReadCallBytes => |used| used.rchar,
        Figure::WriteCallBytes => |used| used.wchar,
        // A test of the others, in `figures` of the overview, finds what has no source at all.
        _ => return None,
    })
}
