//! The pool section: concurrent workers, the phases of their work, and what they share.

mod cores;
mod find;
mod memory;
mod phases;
#[cfg(test)]
pub(crate) mod testing;
mod tree;
mod workers;

use find::Pool;
pub(crate) use find::pools;

use proctrace_findings::{Figure, Mark, Table, Unit, count};
use proctrace_wire::Quantity;

use find::LIFE_PERCENT_MIN;
use memory::MemoryReadings;
use phases::{Moments, Phase, Scaling};
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;
use tree::Tree;

/// Minimum workers of a pool.
const WORKERS_MIN: usize = 2;
/// Maximum pools listed.
const LISTED_MAX: usize = 10;

pub(crate) fn section(recording: &Recording, options: &Options) -> Content {
    let mut pools = pools(recording, options, WORKERS_MIN);
    let found = pools.len();
    pools.truncate(LISTED_MAX);
    let mut content =
        Content { tables: vec![list(recording, options, &pools, found)], charts: vec![] };
    let Some(pool) = pools.first() else { return content };

    let cores = options.cores(recording);
    let tree = Tree::of(recording, pool);
    let moments = Moments::of(recording, pool);
    let phases = phases::phases(recording, &moments, &tree);
    let accounts = workers::accounts(recording, pool, &tree, &options.event_logs);
    content.tables.extend([
        phase_table(recording, &phases, &moments),
        scaling_table(&phases, &moments, pool),
        workers::work_table(&accounts),
        workers::resources_table(recording, &accounts, pool.program.is_none()),
        cores::cores_table(recording, &moments, cores),
    ]);
    content
        .charts
        .extend([cores::chart(recording, pool, &tree, &moments, cores), workers::chart(&accounts)]);
    if let Some((table, chart)) = cores::writer(recording, pool, &tree, &moments) {
        content.tables.push(table);
        content.charts.push(chart);
    }
    if let Some(readings) = MemoryReadings::of(recording, &tree) {
        content.tables.push(memory::table(&readings, &moments));
        content.charts.extend(memory::charts(recording, &readings, &moments));
    }
    content
}

/// Every pool found.
fn list(recording: &Recording, options: &Options, pools: &[Pool], found: usize) -> Table {
    let scalings: Vec<Scaling> = pools
        .iter()
        .map(|pool| {
            let tree = Tree::of(recording, pool);
            let moments = Moments::of(recording, pool);
            let phases = phases::phases(recording, &moments, &tree);
            Scaling::of(&phases, pool.workers.len() as u64)
        })
        .collect();
    let parents = || pools.iter().map(|pool| &recording.processes()[pool.parent]);
    let table = Table::new("pools", "Worker pools")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .text("parent", "parent", parents().map(|parent| recording.program_of(parent).name.clone()))
        .text("pid", "pid", parents().map(|parent| parent.pid.to_string()))
        .text(
            "workers_are",
            "workers are",
            pools.iter().map(|pool| match pool.program {
                None => "forks".to_owned(),
                Some(program) => recording.programs()[program].name.clone(),
            }),
        )
        .whole(
            "workers",
            "workers",
            Unit::Count,
            pools.iter().map(|pool| pool.workers.len() as u64),
        )
        .whole(
            "own_cpu_ns",
            "own CPU",
            Unit::Nanoseconds,
            pools.iter().map(|pool| pool.cpu_ns(recording)),
        )
        .real("workers_cpu_ns", "work", Unit::Nanoseconds, scalings.iter().map(|s| s.work_ns))
        .whole("wall_ns", "wall", Unit::Nanoseconds, scalings.iter().map(|s| s.wall_ns))
        .real(
            "serial_percent",
            "serial",
            Unit::Percent,
            scalings.iter().map(Scaling::serial_percent),
        );
    match (&options.pool, pools.is_empty()) {
        (Some(named), true) => table.note(format!(
            "No process that ran {named} has two children of the same kind that ran in parallel \
             for at least {LIFE_PERCENT_MIN} % of its lifetime."
        )),
        (None, true) => table.note(format!(
            "No process has two children of the same kind that ran in parallel for at least \
             {LIFE_PERCENT_MIN} % of the recording. --pool PROGRAM considers the children of one \
             program only."
        )),
        (_, false) => {
            let table = table.note(format!(
                "Workers: children of one process that never called exec, or all executed the same \
                 program, and ran in parallel for at least {LIFE_PERCENT_MIN} % of the {}. own \
                 CPU: CPU time of the workers themselves, of a writer and of other children beside \
                 them. work: CPU time of the workers alone and of all processes they started.",
                if options.pool.is_some() { "parent's lifetime" } else { "recording" }
            ));
            if found == 1 {
                return table;
            }
            table.note(format!(
                "The tables below are about the first of {} pools, by own CPU. --pool PROGRAM \
                 selects by the parent's program.",
                count(found as u64)
            ))
        }
    }
}

