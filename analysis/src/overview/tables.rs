//! The tables: counts by category, who started whom, look-ups by directory.

use std::cmp::Reverse;

use proctrace_findings::{Category, DirectoryMisses, Spawner};
use proctrace_trace::Quantity;
use proctrace_trace::Quantity::{Cpu, Execs, Forks, PeakRss};
use proctrace_wire::Family;

use crate::error::AnalysisError;
use crate::recording::Recording;
use crate::recording::fast::FastMap;
use crate::recording::misses::MissKind;
use crate::recording::names::{errno, text};
use crate::recording::split::Divided;
use crate::recording::tally;

/// Which program each process ran.
const WHO: [Quantity; 2] = [Forks, Execs];
const SPLIT: [Quantity; 2] = [Cpu, Quantity::Split];

/// The spawner of the command itself, and of what nothing is known.
const NO_ONE: &str = "-";

/// What the processes of one program come to.
#[derive(Default)]
struct Sums {
    processes: u64,
    forked: u64,
    threads: u64,
    used: Divided,
    lookups: u64,
    lives_ns: Vec<u64>,
    maxrss_bytes: u64,
}

fn lookups_by_process(recording: &Recording) -> Vec<u64> {
    let mut lookups = vec![0; recording.processes.len()];
    for (miss, count) in recording.misses.iter() {
        lookups[miss.process as usize] += u64::from(count);
    }
    lookups
}

pub(crate) fn categories(recording: &Recording) -> Result<Vec<Category>, AnalysisError> {
    let knows = &recording.knows;
    if !knows.all(&WHO) {
        return Ok(Vec::new());
    }
    let mut sums: Vec<Sums> = Vec::new();
    sums.resize_with(recording.programs.len(), Sums::default);
    // By program and spawner.
    let mut spawned: FastMap<(usize, Option<usize>), u64> = FastMap::default();
    for (process, lookups) in recording.processes.iter().zip(lookups_by_process(recording)) {
        let Some(sums) = sums.get_mut(process.program) else { continue };
        sums.processes += 1;
        sums.forked += u64::from(process.execs == 0);
        sums.threads += (process.tasks.len() as u64).saturating_sub(1);
        sums.used.add(&process.divided());
        sums.lookups = sums.lookups.saturating_add(lookups);
        let ended_ns = process.ended_ns;
        sums.lives_ns.extend(ended_ns.map(|ended_ns| ended_ns.saturating_sub(process.born_ns)));
        sums.maxrss_bytes = sums.maxrss_bytes.max(process.maxrss_bytes);
        *spawned.entry((process.program, process.spawned_by())).or_insert(0) += 1;
    }
    // Of those that spawned as many, the first.
    let mut main_spawners: FastMap<usize, (Reverse<u64>, Option<usize>)> = FastMap::default();
    for ((program, spawner), count) in spawned {
        let found = (Reverse(count), spawner);
        let main = main_spawners.entry(program).or_insert(found);
        *main = (*main).min(found);
    }
    let mut rows: Vec<(usize, Sums)> = sums.into_iter().enumerate().collect();
    rows.retain(|(_, sums)| sums.processes > 0);
    rows.sort_by_key(|(program, sums)| {
        (Reverse(sums.processes), Reverse(sums.used.cpu.total_ns()), *program)
    });

    // An exec counts for what was executed, whatever the process ran after that.
    let mut execs: Vec<u64> =
        tally::by_program(recording).into_iter().map(|tally| tally.execs).collect();
    let mut categories = Vec::with_capacity(rows.len());
    for (number, mut sums) in rows {
        let program = &recording.programs[number];
        let cpu = sums.used.cpu;
        let certain = recording.split.certainty(&sums.used);
        let interval = certain.interval_percent.filter(|_| knows.all(&SPLIT));
        let main_spawner = main_spawners.get(&number);
        categories.push(Category {
            class: program.class,
            group: program.group.clone(),
            name: program.name.clone(),
            processes: Some(sums.processes),
            forked: Some(sums.forked),
            threads: Some(sums.threads),
            execs: Some(execs.get_mut(number).map_or(0, std::mem::take)),
            cpu_ns: knows.some(&[Cpu], cpu.total_ns()),
            user_ns: knows.some(&SPLIT, cpu.user_ns),
            system_ns: knows.some(&SPLIT, cpu.system_ns),
            system_percent: certain.system_percent.filter(|_| knows.all(&SPLIT)),
            system_low_percent: interval.map(|interval| interval.0),
            system_high_percent: interval.map(|interval| interval.1),
            ticks: knows.some(&SPLIT, certain.ticks),
            lookups_failed: knows.some(&Quantity::LOOKUPS, sums.lookups),
            median_life_ns: lower_median(&mut sums.lives_ns),
            maxrss_bytes: knows.some(&[PeakRss], sums.maxrss_bytes),
            main_spawner: name_of(recording, main_spawner.and_then(|(_, spawner)| *spawner)),
            main_spawner_processes: Some(main_spawner.map_or(0, |(Reverse(count), _)| *count)),
        });
    }
    categories.extend(only_executed(recording, &execs));
    Ok(categories)
}

