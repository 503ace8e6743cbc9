//! The tables: counts by category, who started whom, look-ups by directory.

use std::cmp::Reverse;

use polars::prelude::*;
use proctrace_findings::{Category, DirectoryMisses, Spawner};
use proctrace_replay::CpuTime;
use proctrace_trace::Quantity;
use proctrace_trace::Quantity::{Cpu, Execs, Forks, PeakRss};
use proctrace_wire::Family;

use crate::error::AnalysisError;
use crate::recording::Recording;
use crate::recording::misses::MissKind;
use crate::recording::names::{errno, text};
use crate::recording::split::{Divided, Ticks};
use crate::recording::tally;

/// Which program each process ran.
const WHO: [Quantity; 2] = [Forks, Execs];
const SPLIT: [Quantity; 2] = [Cpu, Quantity::Split];

/// The spawner of the command itself, and of what nothing is known.
const NO_ONE: &str = "-";

/// One row per process, with numbers for names.
fn processes(recording: &Recording) -> Result<DataFrame, AnalysisError> {
    let rows = &recording.processes;
    let lookups = lookups_by_process(recording);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let columns = vec![
        Column::new("program".into(), rows.iter().map(|p| number(p.program)).collect::<Vec<_>>()),
        Column::new(
            "spawned_by".into(),
            rows.iter().map(|p| p.spawned_by.map(number)).collect::<Vec<_>>(),
        ),
        Column::new("forked".into(), rows.iter().map(|p| p.execs == 0).collect::<Vec<_>>()),
        Column::new(
            "threads".into(),
            rows.iter().map(|p| p.tasks.len() as u64 - 1).collect::<Vec<_>>(),
        ),
        Column::new("user_ns".into(), rows.iter().map(|p| p.cpu.user_ns).collect::<Vec<_>>()),
        Column::new("system_ns".into(), rows.iter().map(|p| p.cpu.system_ns).collect::<Vec<_>>()),
        Column::new(
            "user_ticks_ns".into(),
            rows.iter().map(|p| p.ticks.user_ns).collect::<Vec<_>>(),
        ),
        Column::new(
            "system_ticks_ns".into(),
            rows.iter().map(|p| p.ticks.system_ns).collect::<Vec<_>>(),
        ),
        Column::new(
            "life_ns".into(),
            rows.iter()
                .map(|p| Some(p.ended_ns?.saturating_sub(p.born_ns)))
                .collect::<Vec<Option<u64>>>(),
        ),
        Column::new("maxrss_bytes".into(), rows.iter().map(|p| p.maxrss_bytes).collect::<Vec<_>>()),
        Column::new("lookups".into(), lookups),
    ];
    Ok(DataFrame::new(rows.len(), columns)?)
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
    let processes = processes(recording)?.lazy();
    let main_spawners = processes
        .clone()
        .group_by([col("program"), col("spawned_by")])
        .agg([len().alias("spawned")])
        .sort_by_exprs(
            [col("spawned"), col("spawned_by")],
            SortMultipleOptions::default().with_order_descending_multi([true, false]),
        )
        .group_by_stable([col("program")])
        .agg([col("spawned_by").first(), col("spawned").first()]);
    let table = processes
        .group_by([col("program")])
        .agg([
            len().alias("processes"),
            col("forked").sum(),
            col("threads").sum(),
            col("user_ns").sum(),
            col("system_ns").sum(),
            col("user_ticks_ns").sum(),
            col("system_ticks_ns").sum(),
            col("lookups").sum(),
            col("life_ns").sort(SortOptions::default()),
            col("maxrss_bytes").max(),
        ])
        .join(main_spawners, [col("program")], [col("program")], JoinArgs::new(JoinType::Left))
        .sort_by_exprs(
            [col("processes"), col("user_ns") + col("system_ns"), col("program")],
            SortMultipleOptions::default().with_order_descending_multi([true, true, false]),
        )
        .collect()?;

    let program = table.column("program")?.u32()?;
    let spawned_by = table.column("spawned_by")?.u32()?;
    let lives = table.column("life_ns")?.list()?;
    let number = |name: &str| -> Result<Vec<u64>, AnalysisError> {
        let column = table.column(name)?.cast(&DataType::UInt64)?;
        Ok(column.u64()?.iter().map(Option::unwrap_or_default).collect())
    };
    let (processes, forked, threads) =
        (number("processes")?, number("forked")?, number("threads")?);
    let (user_ns, system_ns) = (number("user_ns")?, number("system_ns")?);
    let (user_ticks, system_ticks) = (number("user_ticks_ns")?, number("system_ticks_ns")?);
    let (lookups, maxrss) = (number("lookups")?, number("maxrss_bytes")?);
    let spawned = number("spawned")?;
    // An exec counts for what was executed, whatever the process ran after that.
    let mut execs: Vec<u64> =
        tally::by_program(recording).into_iter().map(|tally| tally.execs).collect();
    let mut categories = (0..table.height())
        .map(|row| {
            let number = program.get(row).unwrap_or(0) as usize;
            let program = &recording.programs[number];
            let cpu = CpuTime { user_ns: user_ns[row], system_ns: system_ns[row] };
            let ticks = Ticks { user_ns: user_ticks[row], system_ns: system_ticks[row] };
            let certain = recording.split.certainty(&Divided { cpu, ticks });
            let interval = certain.interval_percent.filter(|_| knows.all(&SPLIT));
            let life = lives.get_as_series(row).map(|lives| lower_median(&lives)).transpose()?;
            Ok(Category {
                class: program.class,
                group: program.group.clone(),
                name: program.name.clone(),
                processes: Some(processes[row]),
                forked: Some(forked[row]),
                threads: Some(threads[row]),
                execs: Some(execs.get_mut(number).map_or(0, std::mem::take)),
                cpu_ns: knows.some(&[Cpu], cpu.total_ns()),
                user_ns: knows.some(&SPLIT, cpu.user_ns),
                system_ns: knows.some(&SPLIT, cpu.system_ns),
                system_percent: certain.system_percent.filter(|_| knows.all(&SPLIT)),
                system_low_percent: interval.map(|interval| interval.0),
                system_high_percent: interval.map(|interval| interval.1),
                ticks: knows.some(&SPLIT, certain.ticks),
                lookups_failed: knows.some(&Quantity::LOOKUPS, lookups[row]),
                median_life_ns: life.flatten(),
                maxrss_bytes: knows.some(&[PeakRss], maxrss[row]),
                main_spawner: name_of(recording, spawned_by.get(row)),
                main_spawner_processes: Some(spawned[row]),
            })
        })
        .collect::<Result<Vec<_>, AnalysisError>>()?;
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

/// Of sorted values, the missing ones first.
fn lower_median(sorted: &Series) -> Result<Option<u64>, AnalysisError> {
    let values = sorted.drop_nulls();
    if values.is_empty() {
        return Ok(None);
    }
    Ok(values.u64()?.get((values.len() - 1) / 2))
}

fn name_of(recording: &Recording, program: Option<u32>) -> String {
    program.map_or_else(
        || NO_ONE.to_owned(),
        |program| recording.programs[program as usize].name.clone(),
    )
}

pub(crate) fn spawners(recording: &Recording) -> Result<Vec<Spawner>, AnalysisError> {
    if !recording.knows.all(&WHO) {
        return Ok(Vec::new());
    }
    let wall_s = recording.wall_ns() as f64 / 1e9;
    let table = processes(recording)?
        .lazy()
        .filter(col("spawned_by").is_not_null())
        .group_by([col("spawned_by"), col("program"), col("forked")])
        .agg([len().alias("processes"), (col("user_ns") + col("system_ns")).sum().alias("cpu_ns")])
        .sort_by_exprs(
            [col("processes"), col("cpu_ns"), col("spawned_by"), col("program")],
            SortMultipleOptions::default().with_order_descending_multi([true, true, false, false]),
        )
        .collect()?;
    let spawned_by = table.column("spawned_by")?.u32()?;
    let program = table.column("program")?.u32()?;
    let forked = table.column("forked")?.bool()?;
    let processes = table.column("processes")?.cast(&DataType::UInt64)?;
    let (processes, cpu_ns) = (processes.u64()?, table.column("cpu_ns")?.u64()?);
    Ok((0..table.height())
        .map(|row| {
            let count = processes.get(row).unwrap_or(0);
            let child = name_of(recording, program.get(row));
            Spawner {
                parent: name_of(recording, spawned_by.get(row)),
                child: if forked.get(row).unwrap_or(false) {
                    format!("{child} (fork)")
                } else {
                    child
                },
                processes: count,
                cpu_ns: cpu_ns.get(row).filter(|_| recording.knows.all(&[Cpu])),
                per_second: if wall_s > 0.0 { count as f64 / wall_s } else { 0.0 },
            }
        })
        .collect())
}

pub(crate) fn lookups(recording: &Recording) -> Result<Vec<DirectoryMisses>, AnalysisError> {
    let known: Vec<bool> =
        Family::ALL.iter().map(|family| recording.knows.knows_family(family.name())).collect();
    let is_known = |kind: &MissKind| known.get(usize::from(kind.family)).copied().unwrap_or(true);
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
