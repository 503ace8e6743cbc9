//! Programs and spawners, in the form of the findings.

use proctrace_findings::{Category, Spawner};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;
use proctrace_wire::Quantity::{Cpu, PeakRss, Times};

use crate::sums::{ProgramSum, Sums};

const SPLIT: [Quantity; 2] = [Cpu, Quantity::Split];

/// The spawner of the command itself, and of processes whose spawner is unknown.
pub const NO_ONE: &str = "-";

/// Every program, most processes first; those that only executed another program come last.
pub fn categories(recording: &Recording, sums: &Sums<'_>) -> Vec<Category> {
    if !recording.knows().all(&Quantity::WHO) {
        return Vec::new();
    }
    sums.programs().iter().map(|row| category(recording, row)).collect()
}

fn category(recording: &Recording, row: &ProgramSum) -> Category {
    let knows = recording.knows();
    let (program, sum) = (&recording.programs()[row.program], &row.sum);
    let cpu = sum.used.cpu;
    let certain = recording.split().certainty(&sum.used);
    // CPU time of a program that only executed another counts for the latter.
    let ran = sum.processes > 0;
    let divided = ran && knows.all(&SPLIT);
    let interval = certain.interval_percent.filter(|_| divided);
    Category {
        class: program.class,
        group: program.group.clone(),
        name: program.name.clone(),
        processes: Some(sum.processes),
        there_before: (sum.there_before > 0).then_some(sum.there_before),
        forked: Some(sum.forked),
        threads: Some(sum.threads),
        execs: Some(sum.execs),
        cpu_ns: knows.some(&[Cpu], cpu.total_ns()).filter(|_| ran),
        user_ns: divided.then_some(cpu.user_ns),
        system_ns: divided.then_some(cpu.system_ns),
        system_percent: certain.system_percent.filter(|_| divided),
        system_low_percent: interval.map(|interval| interval.0),
        system_high_percent: interval.map(|interval| interval.1),
        ticks: divided.then_some(certain.ticks),
        lookups_failed: knows
            .some(&Quantity::LOOKUPS, sum.failed_lookups)
            .filter(|_| ran && (sum.failed_lookups > 0 || sum.lookups_unseen < sum.processes)),
        median_life_ns: row.life_median_ns.filter(|_| recording.knows().all(&[Times])),
        maxrss_bytes: row.peak_rss_bytes.filter(|_| knows.all(&[PeakRss])),
        main_spawner: row.main_spawner.map_or_else(
            || NO_ONE.to_owned(),
            |spawner| recording.programs()[spawner].name.clone(),
        ),
        main_spawner_processes: row.main_spawner_processes,
    }
}

/// Spawners and what they started, most frequent first.
pub fn spawners(recording: &Recording, sums: &Sums<'_>) -> Vec<Spawner> {
    if !recording.knows().all(&Quantity::WHO) {
        return Vec::new();
    }
    let over_s = recording.wall_ns().max(recording.recorded_ns()) as f64 / 1e9;
    sums.pairs()
        .into_iter()
        .map(|pair| Spawner {
            parent: recording.programs()[pair.spawner].name.clone(),
            child: child_name(recording, pair.program, pair.forked),
            processes: pair.processes,
            cpu_ns: recording.knows().some(&[Cpu], pair.used.cpu.total_ns()),
            per_second: recording
                .knows()
                .some(&[Times], if over_s > 0.0 { pair.processes as f64 / over_s } else { 0.0 }),
        })
        .collect()
}

/// The name of a child: the program it ran last.
pub fn child_name(recording: &Recording, program: usize, forked: bool) -> String {
    let name = &recording.programs()[program].name;
    if forked { format!("{name} (fork)") } else { name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    #[test]
    fn an_exec_counts_for_what_was_executed() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/bash", (0, 0));
        // env replaces itself with sed.
        scene.fork(MS, 1, 2).exec(MS, 2, "/usr/bin/env", (0, 0));
        scene.exec(2 * MS, 2, "/bin/sed", (0, 0)).exit(3 * MS, 2, (MS, 0));
        let recording = scene.exit(4 * MS, 1, (0, 0)).load(None);
        let found = categories(&recording, &Sums::of(&recording));
        let mut rows: Vec<(&str, u64, u64)> = found
            .iter()
            .map(|row| (&*row.name, row.processes.unwrap(), row.execs.unwrap()))
            .collect();
        rows.sort_unstable();
        assert_eq!(rows, [("bash", 1, 1), ("env", 0, 1), ("sed", 1, 1)]);
        assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), recording.counts().execs);
    }
}
