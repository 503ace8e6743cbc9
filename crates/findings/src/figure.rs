//! The figures of a process and of a thread: each with its name, unit, needs and meaning.
//!
//! This is the only list of them. The table of processes and `show --json` have all, in this order; pages all that are not
//! raw, threads and timelines a part. Where each comes from is in `figures` of the analysis.

use std::ops::{Index, IndexMut};

use proctrace_wire::Quantity;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::table::Unit;

/// Topics of figures, each of which is a line where people read about one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// CPU time, and waiting for it.
    Cpu,
    /// Memory, and page faults.
    Memory,
    /// Bytes read and written.
    Storage,
    /// Context switches and migrations.
    Switches,
    /// Opens and look-ups of files.
    Files,
}

impl Topic {
    /// All of them, in the order of their lines.
    pub const ALL: [Self; 5] =
        [Self::Cpu, Self::Memory, Self::Storage, Self::Switches, Self::Files];

    /// Label of its line.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Memory => "Memory",
            Self::Storage => "Storage",
            Self::Switches => "Switches",
            Self::Files => "Files",
        }
    }
}

macro_rules! figures {
    ($($figure:ident $name:literal $unit:ident $topic:ident $label:literal [$($need:ident)+] $says:literal $(thread $of_thread:literal)?;)+) => {
        /// A figure of a process.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Figure {
            $(#[doc = $says] $figure,)+
        }

        impl Figure {
            /// All of them, in the order in which they are shown.
            pub const ALL: [Self; [$($name,)+].len()] = [$(Self::$figure,)+];

            /// Its name in tables, JSON and pages, with the unit as suffix.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$figure => $name,)+ }
            }

            /// Its unit.
            pub const fn unit(self) -> Unit {
                match self { $(Self::$figure => Unit::$unit,)+ }
            }

            /// Quantities without which it is not known of any process. Ticks are recorded even where they are too few
            /// to split anything.
            pub const fn needs(self) -> &'static [Quantity] {
                match self { $(Self::$figure => &[$(Quantity::$need),+],)+ }
            }

            /// The line of text that it stands in.
            pub const fn topic(self) -> Topic {
                match self { $(Self::$figure => Topic::$topic,)+ }
            }

            /// Its name in words.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$figure => $label,)+ }
            }

            /// Description for a process, and when it is not known.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$figure => $says,)+ }
            }

            /// Description for a thread; `None` if threads do not have it.
            pub const fn says_of_thread(self) -> Option<&'static str> {
                match self { $(Self::$figure => figures!(@thread $($of_thread)?),)+ }
            }
        }
    };
    (@thread) => { None };
    (@thread $of_thread:literal) => { Some($of_thread) };
}

figures! {
    CpuNs "cpu_ns" Nanoseconds Cpu "CPU time" [Cpu] "CPU time of its threads while recorded: exact."
        thread "CPU time while recorded: exact.";
    UserNs "user_ns" Nanoseconds Cpu "user time" [Cpu Split]
        "User time: estimated from pooled ticks; reliable for sums over many processes, not for a single short process.";
    SystemNs "system_ns" Nanoseconds Cpu "system time" [Cpu Split] "System time, likewise; user_ns + system_ns = cpu_ns.";
    UserTicksNs "user_ticks_ns" Nanoseconds Cpu "user ticks" [Cpu]
        "Kernel ticks that found it in user mode, times the tick period."
        thread "Kernel ticks that found it in user mode, times the tick period.";
    SystemTicksNs "system_ticks_ns" Nanoseconds Cpu "system ticks" [Cpu] "The same in kernel mode."
        thread "The same in kernel mode.";
    ChildrenWaitedCpuNs "children_waited_cpu_ns" Nanoseconds Cpu "CPU time of children waited for" [Cpu]
        "CPU time of the children it waited for; null if its end was not recorded.";
    RunDelayNs "run_delay_ns" Nanoseconds Cpu "waited for a CPU" [RunDelay]
        "Time its threads waited for a CPU (runnable, not running)."
        thread "Time it waited for a CPU (runnable, not running).";
    VoluntarySwitches "voluntary_switches" Count Switches "voluntary switches" [Switches] "Voluntary context switches."
        thread "Voluntary context switches.";
    InvoluntarySwitches "involuntary_switches" Count Switches "involuntary switches" [Switches] "Involuntary context switches."
        thread "Involuntary context switches.";
    Migrations "migrations" Count Switches "migrations" [Switches] "Migrations of its threads to another CPU."
        thread "Migrations to another CPU.";
    MinorFaults "minor_faults" Count Memory "minor faults" [Faults] "Minor page faults." thread "Minor page faults.";
    MajorFaults "major_faults" Count Memory "major faults" [Faults] "Major page faults." thread "Major page faults.";
    ReadBytes "read_bytes" Bytes Storage "read from storage" [Io] "Bytes read from storage." thread "Bytes read from storage.";
    WriteBytes "write_bytes" Bytes Storage "written to storage" [Io] "Bytes written to storage." thread "Bytes written to storage.";
    ReadCallBytes "read_call_bytes" Bytes Storage "read by system calls" [Io]
        "Bytes read by system calls, including from the page cache and pipes."
        thread "Bytes read by system calls.";
    WriteCallBytes "write_call_bytes" Bytes Storage "written by system calls" [Io] "Bytes written by system calls."
        thread "Bytes written by system calls.";
    PeakRssBytes "peak_rss_bytes" Bytes Memory "peak RSS" [PeakRss]
        "Peak resident memory of the program it ran last; for a process that did not end, the value of its last sample.";
    FileRssBytes "file_rss_bytes" Bytes Memory "file-backed RSS" [PeakRss]
        "Resident pages of files when it began to end: programs, libraries and mapped files, which processes may share; as \
         the kernel counts them, which leaves out some of each CPU (32, or twice the number of CPUs); null if it counts none, if \
         the process did not end, with kernels before 6.16 (eBPF), and in traces before wire version 7.";
    Opens "opens" Count Files "successful opens" [LookupsOpen] "Successful opens."
        thread "Successful opens; null if its end was not recorded.";
    FailedLookups "failed_lookups" Count Files "failed look-ups" [LookupsOpen LookupsStat LookupsAccess LookupsReadlink LookupsChdir]
        "Recorded failed look-ups, excluding readlink of existing paths that are not links; null if a family of calls is \
         not known, and for 32-bit programs.";
}

