//! The summary figures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proctrace_findings::{Run, Summary};
use proctrace_trace::Quantity;
use proctrace_trace::Quantity::{
    Cpu, Execs, Faults, Forks, Io, LookupsExec, LookupsOpen, LookupsReadlink, PeakRss, RunDelay,
    Samples, Split, Switches,
};
use proctrace_wire::Family;

use crate::books::waits::Accounting;
use crate::recording::Recording;
use crate::recording::process::{Process, Totals};
use crate::recording::split::Divided;
use crate::stats::median;

/// Without the forks, tasks would be missing from the CPU time.
const CPU: [Quantity; 2] = [Forks, Cpu];
const SPLIT: [Quantity; 3] = [Forks, Cpu, Split];

pub(crate) fn run(recording: &Recording) -> Run {
    let header = &recording.header;
    let payload = recording.trailer.as_ref().and_then(|trailer| trailer.payload.as_ref());
    Run {
        command: header.command.clone(),
        scope: header.scope.clone(),
        cgroup: header.cgroup.clone(),
        cwd: header.cwd.clone(),
        host: header.host.clone(),
        kernel: header.kernel.clone(),
        started_unix_ns: header.started_unix_ns,
        outcome: payload.map(|payload| payload.outcome),
        cores: header.cpus,
        wall_ns: recording.wall_ns(),
        recorded_ns: recording.recorded_ns(),
    }
}

pub(crate) fn summary(recording: &Recording, accounting: &Accounting) -> Summary {
    let ended = recording.processes.iter().filter_map(Process::life_ns);
    let median_life_ns = median(&mut ended.collect::<Vec<u64>>());
    let summary = without_lives(recording, accounting);
    let median_life_ns = median_life_ns.filter(|_| summary.processes.is_some());
    Summary { median_life_ns, ..summary }
}

/// The summary except the median lifetime, for which all lifetimes have to be collected.
pub(crate) fn without_lives(recording: &Recording, accounting: &Accounting) -> Summary {
    let processes = &recording.processes;
    let Totals { used, threads, opens, .. } = recording.totals;
    let cpu: proctrace_replay::CpuTime = processes.iter().map(|process| process.cpu).sum();
    // Descendants may outlive the command, which extends the time in which they could have run.
    let available_ns = recording.recorded_ns().max(recording.wall_ns()) as f64
        * f64::from(recording.header.cpus.max(1));
    let payload = recording.trailer.as_ref().and_then(|trailer| trailer.payload.as_ref());
    // The usage in a trailer is 0 where the source cannot know it.
    let payload = payload.filter(|_| recording.knows.all(&[Cpu]));
    let largest = processes.iter().max_by_key(|process| process.maxrss_pages());
    let knows = &recording.knows;
    let certain = recording.split.certainty(&Divided { cpu, ticks: recording.split.ticks });
    let interval = certain.interval_percent.filter(|_| knows.all(&SPLIT));
    let counts = &recording.counts;
    let in_vain = counts.in_vain();
    Summary {
        cpu_ns: knows.some(&CPU, accounting.total_ns),
        user_ns: knows.some(&SPLIT, cpu.user_ns),
        system_ns: knows.some(&SPLIT, cpu.system_ns),
        ticks: knows.some(&SPLIT, certain.ticks),
        system_low_percent: interval.map(|interval| interval.0),
        system_high_percent: interval.map(|interval| interval.1),
        efficiency_percent: (available_ns > 0.0 && knows.all(&CPU))
            .then(|| 100.0 * cpu.total_ns() as f64 / available_ns),
        waited_cpu_ns: payload.map(|payload| payload.user_ns.saturating_add(payload.system_ns)),
        waited_system_ns: payload.map(|payload| payload.system_ns),
        unwaited_cpu_ns: knows.some(&CPU, accounting.unwaited_ns),
        detached_processes: knows.some(&[Forks], accounting.detached),
        detached_cpu_ns: knows.some(&CPU, accounting.detached_ns),
        processes: knows.some(&[Forks], processes.len() as u64),
        threads: knows.some(&[Forks], threads),
        execs: knows.some(&[Execs], counts.execs),
        execs_failed: knows.some(&[LookupsExec], counts.execs_failed),
        peak_tasks: knows
            .some(&[Forks], peak(&recording.tasks, |task| (task.born_ns, task.ended_ns()))),
        peak_processes: knows.some(&[Forks], peak(processes, |p| (p.born_ns, p.ended_ns()))),
        // Too few samples may find nothing running, however much ran.
        peak_running: recording
            .peak_running
            .filter(|running| *running > 0 && knows.all(&[Samples])),
        median_life_ns: None,
        lookups_failed: knows
            .some(&Quantity::LOOKUPS, counts.lookups_failed.saturating_sub(counts.marks)),
        lookups_of_no_link: knows.some(&[LookupsReadlink], counts.not_links),
        lookups_in_vain: knows.some(&Quantity::LOOKUPS, in_vain),
        lookups_failed_by_family: Family::ALL
            .into_iter()
            .zip(counts.by_family)
            .filter(|(family, count)| *count > 0 && knows.knows_family(family.name()))
            .map(|(family, count)| (family.name().to_owned(), count))
            .collect(),
        opens: knows.some(&[LookupsOpen], opens),
        switches_voluntary: knows.some(&[Forks, Switches], used.nvcsw),
        switches_involuntary: knows.some(&[Forks, Switches], used.nivcsw),
        faults_minor: knows.some(&[Forks, Faults], used.minflt),
        faults_major: knows.some(&[Forks, Faults], used.majflt),
        read_bytes: knows.some(&[Forks, Io], used.read_bytes),
        write_bytes: knows.some(&[Forks, Io], used.write_bytes),
        run_delay_ns: knows.some(&[Forks, RunDelay], used.run_delay_ns),
        maxrss_bytes: largest
            .map(|process| recording.peak_rss_bytes(process))
            .filter(|_| knows.all(&[Forks, PeakRss])),
        maxrss_program: largest
            .map(|process| recording.program_of(process).name.clone())
            .filter(|_| knows.all(&[Forks, Execs, PeakRss])),
        alive_processes: knows.some(
            &[Forks],
            processes.iter().filter(|process| process.ended_ns().is_none()).count() as u64,
        ),
    }
}

