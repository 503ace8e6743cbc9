//! The quantities over time: each with its name, needs and meaning, and the counter it comes from.
//!
//! This is the only list of them. The table of bins has all that are shown, in this order; timelines, strips and
//! correlations a part.

use proctrace_findings::Figure;
use proctrace_replay::Usage;
use proctrace_wire::Quantity;

/// Kind of the values of a quantity over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinKind {
    /// An amount, spread over the time it took: not a whole number.
    Amount,
    /// A number of events.
    Events,
    /// A mean over time, known in every bin.
    Mean,
    /// A mean of the samples in a bin, not known before the first.
    Sampled,
}

macro_rules! bin_series {
    (
        shown {
            $($series:ident $name:literal $kind:ident [$($need:ident)*] $(from $figure:ident)? $says:literal;)+
        }
        hidden { $($(#[$doc:meta])+ $hidden:ident)+ }
    ) => {
        /// A quantity with one value per bin.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum BinSeries {
            $(#[doc = $says] $series,)+
            $($(#[$doc])+ $hidden,)+
        }

        impl BinSeries {
            /// Those that are shown, in their order.
            pub const SHOWN: [Self; [$($name,)+].len()] = [$(Self::$series,)+];

            /// Number of all.
            pub(crate) const COUNT: usize = Self::SHOWN.len() + [$(Self::$hidden,)+].len();

            /// Its name in tables; empty if it is not shown.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$series => $name,)+ $(Self::$hidden => "",)+ }
            }

            /// Kind of its values.
            pub const fn kind(self) -> BinKind {
                match self { $(Self::$series => BinKind::$kind,)+ $(Self::$hidden => BinKind::Amount,)+ }
            }

            /// Quantities without which it is not known.
            pub const fn needs(self) -> &'static [Quantity] {
                match self {
                    $(Self::$series => &[$(Quantity::$need),*],)+
                    $(Self::$hidden => &[Quantity::Forks, Quantity::Cpu],)+
                }
            }

            /// Description.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$series => $says,)+ $(Self::$hidden => "",)+ }
            }

            /// The figure of a task whose increase is spread over the time it took.
            const fn figure(self) -> Option<Figure> {
                match self {
                    $(Self::$series => bin_series!(@figure $($figure)?),)+
                    $(Self::$hidden => None,)+
                }
            }
        }
    };
    (@figure) => { None };
    (@figure $figure:ident) => { Some(Figure::$figure) };
}

bin_series! {
    shown {
        User "user_ns" Amount [Forks Cpu Split]
            "User time in it: estimated from pooled ticks, spread evenly between samples.";
        System "system_ns" Amount [Forks Cpu Split] "System time, likewise.";
        SwitchesVoluntary "voluntary_switches" Amount [Forks Switches] from VoluntarySwitches "Voluntary context switches.";
        SwitchesInvoluntary "involuntary_switches" Amount [Forks Switches] from InvoluntarySwitches
            "Involuntary context switches.";
        ReadBytes "read_bytes" Amount [Forks Io] from ReadBytes "Bytes read from storage.";
        WriteBytes "write_bytes" Amount [Forks Io] from WriteBytes "Bytes written to storage.";
        CallReadBytes "read_call_bytes" Amount [Forks Io] from ReadCallBytes "Bytes read by system calls.";
        CallWriteBytes "write_call_bytes" Amount [Forks Io] from WriteCallBytes "Bytes written by system calls.";
        FaultsMinor "minor_faults" Amount [Forks Faults] from MinorFaults "Minor page faults.";
        FaultsMajor "major_faults" Amount [Forks Faults] from MajorFaults "Major page faults.";
        RunDelay "run_delay_ns" Amount [Forks RunDelay] from RunDelayNs
            "Time tasks waited for a CPU (runnable, not running).";
        Forks "forks" Events [Forks] "Tasks created, threads included.";
        Execs "execs" Events [Execs] "Successful execs.";
        Exits "exits" Events [] "Exits of tasks, threads included.";
        LookupsFailed "failed_lookups" Events [LookupsOpen LookupsStat LookupsAccess LookupsReadlink LookupsChdir]
            "Failed look-ups, excluding readlink of existing paths that are not links.";
        Running "running" Sampled [Samples] "Tasks running or runnable: mean of the samples; null before the first.";
        Sleeping "sleeping" Sampled [Samples] "Tasks asleep, likewise.";
        Uninterruptible "uninterruptible" Sampled [Samples] "Tasks in uninterruptible sleep, likewise.";
        Live "live" Mean [Forks] "Live tasks: mean over time, exact.";
    }
    hidden {
        /// User time as the kernel splits CPU time task by task and reports it to samplers of /proc.
        ToldUser
        /// System time, likewise.
        ToldSystem
    }
}

/// The quantities that are counters of tasks.
const COUNTERS: [BinSeries; 9] = {
    let mut counters = [BinSeries::User; 9];
    let (mut at, mut next) = (0, 0);
    while at < BinSeries::SHOWN.len() {
        if BinSeries::SHOWN[at].figure().is_some() {
            counters[next] = BinSeries::SHOWN[at];
            next += 1;
        }
        at += 1;
    }
    assert!(next == counters.len());
    counters
};

impl BinSeries {
    /// Each counter with its increase.
    pub(crate) fn increases(grown: &Usage) -> [(Self, u64); COUNTERS.len()] {
        COUNTERS.map(|series| {
            let counter = series.figure().and_then(Usage::counter);
            (series, counter.map_or(0, |counter| counter(grown)))
        })
    }
}