/// The phases, and the job's activity before the parent's birth and after its end.
fn phase_table(recording: &Recording, phases: &[Phase], moments: &Moments) -> Table {
    let job_end_ns = recording.first_ns().saturating_add(recording.wall_ns());
    let outside = [
        cores::outside(recording, "job before", recording.first_ns(), moments.begin_ns),
        cores::outside(recording, "job after", moments.end_ns, job_end_ns),
    ];
    let [before, after] = &outside;
    let rows: Vec<&Phase> = before.iter().chain(phases).chain(after).collect();
    let all_ns: u64 = rows.iter().map(|phase| phase.wall_ns()).sum();
    let percent =
        |phase: &&Phase| (all_ns > 0).then(|| 100.0 * phase.wall_ns() as f64 / all_ns as f64);
    let begin = |phase: &&Phase| phase.begin_ns.saturating_sub(recording.first_ns());
    let mut table = Table::new("pool_phases", "Phases of the pool")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .text("phase", "phase", rows.iter().map(|phase| phase.name))
        .whole("begin_ns", "begins", Unit::Nanoseconds, rows.iter().map(begin))
        .whole("wall_ns", "wall", Unit::Nanoseconds, rows.iter().map(|phase| phase.wall_ns()))
        .real("wall_percent", "share", Unit::Percent, rows.iter().map(percent))
        .real("cpu_ns", "CPU", Unit::Nanoseconds, rows.iter().map(|phase| phase.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .real("cores", "cores used", Unit::Cores, rows.iter().map(|phase| phase.cores()))
        .note(
            "init: from the parent's start to the first fork; fork: to the last fork; loop: to the \
             first worker's exit; tail: to the last worker's exit; then the parent merges and \
             finalises.",
        )
        .note(
            "CPU: of the whole pool, exact to within one sampling interval at the phase \
             boundaries.",
        );
    if outside.iter().any(Option::is_some) {
        let serial: u64 =
            rows.iter().filter(|phase| !phase.parallel).map(|phase| phase.wall_ns()).sum();
        table = table.note(format!(
            "job before, job after: everything recorded before the parent's start, and from its \
             end to that of the command. Including these, {:.0} % of the wall time is without \
             workers.",
            100.0 * serial as f64 / all_ns.max(1) as f64
        ));
    }
    if moments.renewed {
        table = table.note(
            "Workers were forked after others had ended: the loop is empty, and everything after \
             the first exit is the tail.",
        );
    }
    table
}

fn scaling_table(phases: &[Phase], moments: &Moments, pool: &Pool) -> Table {
    let scaling = Scaling::of(phases, pool.workers.len() as u64);
    let spread_ns = moments.last_exit_ns - moments.first_exit_ns;
    let parallel_ns = moments.last_exit_ns - moments.first_fork_ns;
    let spread_percent = (parallel_ns > 0).then(|| 100.0 * spread_ns as f64 / parallel_ns as f64);
    Table::new("pool_scaling", "Cost of the serial part")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Samples])
        .whole("serial_ns", "serial", Unit::Nanoseconds, [scaling.serial_ns])
        .real("serial_percent", "of wall", Unit::Percent, [scaling.serial_percent()])
        .real("speedup", "speed-up", Unit::Ratio, [scaling.reached()])
        .real("speedup_possible", "possible", Unit::Ratio, [scaling.possible()])
        .real("speedup_bound", "bound", Unit::Ratio, [scaling.bound()])
        .whole("exit_spread_ns", "exit spread", Unit::Nanoseconds, [spread_ns])
        .real("exit_spread_percent", "of parallel", Unit::Percent, [spread_percent])
        .note(format!(
            "serial: init, merge and finalise. speed-up: over a single process, which would take \
             the serial time and {}, the CPU time of {} workers{}. possible: if each worker had \
             its own CPU and all ended at the same time. bound: for any number of workers \
             (Amdahl){}. These are estimates: the serial part is assumed to be the same for any \
             number of workers.",
            seconds(scaling.work_ns + scaling.beside_ns),
            pool.workers.len(),
            if pool.others.is_empty() { "" } else { " and of the processes beside them" },
            beside(&scaling)
        ))
}

/// The part of a writer's work that more workers cannot take over.
fn beside(scaling: &Scaling) -> String {
    if scaling.beside_ns <= 0.0 {
        return "; only the serial time remains".to_owned();
    }
    format!(
        "; the serial time and {} remain, the CPU time of the processes beside the workers, which \
         more workers do not reduce",
        seconds(scaling.beside_ns)
    )
}

fn seconds(ns: f64) -> String {
    format!("{:.2} s", ns / 1e9)
}

/// Marks at the phase boundaries, for charts over time.
fn moments(recording: &Recording, at: &Moments) -> Vec<Mark> {
    let mut marks = vec![
        (at.first_fork_ns, "first fork"),
        (at.first_exit_ns, "first exit"),
        (at.last_exit_ns, "last exit"),
    ];
    marks.extend(at.merged_ns.map(|merged_ns| (merged_ns, "merged")));
    marks
        .into_iter()
        .map(|(ns, name)| Mark {
            at: ns.saturating_sub(recording.first_ns()) as f64,
            name: name.to_owned(),
        })
        .collect()
}