/// The maximum number of overlapping intervals. Intervals that only touch do not overlap.
fn peak<T>(all: &[T], life: impl Fn(&T) -> (u64, Option<u64>)) -> u64 {
    let life = |one: &T| {
        let (born_ns, ended_ns) = life(one);
        (born_ns, ended_ns.unwrap_or(u64::MAX))
    };
    nearly_in_order(all.iter().map(life)).unwrap_or_else(|| {
        let mut lives: Vec<_> = all.iter().map(life).collect();
        lives.sort_unstable();
        let mut overlap = Overlap::default();
        lives.into_iter().for_each(|life| overlap.add(life));
        overlap.peak as u64
    })
}

/// Each CPU reports its births in order, but those of several CPUs are interleaved: this many are
/// sorted at a time.
const OUT_OF_ORDER_MAX: usize = 1 << 13;

/// The same without copying all intervals; `None` if they are not nearly in order.
fn nearly_in_order(lives: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let (mut overlap, mut next) = (Overlap::default(), BinaryHeap::new());
    let mut last_ns = 0;
    for life in lives {
        next.push(Reverse(life));
        if next.len() > OUT_OF_ORDER_MAX
            && let Some(Reverse(first)) = next.pop()
        {
            if first.0 < last_ns {
                return None;
            }
            last_ns = first.0;
            overlap.add(first);
        }
    }
    while let Some(Reverse(first)) = next.pop() {
        if first.0 < last_ns {
            return None;
        }
        overlap.add(first);
    }
    Some(overlap.peak as u64)
}

/// The intervals that overlap with the last one.
#[derive(Default)]
struct Overlap {
    ends: BinaryHeap<Reverse<u64>>,
    peak: usize,
}

impl Overlap {
    /// Adds the next interval, in order of start times.
    fn add(&mut self, (born_ns, ended_ns): (u64, u64)) {
        while self.ends.peek().is_some_and(|Reverse(end_ns)| *end_ns <= born_ns) {
            self.ends.pop();
        }
        if ended_ns > born_ns {
            self.ends.push(Reverse(ended_ns));
            self.peak = self.peak.max(self.ends.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_what_overlaps() {
        let of = |lives: &[(u64, Option<u64>)]| peak(lives, |life| *life);
        assert_eq!(of(&[(0, Some(10)), (2, Some(4)), (4, Some(6)), (5, None), (20, Some(30))]), 3);
        // In a different order, and with a lifetime of zero.
        let lives =
            [(20, Some(30)), (5, None), (4, Some(6)), (2, Some(4)), (0, Some(10)), (4, Some(4))];
        assert_eq!(of(&lives), 3);
        assert_eq!(of(&[(5, Some(5)), (5, Some(5))]), 0);
        assert_eq!(of(&[(0, Some(1)), (1, Some(2)), (2, Some(3))]), 1);
        assert_eq!(of(&[]), 0);
        // Blocks from two CPUs that are longer than what is sorted at a time.
        let turns = 2 * OUT_OF_ORDER_MAX as u64;
        let lives: Vec<_> =
            (0..2).flat_map(|cpu| (0..turns).map(move |n| (2 * n + cpu, 3))).collect();
        let lives: Vec<_> = lives.iter().map(|(born, life)| (*born, Some(born + life))).collect();
        assert_eq!(of(&lives), 3);
        let few: Vec<_> = lives[..9].iter().chain(&lives[turns as usize..][..9]).copied().collect();
        assert_eq!(of(&few), 3);
    }
}
