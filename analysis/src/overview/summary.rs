//! The figures at a glance.

use proctrace_findings::{Outcome, Run, Summary};
use proctrace_trace::Quantity;
use proctrace_trace::Quantity::{
    Cpu, Execs, Faults, Forks, Io, LookupsExec, LookupsOpen, LookupsReadlink, PeakRss, RunDelay,
    Samples, Split, Switches,
};
use proctrace_wire::Family;

use crate::books::waits::Accounting;
use crate::recording::Recording;
use crate::recording::split::Divided;
use crate::recording::usage::Usage;
use crate::stats::median;

/// Whose CPU time it is must be known, or tasks are missing.
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
    let ends = || recording.tasks.iter().filter_map(crate::Task::end);
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
    let knows = &recording.knows;
    let certain = recording.split.certainty(&Divided { cpu, ticks: recording.split.ticks });
    let interval = certain.interval_percent.filter(|_| knows.all(&SPLIT));
    let counts = &recording.counts;
    let in_vain = counts.lookups_failed.saturating_sub(counts.not_links);
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
        threads: knows
            .some(&[Forks], recording.tasks.iter().filter(|task| task.is_thread).count() as u64),
        execs: knows.some(&[Execs], counts.execs),
        execs_failed: knows.some(&[LookupsExec], counts.execs_failed),
        peak_tasks: knows.some(
            &[Forks],
            peak(recording.tasks.iter().map(|task| (task.born_ns, task.ended_ns()))),
        ),
        peak_processes: knows
            .some(&[Forks], peak(processes.iter().map(|p| (p.born_ns, p.ended_ns)))),
        // Too few samples may find nothing running, however much did.
        peak_running: recording
            .peak_running
            .filter(|running| *running > 0 && knows.all(&[Samples])),
        median_life_ns: median(&mut lives).filter(|_| knows.all(&[Forks])),
        lookups_failed: knows.some(&Quantity::LOOKUPS, counts.lookups_failed),
        lookups_of_no_link: knows.some(&[LookupsReadlink], counts.not_links),
        lookups_in_vain: knows.some(&Quantity::LOOKUPS, in_vain),
        lookups_failed_by_family: Family::ALL
            .into_iter()
            .zip(counts.by_family)
            .filter(|(family, count)| *count > 0 && knows.knows_family(family.name()))
            .map(|(family, count)| (family.name().to_owned(), count))
            .collect(),
        opens: knows.some(&[LookupsOpen], ends().map(|end| u64::from(end.record.opens)).sum()),
        switches_voluntary: knows.some(&[Forks, Switches], used.nvcsw),
        switches_involuntary: knows.some(&[Forks, Switches], used.nivcsw),
        faults_minor: knows.some(&[Forks, Faults], used.minflt),
        faults_major: knows.some(&[Forks, Faults], used.majflt),
        read_bytes: knows.some(&[Forks, Io], used.read_bytes),
        write_bytes: knows.some(&[Forks, Io], used.write_bytes),
        run_delay_ns: knows.some(&[Forks, RunDelay], used.run_delay_ns),
        maxrss_bytes: largest
            .map(|process| process.maxrss_bytes)
            .filter(|_| knows.all(&[Forks, PeakRss])),
        maxrss_program: largest
            .map(|process| recording.program_of(process).name.clone())
            .filter(|_| knows.all(&[Forks, Execs, PeakRss])),
        alive_processes: knows.some(
            &[Forks],
            processes.iter().filter(|process| process.ended_ns.is_none()).count() as u64,
        ),
    }
}

/// The most intervals that overlap anywhere. One that ends when another begins does not overlap
/// with it.
fn peak(lives: impl Iterator<Item = (u64, Option<u64>)>) -> u64 {
    let (mut births, mut ends) = (Vec::new(), Vec::new());
    for (born_ns, ended_ns) in lives {
        births.push(born_ns);
        ends.extend(ended_ns.map(|ended_ns| ended_ns.max(born_ns)));
    }
    births.sort_unstable();
    ends.sort_unstable();
    let (mut ended, mut peak) = (0, 0);
    for (born, born_ns) in births.iter().enumerate() {
        // At equal times ends come first.
        while ends.get(ended).is_some_and(|ended_ns| ended_ns <= born_ns) {
            ended += 1;
        }
        // Some that begin and end at this moment may have ended, as it were, before they began.
        peak = peak.max((born + 1).saturating_sub(ended));
    }
    peak as u64
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
}
