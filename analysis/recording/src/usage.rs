//! Cumulative usage of a task, from any record that contains its counters.

use proctrace_wire::layout::{Attach, Sample};

use crate::exit::Exit;
use crate::split::Ticks;

/// A task's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time.
    pub run_ns: u64,
    /// Ticks in user mode.
    pub utime_ns: u64,
    /// Ticks in the kernel.
    pub stime_ns: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Minor faults.
    pub minflt: u64,
    /// Major faults.
    pub majflt: u64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub write_bytes: u64,
    /// Bytes read by system calls.
    pub rchar: u64,
    /// Bytes written by system calls.
    pub wchar: u64,
    /// Time spent runnable without a CPU.
    pub run_delay_ns: u64,
}

macro_rules! from_record {
    ($record:ty) => {
        impl From<&$record> for Usage {
            fn from(record: &$record) -> Self {
                Self {
                    run_ns: record.run_ns,
                    utime_ns: record.utime_ns,
                    stime_ns: record.stime_ns,
                    nvcsw: record.nvcsw,
                    nivcsw: record.nivcsw,
                    minflt: record.minflt,
                    majflt: record.majflt,
                    read_bytes: record.read_bytes,
                    write_bytes: record.write_bytes,
                    rchar: record.rchar,
                    wchar: record.wchar,
                    run_delay_ns: record.run_delay_ns,
                }
            }
        }
    };
}

from_record!(Attach);
from_record!(Exit);
from_record!(Sample);

impl Usage {
    /// Usage since `before`; zero where a counter decreases in a hostile trace.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    fn zip(self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            run_ns: of(self.run_ns, other.run_ns),
            utime_ns: of(self.utime_ns, other.utime_ns),
            stime_ns: of(self.stime_ns, other.stime_ns),
            nvcsw: of(self.nvcsw, other.nvcsw),
            nivcsw: of(self.nivcsw, other.nivcsw),
            minflt: of(self.minflt, other.minflt),
            majflt: of(self.majflt, other.majflt),
            read_bytes: of(self.read_bytes, other.read_bytes),
            write_bytes: of(self.write_bytes, other.write_bytes),
            rchar: of(self.rchar, other.rchar),
            wchar: of(self.wchar, other.wchar),
            run_delay_ns: of(self.run_delay_ns, other.run_delay_ns),
        }
    }
}

impl Usage {
    /// Its ticks.
    pub fn ticks(&self) -> Ticks {
        Ticks { user_ns: self.utime_ns, system_ns: self.stime_ns }
    }
}
