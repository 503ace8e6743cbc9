//! Work of all CPUs of the machine while a recording was made: /proc/stat.

use std::fs;

use proctrace_trace::MachineUse;

/// A reading of the counters of all CPUs, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    busy: u64,
    all: u64,
    cpus: u32,
}

impl Reading {
    /// Reads the machine's times; None where it does not tell.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal; guest and guest_nice are part of the first
    /// two (proc_stat(5)). Time that the host gave to other virtual machines was not there for this one.
    fn parse(stat: &str) -> Option<Self> {
        let mut lines = stat.lines();
        let mut words = lines.next()?.split_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let counters: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let [_, _, _, idle, waiting, ..] = counters[..] else { return None };
        let all = counters.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
        let cpus = lines.take_while(|line| line.starts_with("cpu")).count();
        let busy = all.saturating_sub(idle).saturating_sub(waiting);
        Some(Self { busy, all, cpus: u32::try_from(cpus).ok()? })
    }

    /// Use from an earlier reading to this one; None if the counters went back, as those of a CPU that was taken
    /// out.
    pub(crate) fn since(self, earlier: Self) -> Option<MachineUse> {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
        let busy_ns = ns(self.busy.checked_sub(earlier.busy)?);
        let all_ns = ns(self.all.checked_sub(earlier.all)?);
        (self.cpus == earlier.cpus).then_some(MachineUse { busy_ns, all_ns, cpus: self.cpus })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  100 5 50 800 20 1 4 20 7 0\ncpu0 50 0 0 0 0 0 0 0 0 0\ncpu1 1\nintr 5\n";

    #[test]
    fn counters_are_added_up() {
        let reading = Reading::parse(STAT).unwrap();
        assert_eq!(reading, Reading { busy: 180, all: 1000, cpus: 2 });
        let later = Reading { busy: 190, all: 1030, cpus: 2 };
        let used = later.since(reading).unwrap();
        assert_eq!(used.busy_ns * 3, used.all_ns);
        assert_eq!(reading.since(later), None);
        assert_eq!(Reading { cpus: 1, ..later }.since(reading), None);
    }

    #[test]
    fn what_is_no_such_file_is_no_reading() {
        for text in [
            "",
            "cpu",
            "cpu 1 2 3",
            "cpu a b c d e f g h",
            "intr 1 2 3 4 5 6 7 8",
            "cpu0 1 2 3 4 5 6 7 8",
        ] {
            assert_eq!(Reading::parse(text), None, "{text}");
        }
        let huge = format!("cpu  {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX);
        assert!(Reading::parse(&huge).is_some());
    }

    #[test]
    fn this_machine_tells() {
        let first = Reading::now().unwrap();
        assert!(first.cpus > 0 && first.busy <= first.all);
        assert!(Reading::now().unwrap().since(first).is_some());
    }
}