impl Figure {
    /// True if it only serves to compute other figures, and tells people nothing.
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::UserTicksNs | Self::SystemTicksNs)
    }

    /// True if that of several processes is the largest of theirs; otherwise it is their sum.
    pub const fn is_largest(self) -> bool {
        matches!(self, Self::PeakRssBytes | Self::FileRssBytes)
    }

    /// True if that of several processes is the sum of theirs, or the largest. The CPU time of children that were waited for
    /// includes that of their own, which may be among these processes.
    pub const fn adds_up(self) -> bool {
        !matches!(self, Self::ChildrenWaitedCpuNs)
    }

    /// True if timelines, which are large already, have it.
    pub const fn is_in_timelines(self) -> bool {
        matches!(
            self,
            Self::CpuNs
                | Self::SystemNs
                | Self::PeakRssBytes
                | Self::ReadBytes
                | Self::WriteBytes
                | Self::RunDelayNs
                | Self::FailedLookups
        )
    }
}

/// The figures of one process or of several: `None` where one is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures([Option<u64>; Figure::ALL.len()]);

impl Figures {
    /// Each figure, as computed by this function.
    pub fn of(value: impl FnMut(Figure) -> Option<u64>) -> Self {
        Self(Figure::ALL.map(value))
    }

    /// Each figure with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Figure, Option<u64>)> {
        Figure::ALL.into_iter().zip(self.0)
    }

    /// Figures that timelines have.
    pub fn in_timelines(&self) -> impl Iterator<Item = (Figure, Option<u64>)> {
        self.iter().filter(|(figure, _)| figure.is_in_timelines())
    }

    /// Figures of both together: what is not known of one is not known of both.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self::of(|figure| match (self[figure], other[figure]) {
            // Of a process that is alive, a peak may be unknown; that of the others is a lower bound.
            _ if !figure.adds_up() => None,
            (one, another) if figure.is_largest() => one.max(another),
            (one, another) => Some(one?.saturating_add(another?)),
        })
    }
}

impl Index<Figure> for Figures {
    type Output = Option<u64>;

    fn index(&self, figure: Figure) -> &Option<u64> {
        &self.0[figure as usize]
    }
}

impl IndexMut<Figure> for Figures {
    fn index_mut(&mut self, figure: Figure) -> &mut Option<u64> {
        &mut self.0[figure as usize]
    }
}

/// Serializes as an object with the names of the figures as keys.
impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (figure, value) in self.iter() {
            map.serialize_entry(figure.name(), &value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_the_unit() {
        for figure in Figure::ALL {
            let name = figure.name();
            let expected = match figure.unit() {
                Unit::Nanoseconds => name.ends_with("_ns"),
                Unit::Bytes => name.ends_with("_bytes"),
                _ => !name.ends_with("_ns") && !name.ends_with("_bytes"),
            };
            assert!(expected, "{name}");
        }
    }

    #[test]
    fn of_several_all_must_be_known_except_for_peaks() {
        let one = Figures::of(|_| Some(2));
        let mut other = Figures::of(|_| Some(3));
        other[Figure::Opens] = None;
        other[Figure::PeakRssBytes] = None;
        let both = one.plus(&other);
        assert_eq!((both[Figure::CpuNs], both[Figure::Opens]), (Some(5), None));
        assert_eq!(both[Figure::PeakRssBytes], Some(2));
        assert_eq!(both[Figure::ChildrenWaitedCpuNs], None);
        let json = serde_json::to_value(both).unwrap();
        assert_eq!(json["voluntary_switches"], 5);
        assert!(json["opens"].is_null());
    }
}