/// Programs that no process ran last, with those of their execs that are not counted yet: what only
/// executed another program. The most frequent first.
fn only_executed(recording: &Recording, execs: &[u64]) -> Vec<Category> {
    let mut rows: Vec<(usize, u64)> =
        execs.iter().copied().enumerate().filter(|(_, execs)| *execs > 0).collect();
    rows.sort_by_key(|(program, execs)| (Reverse(*execs), *program));
    rows.into_iter()
        .map(|(program, execs)| {
            let program = &recording.programs[program];
            Category {
                class: program.class,
                group: program.group.clone(),
                name: program.name.clone(),
                processes: Some(0),
                forked: Some(0),
                threads: Some(0),
                execs: Some(execs),
                // What it used counts for what the process ran last.
                cpu_ns: None,
                user_ns: None,
                system_ns: None,
                system_percent: None,
                system_low_percent: None,
                system_high_percent: None,
                ticks: None,
                lookups_failed: None,
                median_life_ns: None,
                maxrss_bytes: None,
                main_spawner: NO_ONE.to_owned(),
                main_spawner_processes: None,
            }
        })
        .collect()
}

fn lower_median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

fn name_of(recording: &Recording, program: Option<usize>) -> String {
    program.map_or_else(|| NO_ONE.to_owned(), |program| recording.programs[program].name.clone())
}

pub(crate) fn spawners(recording: &Recording) -> Result<Vec<Spawner>, AnalysisError> {
    if !recording.knows.all(&WHO) {
        return Ok(Vec::new());
    }
    let wall_s = recording.wall_ns() as f64 / 1e9;
    // Processes and their CPU time by spawner, program and whether it is the spawner's own.
    let mut sums: FastMap<(usize, usize, bool), (u64, u64)> = FastMap::default();
    for process in &recording.processes {
        let Some(spawner) = process.spawned_by() else { continue };
        let sum = sums.entry((spawner, process.program, process.execs == 0)).or_default();
        sum.0 += 1;
        sum.1 = sum.1.saturating_add(process.cpu.total_ns());
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_unstable_by_key(|(key, (processes, cpu_ns))| {
        (Reverse(*processes), Reverse(*cpu_ns), *key)
    });
    let row = |((spawner, program, forked), (processes, cpu_ns)): ((usize, usize, bool), _)| {
        let child = name_of(recording, Some(program));
        let count: u64 = processes;
        Spawner {
            parent: name_of(recording, Some(spawner)),
            child: if forked { format!("{child} (fork)") } else { child },
            processes: count,
            cpu_ns: recording.knows.some(&[Cpu], cpu_ns),
            per_second: if wall_s > 0.0 { count as f64 / wall_s } else { 0.0 },
        }
    };
    Ok(rows.into_iter().map(row).collect())
}

pub(crate) fn lookups(recording: &Recording) -> Result<Vec<DirectoryMisses>, AnalysisError> {
    let known: Vec<bool> =
        Family::ALL.iter().map(|family| recording.knows.knows_family(family.name())).collect();
    let is_known = |kind: &MissKind| known.get(usize::from(kind.family)).copied().unwrap_or(true);
    let in_vain = recording.counts.lookups_failed.saturating_sub(recording.counts.not_links);
    debug_assert_eq!(recording.missed_paths.total(), in_vain, "look-ups by path are all of them");
    let mut rows = recording.misses.by_kind();
    rows.retain(|(kind, ..)| is_known(kind));
    rows.sort_unstable_by_key(|(kind, count, _)| {
        (std::cmp::Reverse(*count), kind.directory, kind.errno, kind.family)
    });
    let family =
        |number: u8| Family::ALL.get(usize::from(number)).map_or("unknown", |family| family.name());
    let row = |(kind, count, processes): (MissKind, u64, u64)| DirectoryMisses {
        directory: text(&recording.directories[kind.directory as usize]),
        family: family(kind.family).to_owned(),
        errno: errno(kind.errno),
        count,
        processes,
    };
    Ok(rows.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene};

    #[test]
    fn an_exec_counts_for_what_was_executed() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/bash", (0, 0));
        // env runs sed in its own place.
        scene.fork(MS, 1, 2).exec(MS, 2, "/usr/bin/env", (0, 0));
        scene.exec(2 * MS, 2, "/bin/sed", (0, 0)).exit(3 * MS, 2, (MS, 0));
        let recording = scene.exit(4 * MS, 1, (0, 0)).load(None);
        let found = categories(&recording).unwrap();
        let mut rows: Vec<(&str, u64, u64)> = found
            .iter()
            .map(|row| (&*row.name, row.processes.unwrap(), row.execs.unwrap()))
            .collect();
        rows.sort_unstable();
        assert_eq!(rows, [("bash", 1, 1), ("env", 0, 1), ("sed", 1, 1)]);
        assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), recording.counts.execs);
    }
}
