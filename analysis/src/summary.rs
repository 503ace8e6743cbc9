//! The figures at a glance.

use proctrace_findings::{Outcome, Run, Summary};
use proctrace_wire::Family;

use crate::accounting::Accounting;
use crate::recording::Recording;
use crate::usage::Usage;

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
        outcome: payload.map(|payload| match payload.outcome {
            proctrace_trace::Outcome::Code(code) => Outcome::Code(code),
            proctrace_trace::Outcome::Signal(signal) => Outcome::Signal(signal),
        }),
        cores: header.cpus,
        wall_ns: recording.wall_ns(),
        recorded_ns: recording.recorded_ns(),
    }
}

pub(crate) fn summary(recording: &Recording, accounting: &Accounting) -> Summary {
    let processes = &recording.processes;
    let ends = || recording.tasks.iter().filter_map(|task| task.end.as_ref());
    let used = recording.tasks.iter().fold(Usage::default(), |sum, task| sum.plus(&task.used()));
    let cpu: proctrace_replay::CpuTime = processes.iter().map(|process| process.cpu).sum();
    // Descendants may go on after the command; so does the time in which they could have run.
    let available_ns = recording.recorded_ns().max(recording.wall_ns()) as f64
        * f64::from(recording.header.cpus.max(1));
    let payload = recording.trailer.as_ref().and_then(|trailer| trailer.payload.as_ref());
    let largest = processes.iter().max_by_key(|process| process.maxrss_bytes);
    let mut lives: Vec<u64> = processes
        .iter()
        .filter_map(|process| Some(process.ended_ns?.saturating_sub(process.born_ns)))
        .collect();
    Summary {
        cpu_ns: accounting.total_ns,
        user_ns: cpu.user_ns,
        system_ns: cpu.system_ns,
        efficiency_percent: if available_ns > 0.0 {
            100.0 * cpu.total_ns() as f64 / available_ns
        } else {
            0.0
        },
        waited_cpu_ns: payload.map(|payload| payload.user_ns.saturating_add(payload.system_ns)),
        unwaited_cpu_ns: accounting.unwaited_ns,
        detached_processes: accounting.detached,
        detached_cpu_ns: accounting.detached_ns,
        processes: processes.len() as u64,
        threads: recording.tasks.iter().filter(|task| task.is_thread).count() as u64,
        execs: recording.counts.execs,
        execs_failed: recording.counts.execs_failed,
        peak_tasks: peak(
            recording.tasks.iter().map(|task| (task.born_ns, task.end.map(|end| end.time_ns))),
        ),
        peak_processes: peak(processes.iter().map(|p| (p.born_ns, p.ended_ns))),
        peak_running: recording.peak_running,
        median_life_ns: median(&mut lives),
        lookups_failed: recording.counts.lookups_failed,
        lookups_of_no_link: recording.counts.not_links,
        lookups_in_vain: recording.counts.lookups_failed.saturating_sub(recording.counts.not_links),
        lookups_failed_by_family: Family::ALL
            .into_iter()
            .zip(recording.counts.by_family)
            .filter(|(_, count)| *count > 0)
            .map(|(family, count)| (family.name().to_owned(), count))
            .collect(),
        opens: ends().map(|end| u64::from(end.record.opens)).sum(),
        switches_voluntary: used.nvcsw,
        switches_involuntary: used.nivcsw,
        faults_minor: used.minflt,
        faults_major: used.majflt,
        read_bytes: used.read_bytes,
        write_bytes: used.write_bytes,
        run_delay_ns: used.run_delay_ns,
        maxrss_bytes: largest.map_or(0, |process| process.maxrss_bytes),
        maxrss_program: largest
            .map_or_else(String::new, |process| recording.program_of(process).name.clone()),
        alive_processes: processes.iter().filter(|process| process.ended_ns.is_none()).count()
            as u64,
    }
}

/// The most intervals that overlap anywhere. One that ends when another begins does not overlap
/// with it.
fn peak(lives: impl Iterator<Item = (u64, Option<u64>)>) -> u64 {
    let mut changes = Vec::new();
    for (born_ns, ended_ns) in lives {
        changes.push((born_ns, 1i64));
        changes.extend(ended_ns.map(|ended_ns| (ended_ns.max(born_ns), -1)));
    }
    // At equal times ends come first.
    changes.sort_unstable();
    let (mut now, mut peak) = (0i64, 0i64);
    for (_, change) in changes {
        now += change;
        peak = peak.max(now);
    }
    peak.unsigned_abs()
}

/// The lower median: a value that occurred.
pub(crate) fn median(values: &mut [u64]) -> Option<u64> {
    if values.is_empty() {
        return None;
    }
    let middle = (values.len() - 1) / 2;
    Some(*values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_what_overlaps() {
        let lives = [(0, Some(10)), (2, Some(4)), (4, Some(6)), (5, None), (20, Some(30))];
        assert_eq!(peak(lives.into_iter()), 3);
        assert_eq!(peak([(0, Some(1)), (1, Some(2)), (2, Some(3))].into_iter()), 1);
        assert_eq!(peak(std::iter::empty()), 0);
    }

    #[test]
    fn the_median_is_a_value_that_occurred() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [7]), Some(7));
        assert_eq!(median(&mut [9, 1, 5]), Some(5));
        assert_eq!(median(&mut [9, 1, 5, 3]), Some(3));
    }
}
