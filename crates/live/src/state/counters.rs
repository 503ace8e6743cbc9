//! Counters of what a task has used, as far as its records tell.

use proctrace_replay::ticks::Ticks;
use proctrace_wire::layout::{Attach, Exit, Sample};

/// Usage of a task, or the sum over the tasks of a process. Sums saturate: a hostile trace can
/// contain any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Exact CPU time.
    pub run_ns: u64,
    /// User time by ticks.
    pub utime_ns: u64,
    /// System time by ticks.
    pub stime_ns: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Minor page faults.
    pub minflt: u64,
    /// Major page faults.
    pub majflt: u64,
    /// Bytes read by system calls.
    pub rchar: u64,
    /// Bytes written by system calls.
    pub wchar: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub write_bytes: u64,
    /// Time spent runnable without a CPU.
    pub run_delay_ns: u64,
}

/// The same fields of each kind of record.
macro_rules! counters_of {
    ($record:expr) => {
        Self {
            run_ns: $record.run_ns,
            utime_ns: $record.utime_ns,
            stime_ns: $record.stime_ns,
            nvcsw: $record.nvcsw,
            nivcsw: $record.nivcsw,
            minflt: $record.minflt,
            majflt: $record.majflt,
            rchar: $record.rchar,
            wchar: $record.wchar,
            read_bytes: $record.read_bytes,
            write_bytes: $record.write_bytes,
            run_delay_ns: $record.run_delay_ns,
        }
    };
}

impl From<&Sample> for Counters {
    fn from(sample: &Sample) -> Self {
        counters_of!(sample)
    }
}

impl From<&Exit> for Counters {
    fn from(exit: &Exit) -> Self {
        counters_of!(exit)
    }
}

impl From<&Attach> for Counters {
    fn from(attach: &Attach) -> Self {
        counters_of!(attach)
    }
}

impl Counters {
    fn zip(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            run_ns: join(self.run_ns, other.run_ns),
            utime_ns: join(self.utime_ns, other.utime_ns),
            stime_ns: join(self.stime_ns, other.stime_ns),
            nvcsw: join(self.nvcsw, other.nvcsw),
            nivcsw: join(self.nivcsw, other.nivcsw),
            minflt: join(self.minflt, other.minflt),
            majflt: join(self.majflt, other.majflt),
            rchar: join(self.rchar, other.rchar),
            wchar: join(self.wchar, other.wchar),
            read_bytes: join(self.read_bytes, other.read_bytes),
            write_bytes: join(self.write_bytes, other.write_bytes),
            run_delay_ns: join(self.run_delay_ns, other.run_delay_ns),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The increase since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    /// The later of two readings of the same task: every counter only grows.
    #[must_use]
    pub fn or_later(self, other: Self) -> Self {
        self.zip(other, u64::max)
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
        let most = Counters { run_ns: u64::MAX, ..Counters::default() };
        assert_eq!(most.plus(most), most);
        assert_eq!(Counters::default().since(most), Counters::default());
    }
}
