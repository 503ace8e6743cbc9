//! Cumulative usage of a task: the counters that every record of its usage contains.

use proctrace_findings::Figure;
use proctrace_wire::layout::{Attach, Exit, Sample};

use crate::ticks::Ticks;

macro_rules! usage {
    ($($(#[$doc:meta])+ $counter:ident,)+) => {
        /// Usage of a task, or the sum over several. Sums saturate: a hostile trace can contain any number.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Usage {
            $($(#[$doc])+ pub $counter: u64,)+
        }

        impl Usage {
            #[inline]
            fn zip(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
                Self { $($counter: of(self.$counter, other.$counter),)+ }
            }
        }

        usage!(@from Attach $($counter)+);
        usage!(@from Sample $($counter)+);
        usage!(@from Exit $($counter)+);
    };
    (@from $record:ident $($counter:ident)+) => {
        impl From<&$record> for Usage {
            fn from(record: &$record) -> Self {
                Self { $($counter: record.$counter,)+ }
            }
        }
    };
}

usage! {
    /// CPU time, exact.
    run_ns,
    /// User time, sampled by ticks.
    utime_ns,
    /// System time, sampled by ticks.
    stime_ns,
    /// Voluntary context switches.
    nvcsw,
    /// Involuntary context switches.
    nivcsw,
    /// Minor page faults.
    minflt,
    /// Major page faults.
    majflt,
    /// Bytes read by system calls.
    rchar,
    /// Bytes written by system calls.
    wchar,
    /// Bytes read from storage.
    read_bytes,
    /// Bytes written to storage.
    write_bytes,
    /// Time spent runnable without a CPU.
    run_delay_ns,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The increase since `before`; zero where a counter decreases in a hostile trace.
    #[must_use]
    #[inline]
    pub fn since(self, before: Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    /// The later of two readings of the same task: every counter only grows.
    #[must_use]
    pub fn or_later(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    /// The counter that is a figure of a task; `None` if it is none.
    pub const fn counter(figure: Figure) -> Option<fn(&Self) -> u64> {
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

    /// Its ticks.
    pub fn ticks(&self) -> Ticks {
        Ticks { user_ns: self.utime_ns, system_ns: self.stime_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate() {
        let most = Usage { run_ns: u64::MAX, ..Usage::default() };
        assert_eq!(most.plus(most), most);
        assert_eq!(Usage::default().since(most), Usage::default());
    }
}
